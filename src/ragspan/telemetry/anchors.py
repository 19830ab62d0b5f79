"""Between ragspan's plain `SpanAnchor` and OpenTelemetry's contexts."""

from __future__ import annotations

import re

from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    Span,
    SpanContext,
    TraceFlags,
    TraceState,
    get_current_span,
    set_span_in_context,
)

from ragspan.records import SpanAnchor

_TRACE_STATE = re.compile(r"[\x20-\x7e]{1,8192}")
"""OpenTelemetry logs what it cannot read, so what cannot be one at all is not shown to it."""


def anchor_of(span_context: SpanContext) -> SpanAnchor:
    return SpanAnchor(
        trace_id=span_context.trace_id,
        span_id=span_context.span_id,
        trace_flags=int(span_context.trace_flags),
        trace_state=span_context.trace_state.to_header(),
        is_remote=span_context.is_remote,
    )


def anchor_of_span(span: Span) -> SpanAnchor | None:
    """The span as an anchor; None where it is no valid one."""
    span_context = span.get_span_context()
    return anchor_of(span_context) if span_context.is_valid else None


def current_anchor(context: Context | None = None) -> SpanAnchor | None:
    """The span that is current in this thread or task, or in the context given, if there is one."""
    return anchor_of_span(get_current_span(context))


def span_context_of(anchor: SpanAnchor) -> SpanContext:
    """The anchor as OpenTelemetry has it, every flag kept; its `is_valid` is False where an id cannot be one."""
    state = anchor.trace_state
    return SpanContext(
        trace_id=anchor.trace_id,
        span_id=anchor.span_id,
        is_remote=anchor.is_remote,  # samplers may treat the two kinds of parent differently
        trace_flags=TraceFlags(anchor.trace_flags & 0xFF),
        trace_state=TraceState.from_header([state]) if _TRACE_STATE.fullmatch(state) else TraceState(),
    )


def is_valid(anchor: SpanAnchor | None) -> bool:
    return anchor is not None and span_context_of(anchor).is_valid


def context_with(span: Span | SpanAnchor | None) -> Context:
    """A context that holds the span alone; with None or an anchor that is not valid, a context that holds no span.

    It is never the ambient context of the worker's thread. Nor is it ever empty: OpenTelemetry takes an empty context
    of a log record or a measurement for none at all, and would put the ambient one in its place.
    """
    if isinstance(span, SpanAnchor):
        span_context = span_context_of(span)
        # An id that cannot be one would fail when a batch is encoded, and take the whole batch with it.
        span = NonRecordingSpan(span_context) if span_context.is_valid else None
    return set_span_in_context(INVALID_SPAN if span is None else span, Context())
