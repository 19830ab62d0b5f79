"""`ragspan.capture` around chains, and `ragspan.record_contexts` inside them."""

from __future__ import annotations

import contextlib

import pytest
from agent_programs import calls, scripted_model, user_says
from captures import Answered
from langchain.agents import create_agent
from langchain_core.runnables import chain
from langchain_core.tools import tool
from rag_programs import (
    ANSWER,
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


def test_what_is_set_by_hand_goes_first(captured):
    with capture(QUESTION, sink=captured.sink, session_id="s-1") as answer:
        answer.response = rag_chain().invoke("rephrased words", captured.config).upper()

    assert captured.answers() == [Answered(QUESTION, FOUND, ANSWER.upper())]


def test_a_retriever_and_a_model_that_are_called_apart(captured):
    with capture(QUESTION, sink=captured.sink) as answer:
        found = retriever().invoke(QUESTION, captured.config)
        prompt = f"{join_texts(found[:2])}\n\n{QUESTION}"
        answer.response = chat_model().invoke(prompt, captured.config).text

    assert captured.answers() == [Answered(QUESTION, FOUND[:2], ANSWER)]


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


def test_documents_that_a_tool_searches_for_itself(captured):
    @tool
    def look_up_page(query: str) -> str:
        """Look something up."""
        return join_texts(search_by_hand(query))

    agent = create_agent(scripted_model(calls(("look_up_page", {"query": "pump"})), ANSWER), [look_up_page])
    agent.invoke(user_says(QUESTION), captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_tool_alone_that_says_that_it_found_nothing(captured):
    @tool
    def look_up_page(query: str) -> str:
        """Look something up."""
        record_contexts([])
        return "There is nothing."

    look_up_page.invoke({"query": QUESTION}, captured.config)

    assert captured.answer().contexts == []
