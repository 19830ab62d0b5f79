"""Anchors and suppression in OpenTelemetry's contexts."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry import context
from opentelemetry.instrumentation import utils
from opentelemetry.trace import get_current_span

from ragspan.records import SpanAnchor
from ragspan.telemetry import is_suppressed, suppressed
from ragspan.telemetry.otel_context import anchor_of, context_with, current_anchor, span_context_of

ANCHOR = SpanAnchor(trace_id=1, span_id=2, trace_flags=3, trace_state="a=1,b=2", is_remote=True)


def test_an_anchor_survives_the_way_through_opentelemetry():
    assert anchor_of(span_context_of(ANCHOR)) == ANCHOR


@pytest.mark.parametrize("nothing", [None, SpanAnchor(trace_id=0, span_id=0)])
def test_a_context_without_a_span_is_not_empty_and_hides_the_ambient_one(telemetry, nothing):
    with telemetry.tracer_provider.get_tracer("t").start_as_current_span("ambient"):
        made = context_with(nothing)

    assert made
    assert not get_current_span(made).get_span_context().is_valid


def test_the_current_span_is_found_where_there_is_one(telemetry):
    assert current_anchor() is None
    with telemetry.tracer_provider.get_tracer("t").start_as_current_span("current") as span:
        assert current_anchor() == anchor_of(span.get_span_context())


def test_instrumentations_see_that_they_should_keep_quiet():
    with suppressed():
        assert is_suppressed()
        assert not utils.is_instrumentation_enabled()
        assert not utils.is_http_instrumentation_enabled()
        assert context.get_value(context._SUPPRESS_HTTP_INSTRUMENTATION_KEY)

    assert not is_suppressed()
    assert utils.is_http_instrumentation_enabled()


async def test_a_task_started_inside_is_suppressed_and_its_neighbour_is_not():
    inside_is_on = asyncio.Event()
    neighbour_has_looked = asyncio.Event()

    async def judge():
        with suppressed():
            inside_is_on.set()
            await neighbour_has_looked.wait()
            return await asyncio.create_task(asyncio.to_thread(is_suppressed))

    async def neighbour():
        await inside_is_on.wait()
        seen = is_suppressed()
        neighbour_has_looked.set()
        return seen

    assert await asyncio.gather(judge(), neighbour()) == [True, False]
