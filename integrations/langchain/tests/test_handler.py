"""The handler and the instrumentor as objects: attached, switched off, copied, sent to another process; and what they leave alone."""

from __future__ import annotations

import asyncio
import copy
import pickle
import sys
import threading

import pytest
from captures import Answered, CollectingSink
from langchain_core.runnables import RunnableLambda
from lc_captures import ChainCaptures
from rag_programs import (
    ANSWER,
    FOUND,
    QUESTION,
    StreamingModel,
    rag_chain,
)

import ragspan
from ragspan_langchain import RagspanCallbackHandler, RagspanLangChainInstrumentor

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

    list(rag_chain().stream(QUESTION))
    assert captured.answers() == []
    assert other.record().generations[0].first_token_ns  # the tokens go there, too


def test_a_handler_class_of_ones_own_hears_the_tokens_and_hands_them_on(captured):
    heard = []

    class Listening(RagspanCallbackHandler):
        def on_llm_new_token(self, token, **about):
            heard.append(token)
            super().on_llm_new_token(token, **about)

    chain = rag_chain(model=StreamingModel(tokens=["It runs ", "for three ", "years."]))
    list(chain.stream(QUESTION, {"callbacks": [Listening(sink=captured.sink)]}))

    assert heard == ["It runs ", "for three ", "years."]
    assert captured.record().generations[0].first_token_ns


# Between ragspan and the program


@pytest.mark.usefixtures("no_engine_yet")
def test_a_handler_without_a_sink_takes_the_default_engine(monkeypatch):
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")
    handler = RagspanCallbackHandler()
    for caller in (handler, pickle.loads(pickle.dumps(handler))):
        rag_chain().invoke(QUESTION, config={"callbacks": [caller]})

    assert ragspan.default_engine().flush(timeout=60)
    assert ragspan.default_engine().stats().finished == 2


@pytest.mark.usefixtures("no_engine_yet")
def test_turned_off_the_handler_is_not_even_called(monkeypatch):
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")
    handler = RagspanCallbackHandler()

    rag_chain().invoke(QUESTION, config={"callbacks": [handler]})

    assert handler.ignore_chain
    assert handler.recorder.requests.sink.stats().submitted == 0


def test_an_error_in_a_callback_is_counted_and_costs_no_answer(captured, monkeypatch):
    monkeypatch.setitem(sys.modules, "openinference.instrumentation.langchain", object())  # in no version that we know
    recorder, sink = captured.handler.recorder, captured.sink
    rag_chain().invoke(QUESTION, captured.config)
    assert (captured.answers(), sink.errors) == ([COMPLETE], [])

    recorder.start("chain", [], QUESTION, None, {})  # an id that cannot be one
    recorder.end("chain", [], ANSWER)
    recorder.new_token("It", run_id=[])
    recorder.note_shown([], FOUND, "documents")
    counted, sink.errors = sink.errors, []
    assert counted == ["callback"] * 4


# Handlers that travel to another process, as Ray and Spark send chains with all that is in them


def test_a_sink_of_ones_own_stays_behind_and_the_copy_captures_nothing():
    with ragspan.ScoringEngine(metrics=[]) as engine:
        handler = RagspanCallbackHandler(sink=engine)
        copies = [pickle.loads(pickle.dumps(handler)) for _ in range(2)]
        for caller in (*copies, handler):
            RunnableLambda(lambda _: "Good day!").invoke("Hello?", {"callbacks": [caller]})

        assert engine.stats().submitted == 1
        assert type(copies[0]) is type(handler)


@pytest.mark.parametrize("make_copy", [copy.copy, copy.deepcopy])
def test_copies_in_the_same_process_are_the_same_handler(make_copy):
    handler = RagspanCallbackHandler(sink=CollectingSink())

    assert make_copy(handler) is handler
    assert make_copy({"callbacks": [handler], "question": QUESTION})["callbacks"][0] is handler


def test_what_goes_on_in_the_background_after_the_request_makes_no_record(captured):
    """A task that outlives its request, with the configuration of a run inside it; and what that task calls."""
    outlived = []

    def start(question, config):
        outlived.append(config)
        return question

    (RunnableLambda(start) | rag_chain()).invoke(QUESTION, captured.config)
    assert captured.answers() == [COMPLETE]

    nested = RunnableLambda(lambda question: rag_chain().invoke(question))
    for chain in (rag_chain(), nested):
        thread = threading.Thread(target=chain.invoke, args=(QUESTION, outlived[0]))
        thread.start()
        thread.join()

    assert captured.answers() == []
