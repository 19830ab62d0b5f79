"""Judges and clients that are none: the message says what is wrong, where, and what to do."""

from __future__ import annotations

import re

import openai
import pytest

from ragspan.evaluate import evaluate
from ragspan.exceptions import ConfigurationError
from ragspan.judges import Jury, LLMJudge, OpenAIJudge
from ragspan.metrics import Faithfulness
from ragspan.testing import FakeJudge

ROWS = [{"question": "q", "contexts": ["c"], "answer": "a"}]
KEY = "sk-of-the-test"


class PlainClient:
    def complete(self, messages, *, schema, n, temperature):
        return []


class PlainJudge(FakeJudge):
    def verify_claims(self, record, claims):
        return []


@pytest.mark.parametrize(
    ("client", "message"),
    [
        (PlainClient(), "complete() of client, a PlainClient, is a plain function, but should be `async def complete`"),
        (None, "client is None, but should be a ChatClient, with a method complete()"),
        (openai.OpenAI(api_key=KEY), "client is an OpenAI, but should be a ChatClient"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_client_that_cannot_complete_a_chat_is_refused(client, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        LLMJudge(client, name="ours")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Faithfulness(PlainJudge()), "verify_claims() of judge, a PlainJudge, is a plain function"),
        (lambda: Jury([FakeJudge(), object()]), "judges[1] is an object, but should be a judge"),
        (
            lambda: OpenAIJudge("m", client=openai.OpenAI(api_key=KEY)),
            "client is an OpenAI, but should be an openai.AsyncOpenAI",
        ),
    ],
    ids=["metric", "jury", "client"],
)
def test_what_is_no_judge_is_refused_where_it_is_given(made, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        made()


@pytest.mark.parametrize(
    ("judge", "message"),
    [
        (
            [],
            "judge is an empty list, but should be a judge, or its name, such as 'openai:gpt-4o-mini', or a list of several",
        ),
        ([""], "judge[0] is '', but should be a judge, or its name, such as 'openai:gpt-4o-mini'"),
        (openai.AsyncOpenAI(api_key=KEY), "make one of the client: OpenAIJudge('gpt-4o-mini', client=…)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_judge_of_a_table_is_refused_and_says_what_is_one(judge, message):
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        evaluate(ROWS, "faithfulness", judge=judge)


def test_a_wrong_option_in_the_variable_says_that_it_is_there(monkeypatch):
    monkeypatch.setenv("RAGSPAN_JUDGE_OPTIONS", '{"timeout": "60"}')

    with pytest.raises(
        ConfigurationError, match="RAGSPAN_JUDGE_OPTIONS: timeout is a text, but should be a number of sec"
    ):
        evaluate(ROWS, "faithfulness", judge="ollama:m")
