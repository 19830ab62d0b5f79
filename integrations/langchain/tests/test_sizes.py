"""What a capture says of its size, by which the engine's queue is bounded."""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from pathlib import Path
from typing import TypedDict

import pytest
from agent_programs import sequence
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from rag_programs import QUESTION, StreamingModel, chat_model, rag_chain, retriever

from ragspan_langchain import RagspanCallbackHandler

LARGE = "page " * 20_000  # 100,000 characters


def size_of(captured):
    return captured.sink.take()[-1].size_hint


PROGRAMS = {
    "input": RunnableLambda(lambda given: "Good day!"),
    "output": RunnableLambda(lambda given: LARGE),
    "output in a field": RunnableLambda(lambda given: {"answer": {"parts": [LARGE]}}),
    "output in a message": RunnableLambda(lambda given: {"messages": [AIMessage(LARGE)]}),
    "output in a call": RunnableLambda(
        lambda given: AIMessage("", tool_calls=[{"name": "a", "args": {"text": LARGE}, "id": "1"}])
    ),
    "prompt": RunnableLambda(lambda given: chat_model().invoke(LARGE).text),
    "reply": RunnableLambda(lambda given: chat_model(LARGE).invoke("Write.").text[:10]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_large_texts_count_wherever_they_are(captured, name):
    given = {"question": QUESTION, "text": LARGE} if name == "input" else QUESTION
    PROGRAMS[name].invoke(given, captured.config)

    assert 100_000 < size_of(captured) < 250_000


def test_a_small_request_is_small(captured):
    rag_chain().invoke(QUESTION, captured.config)

    assert size_of(captured) < 5000


def test_the_tokens_of_a_stream_count_each_as_a_text_of_its_own(captured):
    list(rag_chain(model=StreamingModel(tokens=["word "] * 2000)).stream(QUESTION, captured.config))

    assert size_of(captured) > 2000 * 50


def test_saved_states_of_a_graph_that_goes_on_count(captured):
    class State(TypedDict, total=False):
        text: str

    def ask(state: State):
        interrupt("Go on?")
        return {"text": "done"}

    graph = sequence(State, ask, checkpointer=InMemorySaver())
    graph.invoke({"text": LARGE}, captured.thread("large"))
    captured.sink.take()
    graph.invoke(Command(resume="yes"), captured.thread("large"))

    assert size_of(captured) > 100_000


# What is left after many requests of every kind


class CountingSink:
    """Counts records by their status and lets them go."""

    def __init__(self):
        self.statuses = Counter()

    def submit(self, capture):
        self.statuses[capture.to_record().status] += 1


def fail(answer):
    raise ZeroDivisionError


def ask_in_every_way(config, program, failing):
    program.invoke(QUESTION, config)
    list(program.stream(QUESTION, config))
    with contextlib.closing(program.stream(QUESTION, config)) as chunks:
        next(chunks)
    with contextlib.suppress(ZeroDivisionError):
        failing.invoke(QUESTION, config)


def resident_kilobytes():
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


@pytest.mark.slow
@pytest.mark.alone  # other tests of the process take memory, too
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's figures of the process")
def test_twenty_thousand_requests_leave_nothing_open_and_take_no_more_memory():
    sink = CountingSink()
    handler = RagspanCallbackHandler(sink=sink)
    config = {"callbacks": [handler]}
    program, failing = rag_chain(model=chat_model()), rag_chain(model=chat_model()) | fail
    for _ in range(1000):
        ask_in_every_way(config, program, failing)
    gc.collect()
    objects, kilobytes = len(gc.get_objects()), resident_kilobytes()

    for _ in range(4000):
        ask_in_every_way(config, program, failing)
    gc.collect()

    assert handler.open_runs == 0
    assert sink.statuses == {"complete": 10_000, "aborted": 5000, "error": 5000}
    assert len(gc.get_objects()) - objects < 1000
    assert resident_kilobytes() - kilobytes < 4096


# Records of long requests, and of documents that are made to be expensive


def test_contexts_are_not_known_where_it_would_take_too_long_to_look_for_them(captured):
    texts = [f"{'a ' * 300}b{number}" for number in range(300)]
    rag_chain(retriever(*texts), formatter=lambda _: "a " * 60_000).invoke(QUESTION, captured.config)

    assert captured.answer().contexts is None
