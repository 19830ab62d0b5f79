"""`ragspan.capture` around chains, and `ragspan.record_contexts` inside them."""

from __future__ import annotations

import contextlib

import pytest
from agent_programs import RagState, answer_node, calls, scripted_model, sequence, user_says
from captures import Answered
from langchain.agents import create_agent
from langchain_core.runnables import chain
from langchain_core.tools import tool
from rag_programs import (
    ANSWER,
    FILTER,
    FOUND,
    HOSE,
    PUMP,
    QUESTION,
    answer_chain,
    chat_model,
    join_texts,
    look_up,
    rag_chain,
    retriever,
)

from ragspan.capturing import capture, record_contexts

COMPLETE = Answered(QUESTION, FOUND, ANSWER)
ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


# A block around chains


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_chain_inside_a_block_makes_no_record_of_its_own(captured, call):
    with capture(sink=captured.sink):
        list(getattr(rag_chain(), call)(QUESTION, captured.config))

    assert captured.answers() == [COMPLETE]


def test_the_steps_of_a_second_chain_are_inside_its_own_tools(new_captures):
    """Two sinks see a chain each; the tool around a step is named by its place among all tools of the answer."""

    @tool
    def ask(question: str) -> str:
        """Asks the handbook."""
        return rag_chain().invoke(question)

    first, second = new_captures(), new_captures()
    with capture(QUESTION, sink=first.sink):
        for captures in (first, second):
            ask.invoke({"question": QUESTION}, captures.config)

    record = first.record()
    assert [call.name for call in record.tool_calls] == ["ask", "ask"]
    assert [search.within for search in record.retrievals] == [0, 1]
    assert [generation.within for generation in record.generations] == [0, 1]


def test_what_is_set_by_hand_goes_first(captured):
    with capture(QUESTION, sink=captured.sink, session_id="s-1") as answer:
        answer.response = rag_chain().invoke("rephrased words", captured.config).upper()

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, FOUND, ANSWER.upper())
    assert record.session_id == "s-1"


def test_a_retriever_and_a_model_that_are_called_apart(captured):
    with capture(QUESTION, sink=captured.sink) as answer:
        found = retriever().invoke(QUESTION, captured.config)
        prompt = f"{join_texts(found[:2])}\n\n{QUESTION}"
        answer.response = chat_model().invoke(prompt, captured.config).text

    record = captured.record()
    assert Answered.of(record) == Answered(QUESTION, FOUND[:2], ANSWER)
    assert len(record.retrievals) == 1
    assert len(record.generations) == 1


def test_two_chains_in_one_block(captured):
    """One finds what to ask the other for; the block's answer is the last one's."""
    with capture(sink=captured.sink):
        rag_chain(retriever(HOSE), chat_model("First words.")).invoke(QUESTION, captured.config)
        rag_chain(retriever(PUMP)).invoke("And then?", captured.config)

    answer = captured.answer()
    assert (answer.question, answer.response) == (QUESTION, ANSWER)
    assert PUMP in answer.contexts


def test_a_chain_that_fails_in_a_block(captured):
    def fail(_):
        raise ZeroDivisionError

    with contextlib.suppress(ZeroDivisionError), capture(sink=captured.sink):
        (rag_chain() | fail).invoke(QUESTION, captured.config)

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTION, FOUND, "error")


# Documents that callbacks cannot see


def search_by_hand(question):
    found = look_up(question)
    record_contexts(found)
    return found


@chain
def rag(question):
    return answer_chain().invoke({"context": join_texts(search_by_hand(question)), "question": question})


def test_documents_that_a_function_searches_for_itself(captured):
    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_documents_beside_those_of_a_retriever(captured):
    @chain
    def program(question):
        found = [*retriever(FILTER).invoke(question), *search_by_hand(question)]
        return answer_chain().invoke({"context": join_texts(found), "question": question})

    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [Answered(QUESTION, [FILTER, PUMP], ANSWER)]


def test_documents_that_a_tool_searches_for_itself(captured):
    @tool
    def look_up_page(query: str) -> str:
        """Look something up."""
        return join_texts(search_by_hand(query))

    agent = create_agent(scripted_model(calls(("look_up_page", {"query": "pump"})), ANSWER), [look_up_page])
    agent.invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_documents_inside_a_chain_inside_a_block(captured):
    with capture(sink=captured.sink):
        rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_node_before_and_a_node_after_the_recording_one(captured):
    """The recording node ends before the model is called; its documents count all the same."""

    def find(state: RagState):
        record_contexts(look_up(state["question"]))
        return {}

    def answer(state: RagState):
        return answer_node({**state, "context": look_up(state["question"])})

    sequence(RagState, find, answer).invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [ON_THE_PUMP]
