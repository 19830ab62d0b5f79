"""The answer's own span, built late from noted times.

Every span is started on a context of its own, so that nothing ambient in the worker's thread becomes its parent, and
with the attributes that a sampler may want to see; the others follow within the limit of attributes.
"""

from __future__ import annotations

from opentelemetry.trace import Span, StatusCode, Tracer

from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry import semconv
from ragspan.telemetry.anchors import context_with
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.limits import set_within_limit
from ragspan.telemetry.open_spans import AnswerSpans
from ragspan.telemetry.options import EmitterOptions
from ragspan.telemetry.score_attributes import Attributes, by_importance
from ragspan.telemetry.step_spans import end_step, finish_step, start_step
from ragspan.telemetry.times import answer_interval
from ragspan.telemetry.values import encodable, error_type, named


def start_answer(tracer: Tracer, record: RagRecord, content: ContentPolicy) -> Span:
    """Start the answer's span, under the record's parent if it has one."""
    started_ns, _ = answer_interval(record)
    return tracer.start_span(
        named(f"rag {record.name}"),
        context=context_with(record.parent),
        start_time=started_ns,
        attributes=encodable(
            {
                semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_CHAIN,
                semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_INVOKE_WORKFLOW,
                semconv.RECORD_ID: record.record_id,
                semconv.FRAMEWORK: record.framework,
                semconv.ANSWER_STATUS: record.status,
                semconv.SESSION_ID: record.session_id,
                semconv.USER_ID: record.user_id if content.allows("spans") else None,
            }
        ),
    )


def start_searches(tracer: Tracer, answer: Span, record: RagRecord) -> tuple[Span, ...]:
    """Start the spans of all searches that were made for the answer, in the record's order."""
    return tuple(start_step(tracer, answer, record, retrieval) for retrieval in record.retrievals)


def finish_answer(tracer: Tracer, spans: AnswerSpans, scored: ScoredRecord, options: EmitterOptions) -> None:
    """Give the answer's span its outcomes and its children, and end it whatever happens."""
    record = scored.record
    try:
        texts = _texts(record, options.content)
        set_within_limit(spans.answer, by_importance(scored.outcomes, _facts(scored), texts, options))
        if record.status == "error":
            spans.answer.set_status(StatusCode.ERROR, error_type(record.error_type))
        searches = spans.searches or start_searches(tracer, spans.answer, record)
        for search, retrieval in zip(searches, record.retrievals, strict=True):
            finish_step(search, record, retrieval, options)
        for generation in record.generations:
            finish_step(start_step(tracer, spans.answer, record, generation), record, generation, options)
    finally:
        end_answer(spans, record)


def end_answer(spans: AnswerSpans, record: RagRecord) -> None:
    """End the spans that have not ended, without anything further."""
    for search, retrieval in zip(spans.searches, record.retrievals, strict=False):
        if search.is_recording():
            end_step(search, record, retrieval)
    spans.answer.end(end_time=answer_interval(record)[1])


def _facts(scored: ScoredRecord) -> Attributes:
    record = scored.record
    return {
        semconv.ERROR_TYPE: error_type(record.error_type) if record.status == "error" else None,
        semconv.ANSWER_REFUSAL: scored.refusal,
        semconv.LANGUAGE: scored.language,
        semconv.CONTEXTS_COUNT: None if record.contexts is None else len(record.contexts),
        semconv.ANSWER_SWALLOWED_ERRORS: record.swallowed_errors or None,
        semconv.TAG_TAGS: record.tags or None,
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
