"""Spans for the steps of an answer: its tools, searches, rerankers and calls of language models.

OpenTelemetry accepts an end before the start in silence, and a negative time only fails when a whole batch is encoded, so noted
times (Unix nanoseconds) are clamped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from ragspan.records import Generation, RagRecord, Reranking, Retrieval, Step, ToolCall
from ragspan.step_texts import ErrorReport
from ragspan.telemetry import semconv
from ragspan.telemetry.anchors import context_with
from ragspan.telemetry.content import ContentPolicy, EmitterOptions
from ragspan.telemetry.score_attributes import Attributes
from ragspan.telemetry.step_attributes import step_groups
from ragspan.telemetry.values import encodable, error_type, named, set_within_limit

_ALL_TIME = (0, 2**63 - 1)


def answer_interval(record: RagRecord) -> tuple[int, int]:
    return _clamped(record.started_ns, record.ended_ns, _ALL_TIME)


def step_interval(record: RagRecord, step: Step) -> tuple[int, int]:
    """A step's times, inside the answer's; as they are where the answer's own times were never noted."""
    answer = answer_interval(record)
    return _clamped(step.started_ns, step.ended_ns, answer if answer[0] < answer[1] else _ALL_TIME)


def _clamped(started_ns: int, ended_ns: int, within: tuple[int, int]) -> tuple[int, int]:
    earliest, latest = within
    started_ns = min(max(started_ns, earliest), latest)
    return started_ns, min(max(ended_ns, started_ns), latest)


def start_steps(tracer: Tracer, answer: Span, record: RagRecord) -> tuple[Span, ...]:
    """Start the spans of all steps, in the order of `record.steps`: below the tool that made them, else the answer."""
    tools: list[Span] = []
    others: list[Span] = []
    for step in record.steps:
        # A tool that began later cannot be the one.
        is_inside = step.within is not None and 0 <= step.within < len(tools)
        span = _start_step(tracer, tools[step.within or 0] if is_inside else answer, record, step)
        (tools if isinstance(step, ToolCall) else others).append(span)
    return (*tools, *others)


def finish_step(span: Span, record: RagRecord, step: Step, options: EmitterOptions) -> None:
    """Give a step's span all that is to be said of it, and end it."""
    failure = None if step.error_type is None else error_type(step.error_type)
    set_within_limit(span, [{semconv.ERROR_TYPE: failure}, *step_groups(step, options)])
    if failure is not None:
        span.set_status(StatusCode.ERROR, failure)
        add_exception(span, step.error, step_interval(record, step)[1], options.content)
    end_step(span, record, step)


def end_step(span: Span, record: RagRecord, step: Step) -> None:
    span.end(end_time=step_interval(record, step)[1])


def add_exception(span: Span, error: ErrorReport | None, at_ns: int, content: ContentPolicy) -> None:
    """Say on a span what the error said, which may quote what went in and what came out, if both may stand there."""
    allowed = all(content.allows("spans", hidden_as=hidden) for hidden in ("inputs", "outputs"))
    if error is None or not allowed:
        return
    about = {
        semconv.EXCEPTION_TYPE: named(error.type),
        semconv.EXCEPTION_MESSAGE: error.message,
        semconv.EXCEPTION_STACKTRACE: error.stacktrace,
    }
    span.add_event(semconv.EVENT_EXCEPTION, encodable(about), timestamp=at_ns)


def step_name(step: Step) -> str:
    """What the step's span is called."""
    match step:
        case Retrieval():
            name = step.data_source_id or step.name
        case Generation():
            name = step.model or ""
        case _:
            name = step.name
    return named(f"{_KINDS[type(step)].operation} {name}".rstrip())


class _Kind(NamedTuple):
    """What the span of a kind of step is, by OpenTelemetry's conventions and by OpenInference's."""

    operation: str
    kind: str
    span_kind: SpanKind = SpanKind.INTERNAL


_KINDS: Mapping[type[Step], _Kind] = {
    ToolCall: _Kind(semconv.OPERATION_EXECUTE_TOOL, semconv.KIND_TOOL),
    Retrieval: _Kind(semconv.OPERATION_RETRIEVAL, semconv.KIND_RETRIEVER, SpanKind.CLIENT),
    Reranking: _Kind(semconv.OPERATION_RERANK, semconv.KIND_RERANKER),
    Generation: _Kind(semconv.OPERATION_CHAT, semconv.KIND_LLM, SpanKind.CLIENT),
}


def _start_step(tracer: Tracer, parent: Span, record: RagRecord, step: Step) -> Span:
    kind = _KINDS[type(step)]
    attributes = {semconv.OPENINFERENCE_SPAN_KIND: kind.kind, semconv.GEN_AI_OPERATION_NAME: kind.operation}
    return tracer.start_span(
        step_name(step),
        context=context_with(parent),
        kind=kind.span_kind,
        start_time=step_interval(record, step)[0],
        attributes=encodable({**attributes, **_essentials(step)}),
    )


def _essentials(step: Step) -> Attributes:
    """What a sampler may want to see."""
    match step:
        case ToolCall():
            return {
                semconv.GEN_AI_TOOL_NAME: named(step.name),
                semconv.GEN_AI_TOOL_CALL_ID: step.call_id and named(step.call_id),
            }
        case Retrieval():
            return {
                semconv.GEN_AI_DATA_SOURCE_ID: step.data_source_id and named(step.data_source_id),
                semconv.GEN_AI_RETRIEVAL_TOP_K: step.top_k,
                semconv.GEN_AI_TOOL_NAME: step.tool_name and named(step.tool_name),
                semconv.GEN_AI_TOOL_CALL_ID: step.tool_call_id and named(step.tool_call_id),
            }
        case Generation():
            return {
                semconv.GEN_AI_PROVIDER_NAME: step.provider and named(step.provider),
                semconv.GEN_AI_REQUEST_MODEL: step.model and named(step.model),
                semconv.GEN_AI_REQUEST_STREAM: step.streamed or None,
            }
        case _:
            return {}
