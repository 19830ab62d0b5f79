"""Spans for the steps of an answer: its tools, searches, rerankers and calls of language models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from ragspan.records import Generation, RagRecord, Reranking, Retrieval, Step, ToolCall
from ragspan.step_texts import ErrorReport
from ragspan.telemetry import semconv
from ragspan.telemetry.anchors import context_with
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.documents import document_groups, reranked_groups
from ragspan.telemetry.limits import set_within_limit
from ragspan.telemetry.messages import message_groups
from ragspan.telemetry.options import EmitterOptions
from ragspan.telemetry.score_attributes import Attributes
from ragspan.telemetry.times import step_interval
from ragspan.telemetry.values import encodable, error_type, named


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
    set_within_limit(span, [{semconv.ERROR_TYPE: failure}, *_FORMS[type(step)].groups(step, options)])
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
    form = _FORMS[type(step)]
    return named(f"{form.operation} {form.name(step) or ''}".rstrip())


def _start_step(tracer: Tracer, parent: Span, record: RagRecord, step: Step) -> Span:
    form = _FORMS[type(step)]
    return tracer.start_span(
        step_name(step),
        context=context_with(parent),
        kind=form.span_kind,
        start_time=step_interval(record, step)[0],
        attributes=encodable(
            {
                semconv.OPENINFERENCE_SPAN_KIND: form.kind,
                semconv.GEN_AI_OPERATION_NAME: form.operation,
                **form.essentials(step),
            }
        ),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Form:
    """How a kind of step becomes a span."""

    operation: str
    kind: str
    """OpenInference's."""
    name: Callable[[Any], str | None]
    essentials: Callable[[Any], Attributes]
    """What a sampler may want to see."""
    groups: Callable[[Any, EmitterOptions], Iterator[Attributes]]
    """All else in groups, the most important first."""
    span_kind: SpanKind = SpanKind.INTERNAL


def _tool_essentials(call: ToolCall) -> Attributes:
    return {
        semconv.GEN_AI_TOOL_NAME: named(call.name),
        semconv.GEN_AI_TOOL_CALL_ID: call.call_id and named(call.call_id),
    }


def _tool_groups(call: ToolCall, options: EmitterOptions) -> Iterator[Attributes]:
    if options.openinference:
        yield {semconv.TOOL_NAME: named(call.name)}
    if call.arguments is not None and options.content.allows("spans", hidden_as="inputs"):
        yield {
            semconv.GEN_AI_TOOL_CALL_ARGUMENTS: call.arguments,
            semconv.INPUT_VALUE: call.arguments,
            semconv.INPUT_MIME_TYPE: _mime_type(call.arguments),
        }
    if call.result is not None and options.content.allows("spans", hidden_as="outputs"):
        yield {
            semconv.GEN_AI_TOOL_CALL_RESULT: call.result,
            semconv.OUTPUT_VALUE: call.result,
            semconv.OUTPUT_MIME_TYPE: _mime_type(call.result),
        }


def _mime_type(text: str) -> str:
    return semconv.MIME_JSON if text.startswith(("{", "[")) else semconv.MIME_TEXT


def _retrieval_essentials(search: Retrieval) -> Attributes:
    return {
        semconv.GEN_AI_DATA_SOURCE_ID: search.data_source_id and named(search.data_source_id),
        semconv.GEN_AI_RETRIEVAL_TOP_K: search.top_k,
        semconv.GEN_AI_TOOL_NAME: search.tool_name and named(search.tool_name),
        semconv.GEN_AI_TOOL_CALL_ID: search.tool_call_id and named(search.tool_call_id),
    }


def _generation_essentials(generation: Generation) -> Attributes:
    return {
        semconv.GEN_AI_PROVIDER_NAME: generation.provider and named(generation.provider),
        semconv.GEN_AI_REQUEST_MODEL: generation.model and named(generation.model),
        semconv.GEN_AI_REQUEST_STREAM: generation.streamed or None,
    }


def _generation_groups(generation: Generation, options: EmitterOptions) -> Iterator[Attributes]:
    first_ns = generation.first_token_ns
    yield {
        semconv.GEN_AI_RESPONSE_ID: generation.response_id and named(generation.response_id),
        semconv.GEN_AI_RESPONSE_MODEL: generation.response_model and named(generation.response_model),
        semconv.GEN_AI_USAGE_INPUT_TOKENS: generation.input_tokens,
        semconv.GEN_AI_USAGE_OUTPUT_TOKENS: generation.output_tokens,
        semconv.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: generation.cached_tokens,
        semconv.GEN_AI_RESPONSE_FINISH_REASONS: generation.finish_reason and (generation.finish_reason,),
        semconv.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: (
            None if first_ns is None else max(first_ns - generation.started_ns, 0) / 1e9
        ),
    }
    yield {
        semconv.LLM_MODEL_NAME: generation.model and named(generation.model),
        semconv.LLM_PROVIDER: generation.provider and named(generation.provider),
        semconv.LLM_TOKEN_COUNT_PROMPT: generation.input_tokens,
        semconv.LLM_TOKEN_COUNT_COMPLETION: generation.output_tokens,
        semconv.LLM_TOKEN_COUNT_TOTAL: _total_tokens(generation),
        semconv.LLM_TOKEN_COUNT_PROMPT_DETAILS_CACHE_READ: generation.cached_tokens,
        semconv.LLM_FINISH_REASON: generation.finish_reason and named(generation.finish_reason),
    }
    yield from message_groups(generation, options)


def _total_tokens(generation: Generation) -> int | None:
    if generation.input_tokens is None or generation.output_tokens is None:
        return None
    return generation.input_tokens + generation.output_tokens


def _no_essentials(_: Reranking) -> Attributes:
    return {}


_FORMS: Mapping[type[Step], _Form] = {
    ToolCall: _Form(
        operation=semconv.OPERATION_EXECUTE_TOOL,
        kind=semconv.KIND_TOOL,
        name=lambda call: call.name,
        essentials=_tool_essentials,
        groups=_tool_groups,
    ),
    Retrieval: _Form(
        operation=semconv.OPERATION_RETRIEVAL,
        kind=semconv.KIND_RETRIEVER,
        name=lambda search: search.data_source_id or search.name,
        essentials=_retrieval_essentials,
        groups=document_groups,
        span_kind=SpanKind.CLIENT,
    ),
    Reranking: _Form(
        operation=semconv.OPERATION_RERANK,
        kind=semconv.KIND_RERANKER,
        name=lambda reranking: reranking.name,
        essentials=_no_essentials,
        groups=reranked_groups,
    ),
    Generation: _Form(
        operation=semconv.OPERATION_CHAT,
        kind=semconv.KIND_LLM,
        name=lambda generation: generation.model,
        essentials=_generation_essentials,
        groups=_generation_groups,
        span_kind=SpanKind.CLIENT,
    ),
}
