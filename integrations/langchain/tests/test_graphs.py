"""Graphs of nodes."""

from __future__ import annotations

import json
import operator
from typing import Annotated, Any, TypedDict

import pytest
from agent_programs import RagState, answer_node, retrieve_node, sequence
from captures import Answered
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.types import Send
from pydantic import BaseModel
from rag_programs import (
    ANSWER,
    FOUND,
    HOSE,
    MOTOR,
    PUMP,
    QUESTION,
    TopicRetriever,
    answer_chain,
    chat_model,
    join_texts,
    look_up,
    rag_chain,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


def test_an_output_schema_that_hides_the_documents(captured):
    class Output(TypedDict):
        answer: str

    graph = StateGraph(RagState, output_schema=Output)
    graph.add_sequence([retrieve_node, answer_node])
    graph.add_edge(START, "retrieve_node")
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


# Branches, loops and fans


class FanState(TypedDict):
    question: str
    found: Annotated[list[Document], operator.add]
    answer: str


def fan_out(*topics):
    """One search for each topic at the same time, and one answer."""

    def find(state: dict[str, Any]):
        return {"found": TopicRetriever().invoke(state["topic"])}

    def answer(state: FanState):
        unique = {found.page_content: found for found in state["found"]}.values()
        return {"answer": chat_model().invoke(f"{state['question']}\n\n{join_texts(unique)}").text}

    graph = StateGraph(FanState)
    graph.add_node("find", find)
    graph.add_node("answer", answer)
    graph.add_conditional_edges(START, lambda state: [Send("find", {"topic": topic}) for topic in topics], ["find"])
    graph.add_edge("find", "answer")
    graph.add_edge("answer", END)
    return graph.compile()


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_searches_that_are_sent_out_at_the_same_time(captured, call):
    list(getattr(fan_out("motor", "pump", "motor hose"), call)({"question": QUESTION}, captured.config))

    assert captured.answers() == [Answered(QUESTION, [MOTOR, PUMP, HOSE], ANSWER)]


def test_a_function_with_tasks_instead_of_nodes(captured):
    @task
    def find(question):
        return look_up(question)

    @entrypoint()
    def rag(question):
        return answer_chain().invoke({"context": join_texts(find(question).result()), "question": question})

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [ON_THE_PUMP]
