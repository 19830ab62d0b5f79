"""Spans for outcomes that came too late for the answer's span, or belong to a span of somebody else's."""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.trace import Link, StatusCode, Tracer

from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import SpanAnchor
from ragspan.telemetry import semconv
from ragspan.telemetry.anchors import context_with, span_context_of
from ragspan.telemetry.limits import set_within_limit
from ragspan.telemetry.options import EmitterOptions
from ragspan.telemetry.score_attributes import (
    Attributes,
    evaluation_result,
    flat_label,
    flat_outcome,
    openinference_copies,
    response_id,
)
from ragspan.telemetry.times import answer_interval
from ragspan.telemetry.values import encodable, error_type, named


def add_evaluation(
    tracer: Tracer, target: SpanAnchor, scored: ScoredRecord, metric: str, options: EmitterOptions
) -> None:
    """Add a finished span for one outcome below the answer's span, with a link that names it as the target.

    It lies at the answer's end, whenever the metric really ran: backends measure a trace from its first start to its
    last end, and an evaluation a minute later would make the answer look a minute slow.
    """
    outcome = scored.outcomes[metric]
    _, ended_ns = answer_interval(scored.record)
    span = tracer.start_span(
        named(f"{semconv.OPERATION_EVALUATION} {metric}"),
        context=context_with(target),
        start_time=ended_ns,
        links=[Link(span_context_of(target))],
        attributes=encodable(
            {
                semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_EVALUATOR,
                semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_EVALUATION,
                semconv.RECORD_ID: scored.record.record_id,
                semconv.GEN_AI_EVALUATION_NAME: named(metric),
                semconv.GEN_AI_RESPONSE_ID: response_id(scored.record),
            }
        ),
    )
    set_within_limit(span, _groups(scored, metric, options))
    if isinstance(outcome, MetricFailure):
        span.set_status(StatusCode.ERROR, error_type(outcome.error_type))
    span.end(end_time=ended_ns)


def _groups(scored: ScoredRecord, metric: str, options: EmitterOptions) -> Iterator[Attributes]:
    outcome = scored.outcomes[metric]
    yield flat_outcome(metric, outcome)  # so that one query over the flat names finds late scores, too
    yield evaluation_result(metric, outcome, options, "spans")
    seconds = scored.durations.get(metric)
    yield {semconv.EVALUATION_DURATION_MS: None if seconds is None else seconds * 1000}
    if isinstance(outcome, Score):
        yield flat_label(metric, outcome)
    yield from openinference_copies({metric: outcome}, options)
