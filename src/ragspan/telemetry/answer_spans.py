"""The spans of an answer, of its steps and of late outcomes, built after the fact from recorded times.

Every span starts in a context of its own, so that no ambient span of the worker's thread becomes its parent. It starts with
the attributes that a sampler may use; the others follow, within the limit of attributes. OpenTelemetry accepts an end before
the start, and a negative time fails only when a whole batch is encoded, so recorded times are clamped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from opentelemetry.trace import Link, Span, SpanKind, StatusCode, Tracer

from ragspan.messages import ErrorReport
from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import Generation, RagRecord, Reranking, Retrieval, SpanAnchor, Step, ToolCall
from ragspan.telemetry import semconv
from ragspan.telemetry.content import ContentPolicy, EmitterOptions
from ragspan.telemetry.otel_context import context_with, span_context_of
from ragspan.telemetry.score_attributes import (
    answer_groups,
    claim_map,
    evaluation_result,
    flat_outcome,
    openinference_copy,
    response_id,
)
from ragspan.telemetry.step_attributes import essentials, step_groups
from ragspan.telemetry.values import Attributes, clean_name, encodable, error_type, set_within_limit

_ALL_TIME = (0, 2**63 - 1)


def interval(timed: RagRecord | Step, within: tuple[int, int] = _ALL_TIME) -> tuple[int, int]:
    """Start and end in Unix nanoseconds, clamped to `within`, unless that is empty because it was not recorded."""
    earliest, latest = within if within[0] < within[1] else _ALL_TIME
    started_ns = min(max(timed.started_ns, earliest), latest)
    return started_ns, min(max(timed.ended_ns, started_ns), latest)


def answer_name(record: RagRecord) -> str:
    """The name of the answer's span."""
    return clean_name(f"{_ANSWER_KINDS[record.is_agent].operation} {record.name}")


def start_answer(tracer: Tracer, record: RagRecord, content: ContentPolicy) -> Span:
    """Start the answer's span, under the record's parent if it has one."""
    kind = _ANSWER_KINDS[record.is_agent]
    return tracer.start_span(
        answer_name(record),
        context=context_with(record.parent),
        start_time=interval(record)[0],
        attributes=encodable(
            {
                semconv.OPENINFERENCE_SPAN_KIND: kind.kind,
                semconv.GEN_AI_OPERATION_NAME: kind.operation,
                semconv.GEN_AI_AGENT_NAME if record.is_agent else semconv.GEN_AI_WORKFLOW_NAME: clean_name(record.name),
                semconv.RECORD_ID: record.record_id,
                semconv.FRAMEWORK: record.framework,
                semconv.ANSWER_STATUS: record.status,
                semconv.SESSION_ID: record.session_id,
                semconv.GEN_AI_CONVERSATION_ID: record.session_id,
                semconv.USER_ID: record.user_id if content.allows("spans") else None,
            }
        ),
    )


def start_steps(tracer: Tracer, answer: Span, record: RagRecord) -> tuple[Span, ...]:
    """Start the spans of all steps in the order of `record.steps`, each below its tool, or else below the answer."""
    tools: list[Span] = []
    others: list[Span] = []
    for step in record.steps:
        kind = _KINDS[type(step)]
        # A tool can only be inside one that began earlier.
        is_inside = step.within is not None and 0 <= step.within < len(tools)
        span = tracer.start_span(
            step_name(step),
            context=context_with(tools[step.within or 0] if is_inside else answer),
            kind=kind.span_kind,
            start_time=interval(step, interval(record))[0],
            attributes=encodable(
                {
                    semconv.OPENINFERENCE_SPAN_KIND: kind.kind,
                    semconv.GEN_AI_OPERATION_NAME: kind.operation,
                    **essentials(step),
                }
            ),
        )
        (tools if isinstance(step, ToolCall) else others).append(span)
    return (*tools, *others)


def finish_answer(answer: Span, steps: Sequence[Span], scored: ScoredRecord, options: EmitterOptions) -> None:
    """Write the outcomes on the answer's span, finish its children, and end it, also if something fails."""
    record = scored.record
    try:
        set_within_limit(answer, answer_groups(scored, options))
        if record.status == "error":
            answer.set_status(StatusCode.ERROR, error_type(record.error_type))
            _add_exception(answer, record.error, interval(record)[1], options.content)
        for span, step in zip(steps, record.steps, strict=False):
            failure = None if step.error_type is None else error_type(step.error_type)
            set_within_limit(span, [{semconv.ERROR_TYPE: failure}, *step_groups(step, options)])
            if failure is not None:
                span.set_status(StatusCode.ERROR, failure)
                _add_exception(span, step.error, interval(step, interval(record))[1], options.content)
    finally:
        end_answer(answer, steps, record)


def end_answer(answer: Span, steps: Sequence[Span], record: RagRecord) -> None:
    """End the spans, whatever they have."""
    within = interval(record)
    for span, step in zip(steps, record.steps, strict=False):
        span.end(end_time=interval(step, within)[1])
    answer.end(end_time=within[1])


def _add_exception(span: Span, error: ErrorReport | None, at_ns: int, content: ContentPolicy) -> None:
    """Write the error's message on the span. It may quote input and output, so both must be allowed there."""
    if error is None or not all(content.allows("spans", hidden_as=hidden) for hidden in ("inputs", "outputs")):
        return
    about = {
        semconv.EXCEPTION_TYPE: clean_name(error.type),
        semconv.EXCEPTION_MESSAGE: error.message,
        semconv.EXCEPTION_STACKTRACE: error.stacktrace,
    }
    span.add_event(semconv.EVENT_EXCEPTION, encodable(about), timestamp=at_ns)


def step_name(step: Step) -> str:
    """The name of the step's span."""
    match step:
        case Retrieval():
            name = step.data_source_id or step.name
        case Generation():
            name = step.model or ""
        case _:
            name = step.name
    return clean_name(f"{_KINDS[type(step)].operation} {name}".rstrip())


class _Kind(NamedTuple):
    """The kind of a span, in OpenTelemetry's conventions and in OpenInference's."""

    operation: str
    kind: str
    span_kind: SpanKind = SpanKind.INTERNAL


_ANSWER_KINDS = {
    True: _Kind(semconv.OPERATION_INVOKE_AGENT, semconv.KIND_AGENT),
    False: _Kind(semconv.OPERATION_INVOKE_WORKFLOW, semconv.KIND_CHAIN),
}
"""Of an agent's answers, and of others."""
_KINDS: Mapping[type[Step], _Kind] = {
    ToolCall: _Kind(semconv.OPERATION_EXECUTE_TOOL, semconv.KIND_TOOL),
    Retrieval: _Kind(semconv.OPERATION_RETRIEVAL, semconv.KIND_RETRIEVER, SpanKind.CLIENT),
    Reranking: _Kind(semconv.OPERATION_RERANK, semconv.KIND_RERANKER),
    Generation: _Kind(semconv.OPERATION_CHAT, semconv.KIND_LLM, SpanKind.CLIENT),
}


def add_evaluation(
    tracer: Tracer, target: SpanAnchor, scored: ScoredRecord, metric: str, options: EmitterOptions
) -> None:
    """Add a finished span for one outcome below the answer's span, with a link to it.

    Its time is the answer's end, not the time of scoring: backends measure a trace from its first start to its last end, and
    an evaluation a minute later would make the answer look a minute slow.
    """
    outcome = scored.outcomes[metric]
    _, ended_ns = interval(scored.record)
    span = tracer.start_span(
        clean_name(f"{semconv.OPERATION_EVALUATION} {metric}"),
        context=context_with(target),
        start_time=ended_ns,
        links=[Link(span_context_of(target))],
        attributes=encodable(
            {
                semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_EVALUATOR,
                semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_EVALUATION,
                semconv.RECORD_ID: scored.record.record_id,
                semconv.GEN_AI_EVALUATION_NAME: clean_name(metric),
                semconv.GEN_AI_RESPONSE_ID: response_id(scored.record),
            }
        ),
    )
    set_within_limit(span, _evaluation_groups(scored, metric, options))
    if isinstance(outcome, MetricFailure):
        span.set_status(StatusCode.ERROR, error_type(outcome.error_type))
    span.end(end_time=ended_ns)


def _evaluation_groups(scored: ScoredRecord, metric: str, options: EmitterOptions) -> Iterator[Attributes]:
    outcome = scored.outcomes[metric]
    yield flat_outcome(metric, outcome)  # so that one query for the flat names finds late scores, too
    yield evaluation_result(metric, outcome, options, "spans")
    yield {**options.dimension_values.of(scored.record), semconv.ASKED: scored.asked}
    seconds = scored.durations.get(metric)
    yield {semconv.EVALUATION_DURATION_MS: None if seconds is None else seconds * 1000}
    if isinstance(outcome, Score):
        yield {semconv.LABEL + metric: outcome.label}
        yield {semconv.CLAIMS + metric: claim_map(scored.record, outcome, options.content)}
        if options.openinference:
            yield openinference_copy(0, metric, outcome)
