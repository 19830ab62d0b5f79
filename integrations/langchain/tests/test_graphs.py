"""Graphs of nodes, also streamed, and left, cancelled or interrupted on the way."""

from __future__ import annotations

import contextlib
import operator
from typing import Annotated, Any, TypedDict

import pytest
from agent_programs import RagState, answer_node, rag_graph, retrieve_node, sequence
from captures import Answered, until
from langchain_core.documents import Document
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from rag_programs import (
    ANSWER,
    HOSE,
    MOTOR,
    PUMP,
    QUESTION,
    PausingModel,
    StreamingModel,
    TopicRetriever,
    answer_chain,
    chat_model,
    config_reaches_async_functions,
    join_texts,
    look_up,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


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


# Streams


def answering(model):
    def answer(state: RagState):
        return {"answer": model.invoke(f"{state['question']}\n{join_texts(state['context'])}").text}

    return answer


@pytest.mark.parametrize("mode", ["values", "updates", "messages", "custom", "debug", "tasks"])
def test_a_graph_streamed_to_its_end(captured, mode):
    list(rag_graph().stream({"question": QUESTION}, captured.config, stream_mode=mode))

    assert captured.answers() == [ON_THE_PUMP]


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
def test_a_graph_that_is_streamed_by_the_newest_protocol(captured):
    with rag_graph().stream_events({"question": QUESTION}, captured.config, version="v3") as stream:
        list(stream)

    assert captured.answers() == [ON_THE_PUMP]


# Left


def test_a_stream_of_messages_that_is_closed_among_the_tokens(captured):
    """The model goes on in a thread of its own, so that no callback tells how far the reader has come."""
    stream = rag_graph().stream({"question": QUESTION}, captured.config, stream_mode="messages")
    for message, _ in stream:
        if message.text:
            break
    stream.close()

    answer = captured.answer()
    assert (answer.question, answer.contexts) == (QUESTION, [PUMP])
    assert answer.response
    assert ANSWER.startswith(answer.response)


@config_reaches_async_functions
async def test_an_asynchronous_stream_of_messages_that_is_closed_among_the_tokens(captured):
    model = PausingModel(waiting=lambda: None)

    async def answer(state: RagState):
        return {"answer": (await model.ainvoke(f"{state['question']}\n{join_texts(state['context'])}")).text}

    graph = sequence(RagState, retrieve_node, answer)
    stream = graph.astream({"question": QUESTION}, captured.config, stream_mode="messages")
    async for message, _ in stream:
        if message.text:
            break
    await stream.aclose()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, [PUMP], "It ", "aborted")]


@pytest.mark.parametrize("mode", ["updates", "values"])
def test_a_stream_of_states_that_is_closed_before_the_answer(captured, mode):
    stream = rag_graph().stream({"question": QUESTION}, captured.config, stream_mode=mode)
    for chunk in stream:
        if "context" in chunk or "retrieve_node" in chunk:
            break
    stream.close()

    assert captured.answers() == [Answered(QUESTION, [], None, "aborted")]


def test_a_stream_of_updates_that_is_closed_after_the_answer(captured):
    """The reader got the answer; what the graph would have done afterwards is not a part of it."""

    def log(state: RagState):
        return {}

    stream = sequence(RagState, retrieve_node, answer_node, log).stream(
        {"question": QUESTION}, captured.config, stream_mode="updates"
    )
    for chunk in stream:
        if "answer_node" in chunk:
            break
    stream.close()

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.response) == (QUESTION, [PUMP], ANSWER)


def test_a_stream_of_updates_that_is_closed_while_a_model_streams_to_nobody(captured):
    """Tokens go to the callbacks, but a reader of updates has not got a word yet."""

    class LeftReader(Exception):
        """Breaks the graph off in the middle of the model's words."""

    def leave(text):
        raise LeftReader

    model = StreamingModel(tokens=["It ", "runs."], then=leave)

    def answer(state: RagState):
        return {"answer": "".join(chunk.text for chunk in model.stream(join_texts(state["context"])))}

    with contextlib.suppress(LeftReader):
        list(
            sequence(RagState, retrieve_node, answer).stream(
                {"question": QUESTION}, captured.config, stream_mode="updates"
            )
        )

    assert captured.answers() == [Answered(QUESTION, [PUMP], None, "error", "LeftReader")]


def test_a_streamed_graph_whose_model_dies(captured):
    def fail(text):
        if text == "runs ":
            raise ConnectionResetError

    model = StreamingModel(tokens=["It ", "runs ", "on."], then=fail)
    stream = sequence(RagState, retrieve_node, answering(model)).stream(
        {"question": QUESTION}, captured.config, stream_mode="messages"
    )
    with contextlib.suppress(ConnectionResetError):
        list(stream)

    assert captured.answers() == [Answered(QUESTION, [PUMP], "It runs ", "error", "ConnectionResetError")]
