"""Handlers that travel to another process, as Ray and Spark send chains with all that is in them."""

from __future__ import annotations

import copy
import pickle

import pytest
from captures import CollectingSink, PlainSink, in_another_process
from langchain_core.runnables import RunnableLambda
from rag_programs import QUESTION

import ragspan
from ragspan_langchain import RagspanCallbackHandler

RECEIVE = """
import pickle, sys
import ragspan
handler = pickle.load(sys.stdin.buffer)
from langchain_core.runnables import RunnableLambda
RunnableLambda(lambda question: "Good day!").invoke("Hello?", {"callbacks": [handler]})
engine = ragspan.default_engine()
assert handler.recorder.requests.sink is engine
print(engine.stats().submitted)
engine.shutdown(timeout=5)
"""


class TaggedHandler(RagspanCallbackHandler):
    """A user's own."""


@pytest.fixture
def default_engine():
    engine = ragspan.ScoringEngine(metrics=[])
    before = ragspan.set_default_engine(engine)
    yield engine
    ragspan.set_default_engine(before)
    engine.shutdown(timeout=5)


@pytest.mark.parametrize("make", [RagspanCallbackHandler, TaggedHandler])
def test_a_handler_without_a_sink_reports_to_the_default_engine_of_where_it_is(default_engine, make):
    received = pickle.loads(pickle.dumps(make()))

    assert isinstance(received, make)
    assert received.recorder.requests.sink is default_engine
    assert received.open_runs == 0


@pytest.mark.slow
def test_it_reports_to_the_engine_of_another_process(default_engine):
    assert in_another_process(RECEIVE, given=pickle.dumps(RagspanCallbackHandler())) == "1\n"


def test_a_sink_that_can_travel_does():
    sink = PlainSink()
    sink.asked.append(QUESTION)
    received = pickle.loads(pickle.dumps(RagspanCallbackHandler(sink=sink)))

    assert received.recorder.requests.sink.asked == [QUESTION]


def test_an_engine_of_ones_own_stays_behind_and_the_copy_captures_nothing(caplog):
    with ragspan.ScoringEngine(metrics=[]) as engine:
        handler = RagspanCallbackHandler(sink=engine)
        copies = [pickle.loads(pickle.dumps(handler)) for _ in range(2)]
        for caller in (*copies, handler):
            RunnableLambda(lambda _: "Good day!").invoke("Hello?", {"callbacks": [caller]})

        assert engine.stats().submitted == 1
        assert type(copies[0]) is type(handler)
    assert [line for line in caplog.messages if "pickle" in line] == [
        "the sink of a handler does not pickle: a copy in another process captures nothing"
    ]


@pytest.mark.parametrize("make_copy", [copy.copy, copy.deepcopy])
def test_copies_in_the_same_process_are_the_same_handler(make_copy):
    handler = RagspanCallbackHandler(sink=CollectingSink())

    assert make_copy(handler) is handler
    assert make_copy({"callbacks": [handler], "question": QUESTION})["callbacks"][0] is handler
