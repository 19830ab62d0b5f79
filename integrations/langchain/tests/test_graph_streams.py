"""Graphs whose results are streamed, and left, cancelled or interrupted on the way."""

from __future__ import annotations

import contextlib

import pytest
from agent_programs import RagState, answer_node, rag_graph, retrieve_node, sequence
from captures import Answered, until
from rag_programs import (
    ANSWER,
    PUMP,
    QUESTION,
    PausingModel,
    StreamingModel,
    config_reaches_async_functions,
    join_texts,
)

ON_THE_PUMP = Answered(QUESTION, [PUMP], ANSWER)


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
