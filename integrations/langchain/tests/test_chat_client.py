"""Chat models of LangChain as the client of an LLM judge, above all OpenAI's over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from fakes import InMemoryTelemetry
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langsmith.utils import get_env_var, tracing_is_enabled
from opentelemetry import trace
from rag_programs import QUESTION, chat_model, rag_chain

from ragspan import ConfigurationError, RagRecord, ScoringEngine
from ragspan.judges import JudgeError, LLMJudge
from ragspan.judges.llm import EndpointCapabilities
from ragspan.judges.llm.parts import PARTS, schema_of
from ragspan.metrics import ContextAdherence
from ragspan.telemetry import is_suppressed
from ragspan.testing import RecordingEmitter
from ragspan.usage import Usage
from ragspan_langchain import LangChainChatClient, RagspanLangChainInstrumentor

KEY = "sk-test-0123456789"
VOTE = {"reasoning": "stated", "verdict": "grounded"}
GROUNDED = json.dumps({"answer": {"grounding": VOTE}})
PROMPT = [
    {"role": "system", "content": "Judge what stands between the marks."},
    {"role": "user", "content": "Reply in JSON about the pump and its long warranty."},
]
RECORD = RagRecord(question="When?", contexts=["Beta settles at night."], response="At night.")


@pytest.fixture
def open_ai(fake_openai):
    """Makes OpenAI's chat model for the fake endpoint; it does not retry."""

    def make(**options):
        return ChatOpenAI(
            **({"model": "m", "base_url": fake_openai.base_url, "api_key": KEY, "max_retries": 0} | options)
        )

    return make


@pytest.fixture
def tracing_by_environment(monkeypatch):
    """LangSmith's tracing is on; it remembers what the environment said."""
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    get_env_var.cache_clear()
    yield
    monkeypatch.undo()
    get_env_var.cache_clear()


class ScriptedModel(BaseChatModel):
    """Calls `answer` with the messages of each request and replies what that returns: a message or a text."""

    answer: Callable[[Any], str | AIMessage]
    temperature: float | None = None

    def _generate(self, messages, stop=None, run_manager=None, **kwargs):
        reply = self.answer(messages)
        return ChatResult(
            generations=[ChatGeneration(message=reply if isinstance(reply, AIMessage) else AIMessage(reply))]
        )

    @property
    def _llm_type(self):
        return "scripted"


SCHEMA = schema_of([PARTS["grounding"]])


async def complete(client, n=1, temperature=0.0):
    return await client.complete(PROMPT, schema=SCHEMA, n=n, temperature=temperature)


async def texts(client, n=1):
    return [completion.text for completion in await complete(client, n)]


# What a request holds


async def test_each_vote_is_a_request_with_a_strict_schema_at_the_judges_temperature(fake_openai, open_ai):
    fake_openai.script(grounding=[VOTE] * 3)

    votes = await LLMJudge(LangChainChatClient(open_ai()), name="mine").vote_adherence(RECORD, 3)

    assert [vote.grounded for vote in votes] == [True] * 3
    assert [request["temperature"] for request in fake_openai.requests] == [0.7] * 3
    for request in fake_openai.requests:
        assert [message["role"] for message in request["messages"]] == ["system", "user"]
        assert request["response_format"]["json_schema"]["strict"] is True
        assert request["response_format"]["json_schema"]["schema"]["properties"] == SCHEMA["properties"]
        assert "n" not in request


async def test_a_model_without_tools_is_asked_by_the_prompt_alone():
    assert await texts(LangChainChatClient(chat_model(GROUNDED)), 2) == [GROUNDED] * 2


async def test_the_arguments_of_a_tool_are_the_reply_where_a_model_was_given_the_schema_so():
    calls = [{"name": "answer", "args": VOTE, "id": "1"}]
    client = LangChainChatClient(ScriptedModel(answer=lambda _: AIMessage("Well.", tool_calls=calls)))

    assert await texts(client) == [json.dumps(VOTE)]


@pytest.mark.parametrize("own", [None, 0.2])
async def test_the_applications_model_stays_as_it_is(own):
    seen = []
    model = ScriptedModel(answer=lambda _: GROUNDED, temperature=own, callbacks=[])
    before = model.model_dump()
    client = LangChainChatClient(model)
    client.model_at(0.5, EndpointCapabilities()).answer = lambda _: seen.append("asked") or GROUNDED

    await complete(client, temperature=0.5)

    assert seen == ["asked"]
    assert model.model_dump() == before


def test_what_is_no_chat_model_is_an_error():
    with pytest.raises(ConfigurationError, match=r"^model is .*, but should be a chat model of LangChain"):
        LangChainChatClient(RunnableLambda(str))


# Replies


async def test_a_reply_that_the_framework_cannot_parse_is_a_reply(fake_openai, open_ai):
    """What it cost is still accounted for, and the judge asks once more."""
    fake_openai.answer = lambda _request: fake_openai.says("I would rather not.")

    assert await texts(LangChainChatClient(open_ai())) == ["I would rather not."]


async def test_a_refusal_is_a_reply_without_text(fake_openai, open_ai):
    fake_openai.answer = lambda _request: fake_openai.says(None, refusal="I cannot help with that.")

    assert await texts(LangChainChatClient(open_ai())) == [""]
    with pytest.raises(JudgeError, match="the judge's model refused"):
        await LLMJudge(LangChainChatClient(open_ai()), name="j").vote_adherence(RECORD, 1)


async def test_an_error_that_quotes_the_key_does_not_show_it(fake_openai, open_ai):
    fake_openai.answer = lambda _request: fake_openai.fails(401, f"Incorrect API key provided: {KEY}.")

    with pytest.raises(JudgeError, match="Incorrect API key") as raised:
        await complete(LangChainChatClient(open_ai()))

    assert KEY not in str(raised.value)


# Kept apart from the application


async def test_votes_do_not_come_from_the_applications_cache():
    numbers = iter(range(10))
    set_llm_cache(InMemoryCache())
    try:
        found = await texts(LangChainChatClient(ScriptedModel(answer=lambda _: str(next(numbers)), cache=True)), 3)
    finally:
        set_llm_cache(None)

    assert sorted(found) == ["0", "1", "2"]


async def test_neither_callbacks_nor_spans_of_the_application_see_the_judge(captured):
    """Not even when it is asked in the middle of a request, with callbacks on the model itself."""
    seen = []

    class Listener(BaseCallbackHandler):
        def on_chat_model_start(self, *args, **kwargs):
            seen.append("the judge was heard")

    def look(_):
        seen.append((is_suppressed(), trace.get_current_span().get_span_context().is_valid))
        return GROUNDED

    client = LangChainChatClient(ScriptedModel(answer=look, callbacks=[captured.handler, Listener()]))

    @RunnableLambda
    async def answer(question):
        with InMemoryTelemetry().tracer_provider.get_tracer("app").start_as_current_span("endpoint"):
            await complete(client)
        return await rag_chain().ainvoke(question)

    await answer.ainvoke(QUESTION, captured.config)

    assert seen == [(True, False)]
    assert len(captured.record().generations) == 1


async def test_langsmith_does_not_see_the_judge(tracing_by_environment):
    seen = []
    client = LangChainChatClient(ScriptedModel(answer=lambda _: seen.append(tracing_is_enabled()) or GROUNDED))
    assert tracing_is_enabled()

    await complete(client)

    assert seen == [False]


def test_an_engine_scores_an_answer_with_the_model_that_wrote_it_and_records_no_judging(captured):
    model = ScriptedModel(answer=lambda messages: GROUNDED if "<<<" in messages[-1].text else "Three years.")
    emitter = RecordingEmitter()
    judge = LLMJudge(LangChainChatClient(model), name="mine")
    engine = ScoringEngine(metrics=[ContextAdherence(judge, polls=3)], emitters=[emitter])
    instrumentor = RagspanLangChainInstrumentor()
    instrumentor.instrument(sink=engine)
    try:
        rag_chain(model=model).invoke(QUESTION, captured.config)
        assert engine.flush(timeout=30)
    finally:
        instrumentor.uninstrument()
        engine.shutdown(timeout=30)

    [scored] = emitter.scored
    assert scored.record.response == "Three years."
    assert scored.outcomes["context_adherence"].value == 1.0
    assert scored.outcomes["context_adherence"].usage == Usage(requests=3)
    assert engine.stats().submitted == 1
    assert len(captured.records()) == 1
