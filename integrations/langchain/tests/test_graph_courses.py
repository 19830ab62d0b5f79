"""Graphs with branches, loops, fans and inner graphs."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

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
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send
from rag_programs import (
    ANSWER,
    HOSE,
    MOTOR,
    PUMP,
    QUESTION,
    TopicRetriever,
    answer_chain,
    chat_model,
    join_texts,
    look_up,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


def test_a_router_between_search_and_talk(captured):
    def route(state: RagState):
        return "retrieve_node" if "pump" in state["question"] else "talk"

    def talk(state: RagState):
        return {"answer": "Good day!"}

    graph = StateGraph(RagState)
    graph.add_node("retrieve_node", retrieve_node)
    graph.add_node("answer_node", answer_node)
    graph.add_node("talk", talk)
    graph.add_conditional_edges(START, route, ["retrieve_node", "talk"])
    graph.add_edge("retrieve_node", "answer_node")
    compiled = graph.compile()
    for question in (QUESTION, "Hello!"):
        compiled.invoke({"question": question}, captured.config)

    assert captured.answers() == [ON_THE_PUMP, Answered("Hello!", [], "Good day!")]


def test_a_loop_whose_first_search_was_graded_as_useless(captured):
    """A model saw the first result and called for another search."""

    def find(state: RagState):
        return {"context": TopicRetriever().invoke(state["question"])}

    def grade(state: RagState):
        verdict = chat_model("no").invoke(f"Useful for {state['question']}? {join_texts(state['context'])}").text
        return (
            Command(goto="find", update={"question": "the hose"})
            if "pump" in state["question"] and verdict
            else Command(goto="answer_node")
        )

    graph = StateGraph(RagState)
    graph.add_node("find", find)
    graph.add_node("grade", grade, destinations=("find", "answer_node"))
    graph.add_node("answer_node", answer_node)
    graph.add_edge(START, "find")
    graph.add_edge("find", "grade")
    graph.compile().invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [HOSE], ANSWER)]


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


def test_a_graph_that_a_node_invokes_with_a_state_of_its_own(captured):
    def research(state: RagState):
        return {"answer": rag_graph().invoke({"question": state["question"]})["answer"]}

    sequence(RagState, research).invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [ON_THE_PUMP]


def test_a_function_with_tasks_instead_of_nodes(captured):
    @task
    def find(question):
        return look_up(question)

    @entrypoint()
    def rag(question):
        return answer_chain().invoke({"context": join_texts(find(question).result()), "question": question})

    rag.invoke(QUESTION, captured.config)

    assert captured.answers() == [ON_THE_PUMP]
