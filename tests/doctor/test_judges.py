"""`ragspan judges`: which there are, and what one of them takes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ragspan.cli import app
from ragspan.judges.presets import PRESETS

KEY = "sk-test-0123456789"
USAGE = {"prompt_tokens": 900, "completion_tokens": 60, "prompt_tokens_details": {"cached_tokens": 800}}


def run(*arguments):
    return CliRunner().invoke(app, ["judges", *arguments])


def replies(fake_openai, *, verdict="grounded", usage=None, most=3):
    text = json.dumps({"answer": {"grounding": {"reasoning": "stated", "verdict": verdict}}})
    fake_openai.answer = lambda request: fake_openai.says(*[text] * min(request.get("n", 1), most), usage=usage)


@pytest.fixture
def judge(fake_openai, set_variables):
    set_variables(
        RAGSPAN_JUDGE="openai:m",
        RAGSPAN_JUDGE_BASE_URL=fake_openai.base_url,
        RAGSPAN_JUDGE_API_KEY=KEY,
    )
    return fake_openai


def test_all_are_listed_with_their_address_and_whether_their_key_is_set(set_variables, monkeypatch):
    for preset in PRESETS.values():
        for name in (*preset.keys, *preset.places):
            monkeypatch.delenv(name, raising=False)
    set_variables(MISTRAL_API_KEY=KEY, OPENAI_BASE_URL="https://user:password@gateway.example/v1")

    lines = {line.split()[0]: line for line in run().output.splitlines()}

    assert {f"{name}:<model>" for name in PRESETS} | {"overlap", "hhem", "langchain"} <= set(lines)
    assert lines["langchain"].endswith("from the package ragspan-langchain")
    assert "MISTRAL_API_KEY is set" in lines["mistral:<model>"]
    assert "GEMINI_API_KEY or GOOGLE_API_KEY: not set" in lines["gemini:<model>"]
    assert "none needed" in lines["ollama:<model>"]
    assert "https://api.anthropic.com/v1" in lines["anthropic:<model>"]
    assert "{AZURE_OPENAI_ENDPOINT}/openai/v1" in lines["azure:<model>"]
    assert "https://gateway.example/v1" in lines["openai:<model>"]
    assert "ragspan-hhem" in lines["hhem"]
    assert not any(secret in line for line in lines.values() for secret in (KEY, "password"))


def test_a_check_says_the_price_before_it_asks_and_then_what_it_learned(judge, set_variables):
    set_variables(RAGSPAN_JUDGE_OPTIONS='{"price": [1, 10, 0.5]}')
    asked = []
    replies(judge, usage=USAGE)
    answer = judge.answer
    judge.answer = lambda request: asked.append(request) or answer(request)

    result = run("check")

    first, *rest = result.output.splitlines()
    assert result.exit_code == 0
    assert first.startswith("openai:m: asks now, about ")
    assert ": $0.0" in first
    assert "3 of 3 votes find a good answer grounded" in rest[0]
    told = {line.split()[0]: line for line in rest[1:]}
    assert "sent, and not refused" in told["schema"]
    assert "3 votes in one request" in told["n"]
    assert "sent, and not refused" in told["temperature"]
    assert "900 in (800 from the cache), 60 out" in told["tokens"]
    assert "$0.001100 at $1 and $10 for a million tokens" in told["price"]
    assert KEY not in result.output


def test_it_tells_what_an_endpoint_refuses_and_does_not_report(judge):
    replies(judge)
    answer = judge.answer

    def refuses(request):
        for parameter in ("response_format", "temperature", "n"):
            if parameter in request:
                return judge.fails(400, f"Unsupported parameter: '{parameter}'", param=parameter)
        return answer(request)

    judge.answer = refuses
    result = run("check", "openai:m")

    told = {line.split()[0]: line for line in result.output.splitlines() if line.startswith("  ")}
    assert "left out, and JSON mode too" in told["schema"]
    assert "one vote a request" in told["n"]
    assert "left out" in told["temperature"]
    assert "it reports none" in told["tokens"]
    assert "not known: RAGSPAN_JUDGE_OPTIONS" in told["price"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["anthropic:claude"], 2, "ANTHROPIC_API_KEY"),
        (["gpt-4o"], 2, "did you mean 'openai:gpt-4o'"),
        (["overlap"], 0, "3 of 3 votes"),
    ],
)
def test_a_check_needs_a_judge_and_its_key(monkeypatch, arguments, code, words):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)

    result = run("check", *arguments)

    assert result.exit_code == code
    assert words in result.output


def test_a_judge_that_fails_or_errs_is_exit_1(judge):
    judge.answer = lambda _: judge.fails(401, "no")
    refused = run("check")
    replies(judge, verdict="not_grounded")
    wrong = run("check")

    assert (refused.exit_code, wrong.exit_code) == (1, 1)
    assert "no answer: AuthenticationError" in refused.output
    assert "0 of 3 votes find a good answer grounded" in wrong.output
