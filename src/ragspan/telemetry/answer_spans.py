"""The answer's own span, built late from noted times, and spans for outcomes that do not go on it.

Every span is started on a context of its own, so that nothing ambient in the worker's thread becomes its parent, and
with the attributes that a sampler may want to see; the others follow within the limit of attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opentelemetry.trace import Link, Span, StatusCode, Tracer

from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import RagRecord, Retrieval, SpanAnchor
from ragspan.telemetry import semconv
from ragspan.telemetry.anchors import anchor_of, context_with, span_context_of
from ragspan.telemetry.content import ContentPolicy, EmitterOptions
from ragspan.telemetry.score_attributes import (
    Attributes,
    by_importance,
    evaluation_result,
    flat_outcome,
    openinference_copies,
    response_id,
)
from ragspan.telemetry.step_spans import add_exception, answer_interval, end_step, finish_step, start_steps
from ragspan.telemetry.values import encodable, error_type, named, set_within_limit


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerSpans:
    """The spans of one answer that have been started."""

    answer: Span
    steps: tuple[Span, ...] = ()
    """One for each of the record's `steps`, in their order; none if they could not be started."""

    def searches(self, record: RagRecord) -> tuple[SpanAnchor, ...]:
        """Those of the record's searches, in their order."""
        pairs = zip(self.steps, record.steps, strict=False)
        return tuple(anchor_of(span.get_span_context()) for span, step in pairs if isinstance(step, Retrieval))


def start_answer(tracer: Tracer, record: RagRecord, content: ContentPolicy) -> Span:
    """Start the answer's span, under the record's parent if it has one."""
    started_ns, _ = answer_interval(record)
    name = named(record.name)
    return tracer.start_span(
        answer_name(record),
        context=context_with(record.parent),
        start_time=started_ns,
        attributes=encodable(
            {
                semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_AGENT if record.is_agent else semconv.KIND_CHAIN,
                semconv.GEN_AI_OPERATION_NAME: _operation(record),
                semconv.GEN_AI_AGENT_NAME if record.is_agent else semconv.GEN_AI_WORKFLOW_NAME: name,
                semconv.RECORD_ID: record.record_id,
                semconv.FRAMEWORK: record.framework,
                semconv.ANSWER_STATUS: record.status,
                semconv.SESSION_ID: record.session_id,
                semconv.GEN_AI_CONVERSATION_ID: record.session_id,
                semconv.USER_ID: record.user_id if content.allows("spans") else None,
            }
        ),
    )


def answer_name(record: RagRecord) -> str:
    """What the answer's span is called."""
    return named(f"{_operation(record)} {record.name}")


def _operation(record: RagRecord) -> str:
    return semconv.OPERATION_INVOKE_AGENT if record.is_agent else semconv.OPERATION_INVOKE_WORKFLOW


def finish_answer(tracer: Tracer, spans: AnswerSpans, scored: ScoredRecord, options: EmitterOptions) -> None:
    """Give the answer's span its outcomes and its children, and end it whatever happens."""
    record = scored.record
    try:
        texts = _texts(record, options.content)
        set_within_limit(
            spans.answer,
            by_importance(scored.outcomes, _facts(scored, options), texts, options),
        )
        if record.status == "error":
            spans.answer.set_status(StatusCode.ERROR, error_type(record.error_type))
            add_exception(spans.answer, record.error, answer_interval(record)[1], options.content)
        steps = spans.steps or start_steps(tracer, spans.answer, record)
        for span, step in zip(steps, record.steps, strict=True):
            finish_step(span, record, step, options)
    finally:
        end_answer(spans, record)


def end_answer(spans: AnswerSpans, record: RagRecord) -> None:
    """End the spans that have not ended, without anything further."""
    for span, step in zip(spans.steps, record.steps, strict=False):
        if span.is_recording():
            end_step(span, record, step)
    spans.answer.end(end_time=answer_interval(record)[1])


def _facts(scored: ScoredRecord, options: EmitterOptions) -> Attributes:
    record = scored.record
    return {
        semconv.ERROR_TYPE: error_type(record.error_type) if record.status == "error" else None,
        semconv.ANSWER_REFUSAL: scored.refusal,
        semconv.LANGUAGE: scored.language,
        semconv.CONTEXTS_COUNT: None if record.contexts is None else len(record.contexts),
        semconv.ANSWER_SWALLOWED_ERRORS: record.swallowed_errors or None,
        semconv.TAG_TAGS: record.tags or None,
        **options.dimensions.of(record),
        semconv.AGENT_NAME: named(record.name) if record.is_agent and options.openinference else None,
    }


def _texts(record: RagRecord, content: ContentPolicy) -> Attributes:
    question = record.question if content.allows("spans", hidden_as="inputs") else None
    response = record.response if content.allows("spans", hidden_as="outputs") else None
    return {
        semconv.INPUT_VALUE: question,
        semconv.INPUT_MIME_TYPE: None if question is None else semconv.MIME_TEXT,
        semconv.OUTPUT_VALUE: response,
        semconv.OUTPUT_MIME_TYPE: None if response is None else semconv.MIME_TEXT,
    }


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
    yield options.dimensions.of(scored.record)
    seconds = scored.durations.get(metric)
    yield {semconv.EVALUATION_DURATION_MS: None if seconds is None else seconds * 1000}
    if isinstance(outcome, Score):
        yield {semconv.label_attribute(metric): outcome.label}
    yield from openinference_copies({metric: outcome}, options)
