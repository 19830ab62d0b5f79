"""Graphs that stop to wait for a person, and go on."""

from __future__ import annotations

from typing import TypedDict

import pytest
from agent_programs import (
    RagState,
    answer_node,
    rag_graph,
    retrieve_node,
    sequence,
)
from captures import Answered
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from rag_programs import (
    ANSWER,
    HOSE,
    PUMP,
    QUESTION,
    chat_model,
    config_reaches_async_functions,
    look_up,
    rag_chain,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


def asking_retrieve(state: RagState):
    found = look_up(state["question"])
    interrupt("Go on?")
    return {"context": found}


@pytest.mark.parametrize("call", ["invoke", "stream", pytest.param("ainvoke", marks=config_reaches_async_functions)])
async def test_a_node_that_waits_for_approval(captured, call):
    graph = rag_graph(asking_retrieve, checkpointer=InMemorySaver())
    for given in ({"question": QUESTION}, Command(resume="yes")):
        called = getattr(graph, call)(given, captured.thread())
        list(called) if call != "ainvoke" else await called

    waiting, resumed = captured.answers()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")
    assert not waiting.contexts
    assert resumed == ON_THE_PUMP


def test_documents_found_before_the_interruption_count_for_the_resumed_request(captured):
    def approve(state: RagState):
        interrupt("Use these?")
        return {}

    graph = sequence(RagState, retrieve_node, approve, answer_node, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread())
    graph.invoke(Command(resume="yes"), captured.thread())

    waiting, resumed = captured.answers()
    assert (waiting.question, waiting.status) == (QUESTION, "interrupted")
    assert resumed == ON_THE_PUMP


def test_an_interruption_after_the_answer_was_written(captured):
    """A person reviews the draft; the first call ends without an answer."""

    def review(state: RagState):
        return {"answer": interrupt("Is this right?")}

    graph = sequence(RagState, retrieve_node, answer_node, review, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread())
    graph.invoke(Command(resume="Three years and a day."), captured.thread())

    waiting, resumed = captured.answers()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")
    assert (resumed.question, resumed.response, resumed.status) == (QUESTION, "Three years and a day.", "complete")


def test_two_interruptions_of_one_question(captured):
    def approve_twice(state: RagState):
        interrupt("Sure?")
        interrupt("Really?")
        return {}

    graph = sequence(RagState, retrieve_node, approve_twice, answer_node, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread())
    graph.invoke(Command(resume="yes"), captured.thread())
    graph.invoke(Command(resume="yes"), captured.thread())

    first, second, last = captured.answers()
    assert [(answer.question, answer.status) for answer in (first, second)] == [(QUESTION, "interrupted")] * 2
    assert last == ON_THE_PUMP


@pytest.mark.parametrize("where", [{"interrupt_before": ["answer_node"]}, {"interrupt_after": ["retrieve_node"]}])
def test_a_breakpoint_before_the_answer(captured, where):
    """The graph stops without raising anything inside, and goes on when it is called with nothing."""
    graph = rag_graph(checkpointer=InMemorySaver(), **where)
    graph.invoke({"question": QUESTION}, captured.thread())

    waiting = captured.answer()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")

    graph.invoke(None, captured.thread())

    assert captured.answers() == [ON_THE_PUMP]


def test_an_interruption_inside_an_inner_graph(captured):
    inner = sequence(RagState, asking_retrieve)
    graph = StateGraph(RagState)
    graph.add_node("research", inner)
    graph.add_node("answer_node", answer_node)
    graph.add_edge(START, "research")
    graph.add_edge("research", "answer_node")
    compiled = graph.compile(checkpointer=InMemorySaver())
    compiled.invoke({"question": QUESTION}, captured.thread())
    compiled.invoke(Command(resume="yes"), captured.thread())

    waiting, resumed = captured.answers()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")
    assert resumed == ON_THE_PUMP


def test_another_question_instead_of_a_resumption(captured):
    """The person does not answer, but asks something else in the same conversation."""
    graph = rag_graph(asking_retrieve, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread())
    graph.invoke({"question": "And the hose?"}, captured.thread())
    graph.invoke(Command(resume="yes"), captured.thread())

    statuses = [(answer.question, answer.status) for answer in captured.answers()]
    assert statuses == [(QUESTION, "interrupted"), ("And the hose?", "interrupted"), ("And the hose?", "complete")]


def test_an_interrupted_graph_that_answered_nothing_does_not_return_the_answer_before(captured):
    """The state still holds the answer of the turn before."""
    approvals = iter([False, True])

    class AskingState(TypedDict):
        question: str
        context: list[Document]
        answer: str

    def find(state: AskingState):
        if next(approvals, False):
            interrupt("Go on?")
        return {"context": look_up(state["question"])}

    graph = sequence(AskingState, find, answer_node, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread())
    graph.invoke({"question": "And the hose?"}, captured.thread())
    graph.invoke(Command(resume="yes"), captured.thread())

    assert captured.answers() == [
        ON_THE_PUMP,
        Answered("And the hose?", [], None, "interrupted"),
        Answered("And the hose?", [HOSE], ANSWER),
    ]


def test_a_chain_after_an_interrupted_graph(captured):
    """An interruption of one request says nothing about the next one."""
    graph = rag_graph(asking_retrieve, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread())
    rag_chain(model=chat_model("Another answer.")).invoke("Another question?", captured.config)

    waiting, other = captured.answers()
    assert waiting.status == "interrupted"
    assert (other.question, other.response, other.status) == ("Another question?", "Another answer.", "complete")
