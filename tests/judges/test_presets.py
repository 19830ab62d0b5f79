"""Providers by name: where requests go, with which key, and what they do not hold."""

from __future__ import annotations

import json
import pickle

import pytest

from ragspan import ConfigurationError, RagRecord
from ragspan.judges import JudgeError, OpenAIJudge, named_judge
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
    assert any("n" in request for request in answers.requests) == preset.several_choices
    assert {request["response_format"]["type"] for request in answers.requests} == {preset.response_format}


@pytest.mark.parametrize("preset", [one for one in PRESETS.values() if one.needs_key], ids=lambda one: one.name)
def test_a_missing_key_is_an_error_that_names_its_variables(preset, monkeypatch):
    for name in preset.places[:1]:
        if preset.default_place is None:
            monkeypatch.setenv(name, "https://resource.example" if "ENDPOINT" in name else "eu-central-1")

    with pytest.raises(ConfigurationError) as refusal:
        named_judge(f"{preset.name}:m")

    for name in (preset.title, "RAGSPAN_JUDGE_API_KEY", *preset.keys):
        assert name in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "variables"),
    [("azure", "AZURE_OPENAI_ENDPOINT"), ("bedrock", "AWS_REGION"), ("vllm", "RAGSPAN_JUDGE_BASE_URL")],
)
def test_a_missing_address_is_an_error_that_names_its_variable(name, variables):
    with pytest.raises(ConfigurationError, match=f"there is no address for .*{variables}.*base_url="):
        named_judge(f"{name}:m", api_key=KEY)


@pytest.mark.parametrize(
    ("name", "variables", "address"),
    [
        ("openai", {}, "https://api.openai.com/v1"),
        ("openai", {"OPENAI_BASE_URL": "http://gateway:1/v1/"}, "http://gateway:1/v1"),
        ("azure", {"AZURE_OPENAI_ENDPOINT": "https://a.openai.azure.com/"}, "https://a.openai.azure.com/openai/v1"),
        ("azure", {"AZURE_OPENAI_ENDPOINT": "https://a.azure.com/openai/v1/"}, "https://a.azure.com/openai/v1"),
        ("azure", {}, None),
        ("bedrock", {"AWS_DEFAULT_REGION": "eu-west-1"}, "https://bedrock-mantle.eu-west-1.api.aws/v1"),
        ("bedrock", {"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}, "https://bedrock-mantle.a.api.aws/v1"),
        ("ollama", {}, "http://localhost:11434/v1"),
        ("vllm", {}, None),
    ],
)
def test_an_address_is_completed_by_the_environment(monkeypatch, name, variables, address):
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)

    assert PRESETS[name].base_url == address


def test_the_first_key_that_is_set_counts_and_a_given_one_before_it(monkeypatch):
    preset = PRESETS["gemini"]
    monkeypatch.setenv("GOOGLE_API_KEY", "second")

    assert preset.endpoint(None, None)[1] == "second"
    monkeypatch.setenv("GEMINI_API_KEY", "first")
    assert preset.endpoint(None, None)[1] == "first"
    assert preset.endpoint("http://here:1/v1", "given") == ("http://here:1/v1", "given")


async def test_a_wrong_key_is_an_error_that_names_the_providers_variable(fake_openai):
    fake_openai.answer = lambda _: fake_openai.fails(401, "invalid x-api-key")
    judge = named_judge("anthropic:claude-haiku-4-5", base_url=fake_openai.base_url, api_key=KEY)

    with pytest.raises(JudgeError, match=r"check the key: .*RAGSPAN_JUDGE_API_KEY or ANTHROPIC_API_KEY"):
        await judge.vote_adherence(RECORD, 1)


async def test_openais_organization_is_told_to_openai_alone(answers, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")

    for name in ("openai", "anthropic"):
        await named_judge(f"{name}:m", base_url=answers.base_url, api_key=KEY).vote_adherence(RECORD, 1)

    copy = pickle.loads(pickle.dumps(named_judge("anthropic:m", base_url=answers.base_url, api_key=KEY)))
    await copy.vote_adherence(RECORD, 1)

    told = [headers.get("openai-organization") for headers in answers.headers]
    assert told == ["org-1", None, None]
    assert [headers.get("openai-project") for headers in answers.headers] == ["proj-1", None, None]


async def test_further_headers_and_fields_are_on_each_request(answers):
    judge = OpenAIJudge(
        "m",
        base_url=answers.base_url,
        api_key=KEY,
        extra_headers={"anthropic-workspace-id": "wrkspc_1"},
        extra_body={"reasoning_effort": "low"},
    )

    await judge.vote_adherence(RECORD, 3)

    assert [headers["anthropic-workspace-id"] for headers in answers.headers] == ["wrkspc_1"] * len(answers.headers)
    assert all(request["reasoning_effort"] == "low" for request in answers.requests)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"provider": "antropic"}, "provider is 'antropic', but should be one of openai, azure"),
        ({"timeout": 0}, "timeout is 0, but should be a number of seconds"),
        ({"max_retries": -1}, "max_retries is -1"),
        ({"max_retries": True}, "max_retries is True"),
        ({"extra_body": "low"}, "extra_body is 'low', but should be a dictionary"),
        ({"extra_headers": {"a": 1}}, "extra_headers is a dict, but should be a dictionary of texts"),
        ({"extra_headers": {"a": "b\nc: d"}}, "extra_headers is a dict"),
    ],
)
def test_a_wrong_argument_is_refused(options, message):
    with pytest.raises(ConfigurationError, match=message):
        OpenAIJudge("m", api_key=KEY, **options)
