"""Calls that answer nothing make no record, also where every call of the process is captured."""

from __future__ import annotations

import json

import pytest
from agent_programs import search_tool
from captures import Answered, CollectingSink
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import CommaSeparatedListOutputParser, JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, chain
from langchain_core.runnables.config import ensure_config, get_async_callback_manager_for_config
from langchain_core.tools import tool
from rag_programs import ANSWER, FOUND, QUESTION, documents, join_texts, rag_chain, retriever

import ragspan
from ragspan_langchain import RagspanLangChainInstrumentor


@tool
def multiply(a: int, b: int) -> int:
    """Multiply."""
    return a * b


PARTS = {
    "text parser": lambda config: StrOutputParser().invoke(AIMessage(ANSWER), config),
    "json parser": lambda config: JsonOutputParser().invoke('{"a": "b"}', config),
    "streamed parser": lambda config: list(CommaSeparatedListOutputParser().stream("a, b", config)),
    "prompt": lambda config: ChatPromptTemplate.from_messages([("human", "{q}"), ("ai", "I ")]).invoke("q", config),
    "tool": lambda config: multiply.invoke({"a": 2, "b": 3}, config),
    "search tool": lambda config: search_tool().invoke("pump", config),
    "retriever": lambda config: retriever().invoke(QUESTION, config),
    "retriever and formatter": lambda config: (retriever() | join_texts).invoke(QUESTION, config),
    "streamed retriever and formatter": lambda config: list((retriever() | join_texts).stream(QUESTION, config)),
    "documents as JSON": lambda config: (
        retriever() | (lambda found: json.dumps([each.model_dump() for each in found]))
    ).invoke(QUESTION, config),
    "documents in a field": lambda config: (retriever() | (lambda found: {"context": join_texts(found)})).invoke(
        QUESTION, config
    ),
    "formatter": lambda config: RunnableLambda(join_texts).invoke(documents(*FOUND), config),
}


@pytest.mark.parametrize("call", PARTS.values(), ids=PARTS)
def test_a_part_of_a_program_alone(captured, call):
    call(captured.config)

    assert captured.records() == []


def test_parts_that_a_function_calls_without_a_chain_around_them():
    sink = CollectingSink()
    RagspanLangChainInstrumentor().instrument(sink=sink)
    try:
        found = (retriever() | join_texts).invoke(QUESTION)
        StrOutputParser().invoke(AIMessage(found))
        multiply.invoke({"a": 2, "b": 3})
    finally:
        RagspanLangChainInstrumentor().uninstrument()

    assert [capture.to_record() for capture in sink.take()] == [None] * 3


def test_parts_inside_of_a_capture_block_belong_to_its_answer(captured):
    with ragspan.capture(QUESTION, sink=captured.sink) as answer:
        found = (retriever() | join_texts).invoke(QUESTION, captured.config)
        rag_chain().invoke(QUESTION, captured.config)
        answer.response = ANSWER
        assert found

    assert captured.answers() == [Answered(QUESTION, FOUND, ANSWER)]


def test_a_canned_answer_after_a_search_is_one(captured):
    program = retriever() | (lambda found: "I have nothing on that.")
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [], "I have nothing on that.")]


def test_a_function_that_answers_by_itself_is_a_request(captured):
    """Nothing tells it from a guard or a branch with a fixed sentence."""
    RunnableLambda(lambda question: "Good day!").invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [], "Good day!")]


# Programs elsewhere


class RemoteRunnable(Runnable):
    """Reports to callbacks what LangServe's client does; the program runs on a server, unseen."""

    def invoke(self, question, config=None, **kwargs):
        return self._call_with_config(lambda _: ANSWER, question, config)

    async def astream_events(self, question, config=None, **kwargs):
        config = ensure_config(config)
        manager = get_async_callback_manager_for_config(config)
        run = await manager.on_chain_start(dumpd(self), question, name=config.get("run_name"))
        events = [
            {
                "event": "on_chain_start",
                "run_id": "1",
                "name": "rag",
                "tags": [],
                "metadata": {},
                "data": {"input": question},
            },
            *({"event": "on_chain_stream", "run_id": "1", "data": {"chunk": word}} for word in ANSWER.split() * 100),
            {"event": "on_chain_end", "run_id": "1", "name": "rag", "tags": [], "data": {"output": ANSWER}},
        ]
        for event in events:
            yield event
        await run.on_chain_end(events)


def test_what_a_remote_program_searched_is_unknown(captured):
    RemoteRunnable().invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


async def test_the_events_of_a_remote_program_are_not_its_answer(captured):
    async for _ in RemoteRunnable().astream_events(QUESTION, captured.config):
        pass

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


def test_a_remote_program_as_a_step(captured):
    @chain
    def program(question):
        return f"{RemoteRunnable().invoke(question)} Ask again!"

    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, f"{ANSWER} Ask again!")]
