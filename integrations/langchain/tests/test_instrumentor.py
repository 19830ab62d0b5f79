"""Capture without a change in the program, and switched off."""

from __future__ import annotations

import asyncio
import importlib.metadata
import threading

import pytest
from captures import Answered, CollectingSink
from langchain_core.runnables import RunnableLambda
from lc_captures import ChainCaptures
from openinference.instrumentation.langchain import LangChainInstrumentor
from rag_programs import ANSWER, FOUND, QUESTION, FixedRetriever, documents, rag_chain

from ragspan_langchain import RagspanLangChainInstrumentor

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


@pytest.fixture
def instrumented(captured):
    """Every LangChain call of the process is captured."""
    instrumentor = RagspanLangChainInstrumentor()
    instrumentor.instrument(sink=captured.sink)
    yield instrumentor
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()


def in_a_thread(config):
    thread = threading.Thread(target=rag_chain().invoke, args=(QUESTION,))
    thread.start()
    thread.join()


async def read():
    async for _ in rag_chain().astream(QUESTION):
        pass


CALLS = {
    "without a handler": lambda config: rag_chain().invoke(QUESTION),
    "with a handler": lambda config: rag_chain().invoke(QUESTION, config),
    "streamed with a handler": lambda config: list(rag_chain().stream(QUESTION, config)),
    "asynchronous": lambda config: asyncio.run(read()),
    "in a plain thread": in_a_thread,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_each_call_is_one_record(captured, instrumented, call):
    call(captured.config)

    assert captured.answers() == [COMPLETE]


def test_a_handler_of_another_sink_has_a_record_of_its_own(captured, instrumented, new_captures):
    other = new_captures()
    rag_chain().invoke(QUESTION, other.config)

    assert captured.answers() == [COMPLETE]
    assert other.answers() == [COMPLETE]


def test_a_retriever_that_passes_no_callbacks_on(captured, instrumented):
    """Its inner call would be a root of its own; it belongs to the request around it."""
    source = RunnableLambda(lambda question: FixedRetriever(result=lambda: documents(*FOUND)).invoke(question))
    rag_chain(source).invoke(QUESTION)

    assert captured.answers() == [COMPLETE]


def test_it_can_be_taken_off_and_put_on_again(captured, instrumented):
    other = ChainCaptures(CollectingSink())
    instrumented.uninstrument()
    rag_chain().invoke(QUESTION)
    assert captured.answers() == []

    instrumented.instrument(sink=captured.sink)
    rag_chain().invoke(QUESTION)
    assert captured.answers() == [COMPLETE]

    instrumented.uninstrument()
    instrumented.instrument(sink=other.sink)
    rag_chain().invoke(QUESTION)
    assert captured.answers() == []
    assert other.answers() == [COMPLETE]


@pytest.mark.parametrize("openinference_first", [True, False])
def test_beside_openinference(captured, openinference_first):
    """Whichever comes first, there is one record for a request."""
    ours, theirs = RagspanLangChainInstrumentor(), LangChainInstrumentor()
    instruments = [lambda: theirs.instrument(), lambda: ours.instrument(sink=captured.sink)]
    for instrument in instruments if openinference_first else reversed(instruments):
        instrument()
    try:
        rag_chain().invoke(QUESTION)
    finally:
        theirs.uninstrument()
        ours.uninstrument()

    assert captured.answers() == [COMPLETE]


def test_the_entry_point_is_the_instrumentor():
    points = importlib.metadata.entry_points(group="opentelemetry_instrumentor", name="ragspan_langchain")

    assert [point.load() for point in points] == [RagspanLangChainInstrumentor]


def test_what_is_instrumented_is_what_the_distribution_needs():
    """`opentelemetry-instrument` checks the same versions that the package installs with."""
    needed = importlib.metadata.requires("ragspan-langchain")
    wanted = RagspanLangChainInstrumentor().instrumentation_dependencies()

    assert len(wanted) == 1
    assert set(wanted) <= set(needed)
