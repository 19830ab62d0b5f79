"""Requests that never end are handed over after a while."""

from __future__ import annotations

import pytest
from captures import CollectingSink
from li_programs import QUESTION, engine, token_by_token
from llama_index_instrumentation import get_dispatcher

from ragspan_llama_index.instrumentor import RagspanSpanHandler
from ragspan_llama_index.recorder import SpanRecorder


@pytest.fixture
def tracking():
    """Attaches a tracker of these limits; returns its sink and the tracker."""
    root = get_dispatcher()
    before = list(root.span_handlers)

    def attach(**limits):
        sink = CollectingSink()
        tracker = SpanRecorder(sink, **limits)
        root.add_span_handler(RagspanSpanHandler(tracker))
        return sink, tracker

    yield attach
    root.span_handlers = before


def endings(sink):
    return [(record.question, record.status) for record in (capture.to_record() for capture in sink.take())]


@token_by_token
def test_of_too_many_open_ones_the_oldest_goes(tracking):
    sink, tracker = tracking(max_open=2)
    held = [engine(streaming=True).query(f"{number}?") for number in range(4)]

    assert endings(sink) == [("0?", "aborted"), ("1?", "aborted")]

    assert all("".join(response.response_gen) for response in held)
    assert endings(sink) == [("2?", "complete"), ("3?", "complete")]
    assert tracker.open_spans == 0


@token_by_token
def test_one_in_which_nothing_begins_any_more_goes(tracking):
    sink, tracker = tracking(max_seconds=0, sweep_seconds=0)
    held = engine(streaming=True).query(QUESTION)
    engine().query("Another?")  # what happened before is noticed when this one begins
    engine().query("A third?")

    assert endings(sink) == [("Another?", "complete"), (QUESTION, "aborted"), ("A third?", "complete")]

    assert "".join(held.response_gen)
    assert endings(sink) == []
    assert tracker.open_spans == 0


@token_by_token
def test_one_that_is_younger_stays(tracking):
    sink, _ = tracking(max_seconds=3600, sweep_seconds=0)
    held = engine(streaming=True).query(QUESTION)
    engine().query("Another?")

    assert endings(sink) == [("Another?", "complete")]
    assert "".join(held.response_gen)
    assert endings(sink) == [(QUESTION, "complete")]
