"""Clients that users give: of another event loop, with an HTTP client of their own."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges import OpenAIJudge

CLAIM = {"claim": "One.", "reasoning": "r", "verdict": "supported"}
CLAIMS = json.dumps({"answer": {"judged_claims": {"claims": [CLAIM], "more": False}}})
KEY = "sk-test-0123456789"


@pytest.fixture
def says_claims(fake_openai):
    fake_openai.answer = lambda _request: fake_openai.says(CLAIMS)
    return fake_openai


def ask_in_new_loops(judge, record, times=3):
    return [asyncio.run(judge.extract_claims(record)) for _ in range(times)]


def test_a_client_that_is_open_in_the_applications_loop_judges_in_the_engines_too(says_claims, super_bowl):
    client = openai.AsyncOpenAI(base_url=says_claims.base_url, api_key=KEY)
    judge = OpenAIJudge("m", client=client)

    async def application():
        await client.post("/chat/completions", body={"model": "m", "messages": []}, cast_to=object)
        both = await asyncio.gather(
            judge.extract_claims(super_bowl), asyncio.to_thread(ask_in_new_loops, judge, super_bowl)
        )
        await client.close()
        return both

    assert asyncio.run(application()) == [["One."], [["One."]] * 3]


def test_a_client_with_an_http_client_of_its_own_fails_in_a_second_loop_with_words(says_claims, super_bowl):
    http_client = openai.DefaultAsyncHttpxClient()
    judge = OpenAIJudge(
        "m", client=openai.AsyncOpenAI(base_url=says_claims.base_url, api_key=KEY, http_client=http_client)
    )

    async def ask_and_close():
        try:
            return await judge.extract_claims(super_bowl)
        finally:
            await http_client.aclose()

    assert asyncio.run(ask_and_close()) == ["One."]
    with pytest.raises(JudgeError, match="its http_client= belongs to another event loop") as raised:
        asyncio.run(judge.extract_claims(super_bowl))
    assert raised.value.error_type == "ClientOfAnotherLoop"
    assert len(says_claims.requests) == 1
