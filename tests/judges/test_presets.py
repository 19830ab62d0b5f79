"""Providers by name: where requests go, with which key, and what they do not hold."""

from __future__ import annotations

import json

import pytest

from ragspan import ConfigurationError, RagRecord
from ragspan.judges import named_judge
from ragspan.judges.presets import PRESETS

RECORD = RagRecord(question="When?", contexts=["Beta settles at night."], response="At night.")
GROUNDED = json.dumps({"answer": {"grounding": {"reasoning": "stated", "verdict": "grounded"}}})
KEY = "key-0123456789"


@pytest.fixture(autouse=True)
def no_provider_is_set_up(monkeypatch):
    for preset in PRESETS.values():
        for name in (*preset.keys, *preset.places):
            monkeypatch.delenv(name, raising=False)


@pytest.fixture
def answers(fake_openai):
    fake_openai.answer = lambda request: fake_openai.says(*[GROUNDED] * request.get("n", 1))
    return fake_openai


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
async def test_each_provider_gets_its_own_key_and_no_parameter_that_it_does_not_take(preset, answers, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai-alone")
    for name in preset.keys[:1]:
        monkeypatch.setenv(name, KEY)

    votes = await named_judge(f"{preset.name}:{preset.example}", base_url=answers.base_url).vote_adherence(RECORD, 3)

    assert [vote.grounded for vote in votes] == [True] * 3
    assert {request["model"] for request in answers.requests} == {preset.example}
    assert {headers["authorization"] for headers in answers.headers} == {f"Bearer {KEY if preset.keys else 'no-key'}"}
    assert any("n" in request for request in answers.requests) == ("n" not in preset.left_out)
    assert {request["response_format"]["type"] for request in answers.requests} == {preset.response_format}


@pytest.mark.parametrize("preset", [one for one in PRESETS.values() if one.needs_key], ids=lambda one: one.name)
def test_a_missing_key_is_an_error_that_names_its_variables(preset, monkeypatch):
    for name in preset.places[:1]:
        if preset.default_place is None:
            monkeypatch.setenv(name, "https://resource.example" if "ENDPOINT" in name else "eu-central-1")

    with pytest.raises(ConfigurationError) as refusal:
        named_judge(f"{preset.name}:m")

    variables = " or ".join(("RAGSPAN_JUDGE_API_KEY", *preset.keys))
    told = f"there is no key for {preset.title}: set {variables}, or give api_key=; for a server that needs none, set "
    assert str(refusal.value) == f"{told}RAGSPAN_JUDGE_BASE_URL or give base_url="


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("azure", "Azure OpenAI: set AZURE_OPENAI_ENDPOINT or |'https://our-resource.openai.azure.com/openai/v1'"),
        (
            "bedrock",
            "Amazon Bedrock: set AWS_REGION or AWS_DEFAULT_REGION or |'https://bedrock-mantle.us-east-1.api.aws/v1'",
        ),
        ("vllm", "vLLM: set |'http://localhost:8000/v1'"),
    ],
)
def test_a_missing_address_is_an_error_that_names_its_variable(name, told):
    with pytest.raises(ConfigurationError) as refusal:
        named_judge(f"{name}:m", api_key=KEY)

    of_whom, example = told.split("|")
    given = "RAGSPAN_JUDGE_BASE_URL, or give base_url=, such as"
    assert str(refusal.value) == f"there is no address for {of_whom}{given} {example}"


@pytest.mark.parametrize(
    ("name", "variables", "address"),
    [
        ("openai", {"OPENAI_BASE_URL": "http://gateway:1/v1/"}, "http://gateway:1/v1"),
        ("azure", {"AZURE_OPENAI_ENDPOINT": "https://a.openai.azure.com/"}, "https://a.openai.azure.com/openai/v1"),
        ("azure", {}, None),
        ("bedrock", {"AWS_DEFAULT_REGION": "eu-west-1"}, "https://bedrock-mantle.eu-west-1.api.aws/v1"),
    ],
)
def test_an_address_is_completed_by_the_environment(monkeypatch, name, variables, address):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)

    assert PRESETS[name].base_url == address


async def test_openais_organization_is_told_to_openai_alone(answers, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")

    for name in ("openai", "anthropic"):
        await named_judge(f"{name}:m", base_url=answers.base_url, api_key=KEY).vote_adherence(RECORD, 1)

    told = [headers.get("openai-organization") for headers in answers.headers]
    assert told == ["org-1", None]
    assert [headers.get("openai-project") for headers in answers.headers] == ["proj-1", None]
