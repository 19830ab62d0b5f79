"""Graphs of nodes."""

from __future__ import annotations

import json
from typing import Annotated, TypedDict

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
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from pydantic import BaseModel
from rag_programs import (
    ANSWER,
    FOUND,
    PUMP,
    QUESTION,
    TopicRetriever,
    chat_model,
    join_texts,
    look_up,
    rag_chain,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_node_that_searches_a_store(captured, call):
    list(getattr(rag_graph(), call)({"question": QUESTION}, captured.config))

    assert captured.answers() == [ON_THE_PUMP]


def test_a_graph_as_a_step_of_a_chain(captured):
    program = (lambda question: {"question": question}) | rag_graph() | (lambda state: state["answer"])
    program.invoke(QUESTION, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_an_output_schema_that_hides_the_documents(captured):
    class Output(TypedDict):
        answer: str

    graph = StateGraph(RagState, output_schema=Output)
    graph.add_sequence([retrieve_node, answer_node])
    graph.add_edge(START, "retrieve_node")
    graph.compile().invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_private_channel_between_two_nodes(captured):
    class Private(TypedDict):
        found: list[Document]

    class Public(TypedDict):
        question: str
        answer: str

    def find(state: Public) -> Private:
        return {"found": look_up(state["question"])}

    def answer(state: Private):
        return {"answer": chat_model().invoke(f"Use: {join_texts(state['found'])}").text}

    graph = StateGraph(Public)
    graph.add_node("find", find)
    graph.add_node("answer", answer, input_schema=Private)
    graph.add_edge(START, "find")
    graph.add_edge("find", "answer")
    graph.compile().invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


# Messages


def test_messages_under_a_name_of_their_own(captured):
    class Talk(TypedDict):
        talk: Annotated[list[AnyMessage], add_messages]
        found: list[Document]

    def find(state: Talk):
        return {"found": look_up(state["talk"][-1].text)}

    def answer(state: Talk):
        return {"talk": [chat_model().invoke([SystemMessage(join_texts(state["found"])), *state["talk"]])]}

    sequence(Talk, find, answer).invoke({"talk": [HumanMessage(QUESTION)]}, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_greeting_that_stands_before_the_conversation(captured):
    def answer(state: MessagesState):
        found = TopicRetriever().invoke(state["messages"][-1].text)
        return {"messages": [chat_model().invoke([SystemMessage(join_texts(found)), *state["messages"]])]}

    messages = [AIMessage("How can I help?"), HumanMessage(QUESTION)]
    sequence(MessagesState, answer).invoke({"messages": messages}, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


class Reply(BaseModel):
    text: str
    pages: list[int]


class ObjectState(TypedDict):
    question: str
    reply: Reply


def test_an_answer_that_the_graph_keeps_as_an_object(captured):
    def answer(state: ObjectState):
        return {"reply": Reply(text=rag_chain().invoke(state["question"]), pages=[1])}

    sequence(ObjectState, answer).invoke({"question": QUESTION}, captured.config)

    answer = captured.answer()
    assert (answer.question, answer.contexts) == (QUESTION, FOUND)
    assert json.loads(answer.response) == {"text": ANSWER, "pages": [1]}


# Turns


def test_an_answer_of_the_turn_before_is_not_this_turns(captured):
    """The second turn fails to answer; the state still holds the first answer."""

    def answer_pumps(state: RagState):
        return answer_node(state) if "pump" in state["question"] else {}

    graph = sequence(RagState, retrieve_node, answer_pumps, checkpointer=InMemorySaver())
    graph.invoke({"question": QUESTION}, captured.thread())
    graph.invoke({"question": "And the hose?"}, captured.thread())

    first, second = captured.answers()
    assert first == ON_THE_PUMP
    assert second.question == "And the hose?"
    assert second.status == "complete"


# Errors


def test_a_node_that_fails_after_the_answer(captured):
    def fail(state: RagState):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sequence(RagState, retrieve_node, answer_node, fail).invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], None, "error", "ZeroDivisionError")]
