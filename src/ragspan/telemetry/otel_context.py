"""OpenTelemetry's contexts: spans as ragspan's plain `SpanAnchor`, and the switch that keeps judges out of traces."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

from opentelemetry import context as otel_context
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

# OpenTelemetry has no public name for these keys, so a release may drop them. Instrumentations read the first one (early
# versions read the plain one); those of HTTP clients read the last one, too.
_PLAIN_KEY = "suppress_instrumentation"
_KEY: str = getattr(otel_context, "_SUPPRESS_INSTRUMENTATION_KEY", _PLAIN_KEY)
_HTTP_KEY: str = getattr(otel_context, "_SUPPRESS_HTTP_INSTRUMENTATION_KEY", _PLAIN_KEY)
_WORKER_KEY = otel_context.create_key("ragspan-worker")


def anchor_of_span(span: Span) -> SpanAnchor | None:
    """The span as an anchor; None if its ids are not valid."""
    span_context = span.get_span_context()
    if not span_context.is_valid:
        return None
    return SpanAnchor(
        trace_id=span_context.trace_id,
        span_id=span_context.span_id,
        trace_flags=int(span_context.trace_flags),
        trace_state=span_context.trace_state.to_header(),
        is_remote=span_context.is_remote,
    )


def current_anchor(context: Context | None = None) -> SpanAnchor | None:
    """The current span of this thread or task, or of the given context; None if there is none."""
    return anchor_of_span(get_current_span(context))


def span_context_of(anchor: SpanAnchor) -> SpanContext:
    """The anchor in OpenTelemetry's form, with every flag; its `is_valid` is False if an id is out of range."""
    return SpanContext(
        trace_id=anchor.trace_id,
        span_id=anchor.span_id,
        is_remote=anchor.is_remote,  # samplers may treat the two kinds of parent differently
        trace_flags=TraceFlags(anchor.trace_flags & 0xFF),
        trace_state=TraceState.from_header([anchor.trace_state]) if anchor.trace_state else TraceState(),
    )


def is_valid(anchor: SpanAnchor | None) -> bool:
    return anchor is not None and span_context_of(anchor).is_valid


def context_with(span: Span | SpanAnchor | None) -> Context:
    """A context that holds only this span; no span for None and for an anchor that is not valid.

    The ambient context of the worker's thread is never used. The result is never empty: OpenTelemetry treats the empty
    context of a log record or a measurement as no context, and uses the ambient one.
    """
    if isinstance(span, SpanAnchor):
        span_context = span_context_of(span)
        # An id out of range fails when a batch is encoded, and the whole batch is lost.
        span = NonRecordingSpan(span_context) if span_context.is_valid else None
    return set_span_in_context(INVALID_SPAN if span is None else span, Context())


def context_of_worker() -> contextvars.Context:
    """A new context in which handlers capture nothing. Spans can be made in it, unlike where instrumentation is suppressed."""
    made = contextvars.Context()
    made.run(otel_context.attach, Context({_WORKER_KEY: True}))
    return made


@contextlib.contextmanager
def suppressed() -> Iterator[None]:
    """Make instrumentations ignore what happens inside, also in tasks and threads with a copied context.

    Enter and leave it in the same task: OpenTelemetry's context belongs to a task.
    """
    quiet = Context({**otel_context.get_current(), **dict.fromkeys((_KEY, _PLAIN_KEY, _HTTP_KEY), True)})
    token = otel_context.attach(quiet)
    try:
        yield
    finally:
        otel_context.detach(token)


def is_suppressed(current: Context | None = None) -> bool:
    """Whether the caller runs in an engine's worker, inside `suppressed()`, or inside OpenTelemetry's own suppression.

    A handler asks this to ignore a judge's and an emitter's calls of a framework. `current` is the context, if it is known.
    """
    current = otel_context.get_current() if current is None else current
    return bool(current.get(_KEY) or current.get(_PLAIN_KEY) or current.get(_WORKER_KEY))
