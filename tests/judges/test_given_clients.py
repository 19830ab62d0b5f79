"""Clients that users give: of Azure, of another event loop, synchronous, with an HTTP client of their own."""

from __future__ import annotations

import asyncio
import json

import openai
import pytest

from ragspan.exceptions import ConfigurationError, JudgeError
from ragspan.judges import OpenAIJudge

CLAIMS = json.dumps({"answer": {"claims": ["One."]}})
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
    with pytest.raises(JudgeError, match="connections belong to the event loop that used them first") as raised:
        asyncio.run(judge.extract_claims(super_bowl))
    assert raised.value.error_type == "ClientOfAnotherLoop"
    assert len(says_claims.requests) == 1


# Keys and proxies


@pytest.mark.parametrize("key", ["sk-\u2026abc", "sk-\nabc"])
async def test_a_key_that_cannot_be_sent_is_called_so(says_claims, super_bowl, key):
    judge = OpenAIJudge("m", base_url=says_claims.base_url, api_key=key)

    with pytest.raises(JudgeError, match="the key cannot be sent, because it holds a character") as raised:
        await judge.extract_claims(super_bowl)

    assert (raised.value.outage, raised.value.status) == (True, 401), "waiting does not mend it"
    assert key not in str(raised.value)
    assert says_claims.requests == []


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        ("socks5://user:pa55w0rd@127.0.0.1:1080", "SOCKS proxy .*pip install socksio"),
        ("nonsense://127.0.0.1:1080", "should be an address such as"),
    ],
)
def test_a_proxy_that_cannot_be_used_is_an_error_that_says_what_to_do(monkeypatch, proxy, words):
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("ALL_PROXY", proxy)

    with pytest.raises(ConfigurationError, match=words) as refusal:
        OpenAIJudge("m", base_url="http://judge.invalid/v1", api_key=KEY)

    assert "ALL_PROXY" in str(refusal.value)
    assert "pa55w0rd" not in str(refusal.value)
