from __future__ import annotations

import pytest
from opentelemetry.trace import get_current_span

from ragspan.records import SpanAnchor
from ragspan.telemetry.otel_context import anchor_of, context_with, current_anchor, is_valid, span_context_of

ANCHOR = SpanAnchor(trace_id=1, span_id=2, trace_flags=3, trace_state="a=1,b=2", is_remote=True)


def test_an_anchor_survives_the_way_through_opentelemetry():
    assert anchor_of(span_context_of(ANCHOR)) == ANCHOR


@pytest.mark.parametrize("state", ["", "no pair", "A=upper case is not allowed"])
def test_a_trace_state_that_is_none_is_left_out(state):
    assert anchor_of(span_context_of(SpanAnchor(trace_id=1, span_id=2, trace_state=state))).trace_state == ""


@pytest.mark.parametrize(
    ("anchor", "valid"),
    [
        (None, False),
        (ANCHOR, True),
        (SpanAnchor(trace_id=0, span_id=2), False),
        (SpanAnchor(trace_id=2**128, span_id=2), False),
        (SpanAnchor(trace_id=1, span_id=-2), False),
    ],
)
def test_ids_that_cannot_be_ids_are_told(anchor, valid):
    assert is_valid(anchor) is valid


@pytest.mark.parametrize("nothing", [None, SpanAnchor(trace_id=0, span_id=0)])
def test_a_context_without_a_span_is_not_empty_and_hides_the_ambient_one(telemetry, nothing):
    with telemetry.tracer_provider.get_tracer("t").start_as_current_span("ambient"):
        context = context_with(nothing)

    assert context
    assert not get_current_span(context).get_span_context().is_valid


def test_the_current_span_is_found_where_there_is_one(telemetry):
    assert current_anchor() is None
    with telemetry.tracer_provider.get_tracer("t").start_as_current_span("current") as span:
        assert current_anchor() == anchor_of(span.get_span_context())
