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


def test_a_check_says_what_the_judge_answered_and_what_that_took(judge, set_variables):
    set_variables(RAGSPAN_JUDGE_OPTIONS='{"price": [1, 10, 0.5]}')
    replies(judge, usage=USAGE)

    result = run("check")

    assert result.exit_code == 0
    assert "3 of 3 votes find a good answer grounded" in result.output
    assert "requests 1, tokens 900 in, 60 out; $0.001100" in result.output
    assert KEY not in result.output


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
