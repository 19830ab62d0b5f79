"""Documents that no search brought: the caller gives them, or a state holds them."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

import pytest
from agent_programs import sequence
from captures import Answered
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel
from rag_programs import (
    ANSWER,
    FOUND,
    HOSE,
    PUMP,
    QUESTION,
    answer_chain,
    chat_model,
    documents,
    join_texts,
    look_up,
)

COMPLETE = Answered(QUESTION, FOUND, ANSWER)
SHOW = RunnablePassthrough.assign(context=lambda fields: join_texts(fields["context"])) | answer_chain()


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_documents_of_the_callers(captured, call):
    list(getattr(SHOW, call)({"question": QUESTION, "context": documents(*FOUND)}, captured.config))

    assert captured.answers() == [COMPLETE]


def test_documents_of_the_callers_of_which_none_is_used(captured):
    program = RunnablePassthrough.assign(context=lambda fields: []) | SHOW
    program.invoke({"question": QUESTION, "context": documents(*FOUND)}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


def test_one_document_of_the_callers(captured):
    program = RunnablePassthrough.assign(context=lambda fields: fields["page"].page_content) | answer_chain()
    program.invoke({"question": QUESTION, "page": Document(page_content=PUMP)}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER)]


def test_a_list_of_documents_and_a_question_apart(captured):
    """The chain is called with documents alone; the question is a part of the program."""
    program = RunnableLambda(lambda found: {"context": found, "question": QUESTION}) | SHOW
    program.invoke(documents(*FOUND), captured.config)

    answer = captured.answer()
    assert (answer.contexts, answer.response) == (FOUND, ANSWER)


def test_documents_as_dictionaries(captured):
    given = [{"page_content": text, "metadata": {"page": i}, "type": "Document"} for i, text in enumerate(FOUND)]
    program = (
        RunnablePassthrough.assign(
            context=lambda fields: "\n".join(found["page_content"] for found in fields["context"])
        )
        | answer_chain()
    )
    program.invoke({"question": QUESTION, "context": given}, captured.config)

    assert captured.answers() == [COMPLETE]


def test_texts_of_the_callers_are_not_documents(captured):
    """Nothing tells them from any other text that a chain is called with."""
    program = RunnablePassthrough.assign(context=lambda fields: "\n".join(fields["context"])) | answer_chain()
    program.invoke({"question": QUESTION, "context": FOUND}, captured.config)

    assert captured.answers() == [Answered(QUESTION, None, ANSWER)]


# In the state of a graph


class TypedState(TypedDict):
    question: str
    found: list[Document]
    answer: str


class Shelf(BaseModel):
    name: str
    pages: list[Document]


def value(state, name):
    return state[name] if isinstance(state, dict) else getattr(state, name)


def searching_graph(state_type, found=look_up, **options):
    def find(state: state_type):
        return {"found": found(value(state, "question"))}

    def answer(state: state_type):
        given = value(state, "found")
        given = given.pages if isinstance(given, Shelf) else given["pages"] if isinstance(given, dict) else given
        return {"answer": chat_model().invoke(f"{join_texts(given)}\n\n{value(state, 'question')}").text}

    return sequence(state_type, find, answer, **options)


def test_a_node_that_finds_nothing(captured):
    searching_graph(TypedState, lambda _: []).invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


def test_documents_that_nodes_add_to_one_list(captured):
    class AddingState(TypedDict):
        question: str
        found: Annotated[list[Document], operator.add]
        answer: str

    def find_first(state: AddingState):
        return {"found": documents(PUMP)}

    def find_more(state: AddingState):
        return {"found": documents(HOSE)}

    def answer(state: AddingState):
        return {"answer": chat_model().invoke(f"{join_texts(state['found'])}\n\n{state['question']}").text}

    sequence(AddingState, find_first, find_more, answer).invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP, HOSE], ANSWER)]


@pytest.mark.parametrize("again", [False, True])
def test_old_documents_that_the_state_still_holds(captured, again):
    """The second turn does not search; what the first one found counts only where the model is shown it again."""

    def find(state: TypedState):
        return {"found": look_up(state["question"])} if "pump" in state["question"] else {}

    def answer(state: TypedState):
        shown = join_texts(state["found"]) if again or "pump" in state["question"] else ""
        return {"answer": chat_model().invoke(f"{shown}\n\n{state['question']}").text}

    graph = sequence(TypedState, find, answer, checkpointer=InMemorySaver())
    for question in (QUESTION, "Are you sure?"):
        graph.invoke({"question": question}, captured.thread())

    second = Answered("Are you sure?", [PUMP] if again else [], ANSWER)
    assert captured.answers() == [Answered(QUESTION, [PUMP], ANSWER), second]
