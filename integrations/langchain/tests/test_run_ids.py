"""Run ids that the caller gives, as LangServe does on every request."""

from __future__ import annotations

import uuid

import pytest
from agent_programs import calls, rag_graph, search, search_agent, user_says
from captures import Answered, all_but, until
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from rag_programs import ANSWER, FOUND, PUMP, QUESTION, first_chunks, look_up, rag_chain, retriever

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


@pytest.fixture(params=[uuid.uuid4, lambda: str(uuid.uuid4()), lambda: "request 17"], ids=["uuid", "text", "name"])
def config(captured, request):
    return captured.config | {"run_id": request.param()}


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_one_request_is_one_record(captured, config, call):
    list(getattr(rag_chain(), call)(QUESTION, config))

    assert captured.answers() == [COMPLETE]


async def test_an_asynchronous_stream_is_one_record(captured, config):
    async for _ in rag_chain().astream(QUESTION, config):
        pass

    assert captured.answers() == [COMPLETE]


async def test_a_stream_that_its_reader_leaves_is_aborted(captured, config):
    await all_but(3, rag_chain().astream(QUESTION, config))
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, FOUND, first_chunks(3), "aborted")]


def test_an_agent_with_a_search_is_one_record(captured, config):
    search_agent(calls(search("pump")), ANSWER).invoke(user_says(QUESTION), config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


def test_callbacks_that_are_passed_again_inside_join_the_request(captured, config):
    program = retriever() | (lambda found: rag_chain().invoke(QUESTION, captured.config))
    program.invoke(QUESTION, config)

    assert captured.answers() == [COMPLETE]


def test_two_requests_with_the_same_id_are_two_records(captured, config):
    for _ in range(2):
        rag_chain().invoke(QUESTION, config)

    assert captured.answers() == [COMPLETE] * 2


def test_a_graph_that_waits_and_goes_on(captured):
    def retrieve(state):
        found = look_up(state["question"])
        interrupt("Go on?")
        return {"context": found}

    graph = rag_graph(retrieve, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread() | {"run_id": str(uuid.uuid4())})
    graph.invoke(Command(resume="yes"), captured.thread() | {"run_id": str(uuid.uuid4())})

    waiting, resumed = captured.answers()
    assert (waiting.question, waiting.status) == (QUESTION, "interrupted")
    assert resumed == Answered(QUESTION, [PUMP], ANSWER)
