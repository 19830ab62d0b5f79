"""Spans for the steps of an answer: its searches and its calls of language models."""

from __future__ import annotations

from collections.abc import Iterator

from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from ragspan.records import Generation, RagRecord, Retrieval
from ragspan.telemetry import semconv
from ragspan.telemetry.anchors import context_with
from ragspan.telemetry.documents import document_groups
from ragspan.telemetry.limits import set_within_limit
from ragspan.telemetry.options import EmitterOptions
from ragspan.telemetry.score_attributes import Attributes
from ragspan.telemetry.times import step_interval
from ragspan.telemetry.values import encodable, error_type, named


def start_step(tracer: Tracer, answer: Span, record: RagRecord, step: Retrieval | Generation) -> Span:
    """Start a span for the step below the answer's span."""
    if isinstance(step, Retrieval):
        name, essentials = _retrieval_name(step), _RETRIEVAL
    else:
        name, essentials = _generation_name(step), _generation_essentials(step)
    return tracer.start_span(
        name,
        context=context_with(answer),
        kind=SpanKind.CLIENT,
        start_time=step_interval(record, step)[0],
        attributes=encodable(essentials),
    )


def finish_step(span: Span, record: RagRecord, step: Retrieval | Generation, options: EmitterOptions) -> None:
    """Give a step's span all that is to be said of it, and end it."""
    groups = document_groups(step, options) if isinstance(step, Retrieval) else _generation_groups(step)
    failure = None if step.error_type is None else error_type(step.error_type)
    set_within_limit(span, [{semconv.ERROR_TYPE: failure}, *groups])
    if failure is not None:
        span.set_status(StatusCode.ERROR, failure)
    end_step(span, record, step)


def end_step(span: Span, record: RagRecord, step: Retrieval | Generation) -> None:
    span.end(end_time=step_interval(record, step)[1])


_RETRIEVAL: Attributes = {
    semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RETRIEVER,
    semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_RETRIEVAL,
}


def _retrieval_name(retrieval: Retrieval) -> str:
    return named(f"{semconv.OPERATION_RETRIEVAL} {retrieval.name}".rstrip())


def _generation_name(generation: Generation) -> str:
    return named(f"{semconv.OPERATION_CHAT} {generation.model or ''}".rstrip())


def _generation_essentials(generation: Generation) -> Attributes:
    return {
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_LLM,
        semconv.GEN_AI_OPERATION_NAME: semconv.OPERATION_CHAT,
        semconv.GEN_AI_PROVIDER_NAME: generation.provider and named(generation.provider),
        semconv.GEN_AI_REQUEST_MODEL: generation.model and named(generation.model),
    }


def _generation_groups(generation: Generation) -> Iterator[Attributes]:
    first_ns = generation.first_token_ns
    yield {
        semconv.GEN_AI_USAGE_INPUT_TOKENS: generation.input_tokens,
        semconv.GEN_AI_USAGE_OUTPUT_TOKENS: generation.output_tokens,
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
    }


def _total_tokens(generation: Generation) -> int | None:
    if generation.input_tokens is None or generation.output_tokens is None:
        return None
    return generation.input_tokens + generation.output_tokens
