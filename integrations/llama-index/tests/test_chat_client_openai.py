"""OpenAI's model of LlamaIndex as the client of an LLM judge, over real HTTP.

Skipped where `llama-index-llms-openai` is not installed: it takes `openai` before 3 only, and so is no part of the test
extra.
"""

from __future__ import annotations

import asyncio
import json

import pytest
from llama_index.core.llms import ChatMessage

from ragspan import RagRecord
from ragspan.judges import LLMJudge
from ragspan.judges.session import metered
from ragspan.outcomes import Usage
from ragspan_llama_index import LlamaIndexChatClient

VOTE = {"reasoning": "stated", "verdict": "grounded"}
GROUNDED = json.dumps({"answer": {"grounding": VOTE}})
RECORD = RagRecord(question="When?", contexts=["Beta settles at night."], response="At night.")


@pytest.fixture
def llm(fake_openai):
    """OpenAI's model for the fake endpoint; it does not retry."""
    openai = pytest.importorskip("llama_index.llms.openai", reason="llama-index-llms-openai is not installed")
    return openai.OpenAI("gpt-4o-mini", api_base=fake_openai.base_url, api_key="sk-test-0123456789", max_retries=0)


async def test_each_vote_is_a_request_with_a_strict_schema(fake_openai, llm):
    fake_openai.script(grounding=[VOTE] * 3)

    votes = await LLMJudge(LlamaIndexChatClient(llm), name="mine").vote_adherence(RECORD, 3)

    assert [vote.grounded for vote in votes] == [True] * 3
    assert [request["temperature"] for request in fake_openai.requests] == [0.7] * 3
    assert all(request["response_format"]["json_schema"]["strict"] for request in fake_openai.requests)


async def test_usage_is_reported_with_what_the_cache_gave(fake_openai, llm):
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "total_tokens": 1050,
        "prompt_tokens_details": {"cached_tokens": 896},
    }
    fake_openai.answer = lambda _request: fake_openai.says(GROUNDED, usage=usage)

    with metered() as meter:
        await LLMJudge(LlamaIndexChatClient(llm), name="mine").vote_adherence(RECORD, 2)

    assert meter.total == Usage(requests=2, input_tokens=2000, cached_tokens=1792, output_tokens=100)


@pytest.mark.parametrize("unknown", ["temperature", "response_format"])
async def test_a_parameter_that_an_endpoint_rejects_is_left_out_from_then_on(fake_openai, llm, unknown):
    own = llm.temperature

    def answer(request):
        if request.get(unknown, own) != own:
            return fake_openai.fails(400, f"Unsupported: {unknown}.", unknown)
        return fake_openai.says(GROUNDED)

    fake_openai.answer = answer
    judge = LLMJudge(LlamaIndexChatClient(llm), name="mine")

    assert len(await judge.vote_adherence(RECORD, 2)) == 2
    asked_before = len(fake_openai.requests)
    assert len(await judge.vote_adherence(RECORD, 2)) == 2
    assert len(fake_openai.requests) == asked_before + 2


async def test_application_and_judge_share_a_model_in_loops_of_their_own(fake_openai, llm):
    """The model keeps one asynchronous client, whose connections belong to the loop that opened them."""
    fake_openai.answer = lambda _request: fake_openai.says(GROUNDED)
    judge = LLMJudge(LlamaIndexChatClient(llm), name="mine")

    async with llm._get_aclient():  # closes it
        for _ in range(3):
            assert (await llm.achat([ChatMessage("hello")])).message.content == GROUNDED
            assert len(await asyncio.to_thread(asyncio.run, judge.vote_adherence(RECORD, 2))) == 2
