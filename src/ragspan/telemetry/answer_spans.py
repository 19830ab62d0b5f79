"""The spans of an answer, of its steps and of late outcomes, built after the fact from recorded times.

A span starts with the attributes that a sampler may use; the others follow, within the limit of attributes.
"""

from __future__ import annotations

from opentelemetry.trace import Link, Span, StatusCode, Tracer

from ragspan.messages import ErrorReport
from ragspan.outcomes import MetricFailure, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor, Step, ToolCall
from ragspan.telemetry import semconv
from ragspan.telemetry.content import ContentPolicy, EmitterOptions
from ragspan.telemetry.otel_context import context_with, span_context_of
from ragspan.telemetry.score_attributes import answer_attributes, evaluation_attributes
from ragspan.telemetry.step_attributes import KINDS, step_attributes, step_name
from ragspan.telemetry.values import clean_name, encodable, error_type, set_within_limit
from ragspan.turns import give_turn

_ALL_TIME = (0, 2**63 - 1)
_ANSWER_KINDS = {
    True: ("invoke_agent", "AGENT", semconv.GEN_AI_AGENT_NAME),
    False: ("invoke_workflow", "CHAIN", semconv.GEN_AI_WORKFLOW_NAME),
}
"""Operation, OpenInference's kind and the attribute of the name, of an agent's answers and of others."""


def interval(timed: RagRecord | Step, within: tuple[int, int] = _ALL_TIME) -> tuple[int, int]:
    """Start and end in Unix nanoseconds, clamped to `within`, unless that is empty because it was not recorded.

    OpenTelemetry accepts an end before the start, and a negative time fails only when a whole batch is encoded.
    """
    earliest, latest = within if within[0] < within[1] else _ALL_TIME
    started_ns = min(max(timed.started_ns, earliest), latest)
    return started_ns, min(max(timed.ended_ns, started_ns), latest)


def answer_name(record: RagRecord) -> str:
    """The name of the answer's span."""
    return clean_name(f"{_ANSWER_KINDS[record.is_agent][0]} {record.name}")


def start_answer(tracer: Tracer, record: RagRecord, content: ContentPolicy) -> Span:
    """Start the answer's span, under the record's parent if it has one."""
    operation, kind, name = _ANSWER_KINDS[record.is_agent]
    return tracer.start_span(
        answer_name(record),
        context=context_with(record.parent),
        start_time=interval(record)[0],
        attributes=encodable(
            {
                semconv.OPENINFERENCE_SPAN_KIND: kind,
                semconv.GEN_AI_OPERATION_NAME: operation,
                name: clean_name(record.name),
                semconv.RECORD_ID: record.record_id,
                semconv.FRAMEWORK: record.framework,
                semconv.ANSWER_STATUS: record.status,
                semconv.SESSION_ID: record.session_id,
                semconv.GEN_AI_CONVERSATION_ID: record.session_id,
                semconv.USER_ID: record.user_id if content.allows() else None,
            }
        ),
    )


def write_outcomes(answer: Span, scored: ScoredRecord, options: EmitterOptions) -> None:
    """Write the outcomes, and the error if there was one, on the answer's span."""
    record = scored.record
    set_within_limit(answer, answer_attributes(scored, options))
    if record.status == "error":
        _fail(answer, record.error_type, record.error, interval(record)[1], options)


def add_steps(tracer: Tracer, answer: Span, record: RagRecord, content: ContentPolicy) -> None:
    """Add the finished spans of all steps in the order of `record.steps`, tools first, each below its tool or else the answer."""
    spans: list[Span] = []
    tools = 0
    for step in record.steps:
        give_turn()
        started_ns, ended_ns = interval(step, interval(record))
        # A tool can only be inside one that began earlier.
        is_inside = step.within is not None and 0 <= step.within < tools
        start, rest = step_attributes(step, content)
        span = tracer.start_span(
            step_name(step),
            context=context_with(spans[step.within or 0] if is_inside else answer),
            kind=KINDS[type(step)][2],
            start_time=started_ns,
            attributes=encodable(start),
        )
        spans.append(span)
        tools += isinstance(step, ToolCall)
        failure = None if step.error_type is None else error_type(step.error_type)
        set_within_limit(span, {semconv.ERROR_TYPE: failure, **rest})
        if failure is not None:
            _fail(span, step.error_type, step.error, ended_ns, content)
        span.end(end_time=ended_ns)


def _fail(span: Span, kind: str | None, error: ErrorReport | None, at_ns: int, content: ContentPolicy) -> None:
    """Give the span the status ERROR, and the error's message if input and output are both allowed: it may quote them."""
    span.set_status(StatusCode.ERROR, error_type(kind))
    if error is None or not (content.allows(hidden_as="inputs") and content.allows(hidden_as="outputs")):
        return
    about = {semconv.EXCEPTION_TYPE: clean_name(error.type), semconv.EXCEPTION_MESSAGE: error.message}
    span.add_event(semconv.EVENT_EXCEPTION, encodable(about), timestamp=at_ns)


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
        clean_name(f"evaluation {metric}"),
        context=context_with(target),
        start_time=ended_ns,
        links=[Link(span_context_of(target))],
        attributes=encodable(
            {
                semconv.OPENINFERENCE_SPAN_KIND: "EVALUATOR",
                semconv.GEN_AI_OPERATION_NAME: "evaluation",
                semconv.RECORD_ID: scored.record.record_id,
                semconv.GEN_AI_EVALUATION_NAME: clean_name(metric),
            }
        ),
    )
    set_within_limit(span, evaluation_attributes(scored, metric, options))
    if isinstance(outcome, MetricFailure):
        span.set_status(StatusCode.ERROR, error_type(outcome.error_type))
    span.end(end_time=ended_ns)
