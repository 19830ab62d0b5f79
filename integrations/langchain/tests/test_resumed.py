"""Requests that go on after an interruption: what was found, asked and drafted before it counts."""

from __future__ import annotations

import contextlib
from typing import TypedDict

import pytest
from agent_programs import RagState, answer_node, rag_graph, retrieve_node, search_agent, sequence, user_says
from captures import Answered
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from rag_programs import ANSWER, HOSE, PUMP, QUESTION, TopicRetriever, chat_model, join_texts

from ragspan.process import in_use
from ragspan_langchain.recorder import Interruptions

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


class DraftState(TypedDict, total=False):
    question: str
    notes: str
    answer: str


def find(state: DraftState):
    return {"notes": join_texts(TopicRetriever().invoke(state["question"]))}


def draft(state: DraftState):
    return {"answer": chat_model().invoke(f"{state['notes']}\n{state['question']}").text}


def review(state: DraftState):
    verdict = interrupt({"please approve": state["answer"]})
    return {} if verdict == "yes" else {"answer": verdict}


def ask(state: DraftState):
    interrupt("Go on?")
    return {}


def reviewed_graph(*nodes, **options):
    return sequence(DraftState, *(nodes or (find, draft, review)), checkpointer=InMemorySaver(), **options)


# The resumed request calls no model


def test_a_draft_that_a_person_replaces_keeps_the_documents_that_were_shown(captured):
    graph = reviewed_graph()
    graph.invoke({"question": QUESTION}, captured.thread())
    graph.invoke(Command(resume="Four years."), captured.thread())

    assert captured.answers()[1] == Answered(QUESTION, [PUMP], "Four years.")


def graph_with_documents():
    def review_answer(state: RagState):
        interrupt("Right?")
        return {}

    return sequence(RagState, retrieve_node, answer_node, review_answer, checkpointer=InMemorySaver())


def graph_in_a_graph():
    graph = StateGraph(DraftState)
    graph.add_node("write", sequence(DraftState, find, draft, review))
    graph.add_edge(START, "write")
    return graph.compile(checkpointer=InMemorySaver())


def note_graph():
    """A model made notes before the interruption, and another one answers from these."""

    def digest(state: DraftState):
        return {"notes": chat_model("The manual grants three years.").invoke(state["notes"]).text}

    def write(state: DraftState):
        return {"answer": chat_model().invoke(f"Notes: {state['notes']}").text}

    return reviewed_graph(find, digest, ask, write)


@pytest.mark.parametrize("make", [graph_with_documents, graph_in_a_graph, note_graph])
def test_what_was_found_before_the_interruption_counts(captured, make):
    graph = make()
    graph.invoke({"question": QUESTION}, captured.thread())
    graph.invoke(Command(resume="yes"), captured.thread())

    assert captured.answers()[1] == ON_THE_PUMP


# Who remembers


def test_conversations_do_not_share_what_they_found(captured):
    graph = reviewed_graph()
    graph.invoke({"question": QUESTION}, captured.thread("a"))
    graph.invoke({"question": "And the hose?"}, captured.thread("b"))
    graph.invoke(Command(resume="yes"), captured.thread("a"))
    graph.invoke(Command(resume="yes"), captured.thread("b"))

    assert captured.answers()[2:] == [ON_THE_PUMP, Answered("And the hose?", [HOSE], ANSWER)]


@pytest.fixture
def table(monkeypatch):
    """What handlers that are made later remember interrupted requests in."""
    table = Interruptions()
    monkeypatch.setitem(in_use._only, Interruptions, table)
    return table


def test_what_waits_is_bounded_and_the_oldest_goes_first(table, captured, monkeypatch):
    monkeypatch.setattr(table, "max_bytes", 15_000)

    def answer(state: RagState):
        interrupt("Go on?")
        return answer_node(state)

    graph = sequence(RagState, retrieve_node, answer, checkpointer=InMemorySaver())
    for number in range(40):
        graph.invoke({"question": QUESTION}, captured.thread(str(number)))
    captured.answers()

    assert 1 <= len(table.waiting) < 40
    graph.invoke(Command(resume="yes"), captured.thread("39"))
    assert captured.answers() == [ON_THE_PUMP]


# Graphs that stop otherwise


@pytest.mark.parametrize("where", [{"interrupt_before": ["answer_node"]}, {"interrupt_after": ["retrieve_node"]}])
def test_a_breakpoint_before_the_answer(captured, where):
    """The state holds what was found."""
    graph = rag_graph(checkpointer=InMemorySaver(), **where)
    graph.invoke({"question": QUESTION}, captured.thread())
    graph.invoke(None, captured.thread())

    assert captured.answers() == [ON_THE_PUMP]


def test_a_reader_who_leaves_at_the_interruption_leaves_an_interrupted_request(captured):
    graph = reviewed_graph(find, ask, draft)
    with contextlib.closing(graph.stream({"question": QUESTION}, captured.thread(), stream_mode="updates")) as chunks:
        next(chunk for chunk in chunks if "__interrupt__" in chunk)
    graph.invoke(Command(resume=1), captured.thread())

    waiting, answered = captured.answers()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")
    assert answered == ON_THE_PUMP


def test_a_new_question_makes_what_was_found_for_the_waiting_one_void(captured):
    graph = reviewed_graph(find, ask, draft)
    graph.invoke({"question": QUESTION}, captured.thread())
    search_agent(f"{ANSWER} {PUMP}", checkpointer=InMemorySaver()).invoke(user_says("Thank you!"), captured.thread())
    graph.invoke(Command(resume="yes"), captured.thread())

    assert captured.answers()[2].contexts is None
