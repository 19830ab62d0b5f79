"""Graphs whose results are streamed, and left, cancelled or interrupted on the way."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import TypedDict

import pytest
from agent_programs import RagState, answer_node, rag_graph, retrieve_node, search, search_agent, calls, sequence, user_says
from captures import Answered, until
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from rag_programs import (
    ANSWER,
    HOSE,
    PUMP,
    QUESTION,
    HangingModel,
    StreamingModel,
    chat_model,
    config_reaches_async_functions,
    join_texts,
    look_up,
    rag_chain,
    token,
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


async def test_a_graph_streamed_in_two_modes(captured):
    graph = rag_graph()
    async for _ in graph.astream({"question": QUESTION}, captured.config, stream_mode=["messages", "updates"]):
        pass

    assert captured.answers() == [ON_THE_PUMP]


async def test_a_graph_whose_events_are_streamed(captured):
    async for _ in rag_graph().astream_events({"question": QUESTION}, captured.config, version="v2"):
        pass

    assert captured.answers() == [ON_THE_PUMP]


def test_an_agent_whose_messages_are_streamed(captured):
    agent = search_agent(calls(search("pump")), ANSWER)
    list(agent.stream(user_says(QUESTION), captured.config, stream_mode="messages"))

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


async def test_an_asynchronous_stream_of_messages_that_is_closed_among_the_tokens(captured):
    stream = rag_graph().astream({"question": QUESTION}, captured.config, stream_mode="messages")
    async for message, _ in stream:
        if message.text:
            break
    await stream.aclose()
    await until(lambda: captured.sink.captures)

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.status) == (QUESTION, [PUMP], "aborted")
    assert answer.response
    assert ANSWER.startswith(answer.response)


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
        list(sequence(RagState, retrieve_node, answer).stream({"question": QUESTION}, captured.config, stream_mode="updates"))

    assert captured.answers() == [Answered(QUESTION, [PUMP], None, "error")]


def test_an_invoked_graph_that_fails_while_its_model_streams(captured):
    """The caller of `invoke` gets nothing before the end, whatever the callbacks saw."""

    def fail(text):
        raise ConnectionResetError

    model = StreamingModel(tokens=["It ", "runs."], then=fail)

    def answer(state: RagState):
        return {"answer": "".join(chunk.text for chunk in model.stream(join_texts(state["context"])))}

    with contextlib.suppress(ConnectionResetError):
        sequence(RagState, retrieve_node, answer).invoke({"question": QUESTION}, captured.config)

    assert captured.answers() == [Answered(QUESTION, [PUMP], None, "error")]


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

    assert captured.answers() == [Answered(QUESTION, [PUMP], "It runs ", "error")]


# Cancelled


@config_reaches_async_functions
async def test_an_invoked_graph_that_is_cancelled_in_its_model(captured):
    waiting = asyncio.Event()
    model = HangingModel(waiting=waiting.set)

    async def answer(state: RagState):
        return {"answer": (await model.ainvoke(f"{state['question']}\n{join_texts(state['context'])}")).text}

    graph = sequence(RagState, retrieve_node, answer)
    request = asyncio.create_task(graph.ainvoke({"question": QUESTION}, captured.config))
    await waiting.wait()
    request.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await request
    gc.collect()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, [PUMP], None, "aborted")]


@config_reaches_async_functions
async def test_a_streamed_graph_that_is_cancelled_in_its_model(captured):
    waiting = asyncio.Event()

    class PausingModel(HangingModel):
        async def _astream(self, *args, **kwargs):
            yield token("It ")
            self.waiting()
            await asyncio.Event().wait()

    model = PausingModel(waiting=waiting.set)

    async def answer(state: RagState):
        return {"answer": (await model.ainvoke(f"{state['question']}\n{join_texts(state['context'])}")).text}

    async def read():
        graph = sequence(RagState, retrieve_node, answer)
        async for _ in graph.astream({"question": QUESTION}, captured.config, stream_mode="messages"):
            pass

    request = asyncio.create_task(read())
    await waiting.wait()
    request.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await request
    gc.collect()
    await until(lambda: captured.sink.captures)

    assert captured.answers() == [Answered(QUESTION, [PUMP], "It ", "aborted")]


# Interrupted


def asking_retrieve(state: RagState):
    found = look_up(state["question"])
    interrupt("Go on?")
    return {"context": found}


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_a_node_that_waits_for_approval(captured, call):
    graph = rag_graph(asking_retrieve, checkpointer=InMemorySaver())
    list(getattr(graph, call)({"question": QUESTION}, captured.thread()))

    waiting = captured.answer()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")
    assert not waiting.contexts

    list(getattr(graph, call)(Command(resume="yes"), captured.thread()))

    assert captured.answers() == [ON_THE_PUMP]


async def test_a_node_that_waits_for_approval_in_asynchronous_code(captured):
    graph = rag_graph(asking_retrieve, checkpointer=InMemorySaver())
    await graph.ainvoke({"question": QUESTION}, captured.thread())
    await graph.ainvoke(Command(resume="yes"), captured.thread())

    waiting, resumed = captured.answers()
    assert (waiting.question, waiting.response, waiting.status) == (QUESTION, None, "interrupted")
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
