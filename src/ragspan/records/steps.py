"""The steps of a request, each of which has a span: searches, rerankers, tools and models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ragspan.messages import ErrorReport, Message
from ragspan.records.contexts import RetrievedContext


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanAnchor:
    """The identity of a span, as in OpenTelemetry's `SpanContext`, in plain data."""

    trace_id: int
    span_id: int
    trace_flags: int = 1
    trace_state: str = ""
    """In the form of the W3C `tracestate` header."""
    is_remote: bool = False

    @property
    def sampled(self) -> bool:
        return bool(self.trace_flags & 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieval:
    """One search made for the answer."""

    name: str
    query: str | None
    started_ns: int
    ended_ns: int
    contexts: tuple[RetrievedContext, ...] = ()
    """The results, in rank order, also those that did not reach the prompt."""
    error_type: str | None = None
    span: SpanAnchor | None = None
    """The span of another instrumentation for this search, if it is known. Scores of its documents can be written there."""
    data_source_id: str | None = None
    """What was searched: a collection, an index."""
    top_k: int | None = None
    """How many documents were asked for."""
    tool_name: str | None = None
    """The tool that makes this search and returns its results. It has no `ToolCall` of its own."""
    tool_call_id: str | None = None
    error: ErrorReport | None = None
    within: int | None = None
    """The index in `RagRecord.tool_calls` of the tool that did this; None outside of tools. All steps have it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Generation:
    """One call of a language model made for the answer."""

    model: str | None
    provider: str | None
    started_ns: int
    ended_ns: int
    first_token_ns: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str | None = None
    error_type: str | None = None
    response_id: str | None = None
    """The provider's id of the reply."""
    response_model: str | None = None
    """The provider's name of the model that replied."""
    cached_tokens: int | None = None
    """The input tokens that the provider read from its cache."""
    streamed: bool = False
    """The reply came in pieces, as far as is known."""
    prompt: tuple[Message, ...] = ()
    reply: Message | None = None
    error: ErrorReport | None = None
    within: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """One call of a tool made for the answer."""

    name: str
    started_ns: int
    ended_ns: int
    call_id: str | None = None
    """The id of the model's request, if a model requested the call."""
    arguments: str | None = None
    """JSON, or the tool's only text."""
    result: str | None = None
    """The result for the model or the caller; JSON if it is not a text."""
    error_type: str | None = None
    error: ErrorReport | None = None
    within: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Reranking:
    """One call of a reranker, which gives documents a new order, or of a filter, which removes some."""

    name: str
    query: str | None
    started_ns: int
    ended_ns: int
    given: tuple[RetrievedContext, ...] = ()
    """The documents in their previous order."""
    contexts: tuple[RetrievedContext, ...] = ()
    """The remaining documents, in the new order."""
    is_filter: bool = False
    """True for a filter. It shows which step dropped a document, and has no span."""
    model: str | None = None
    top_k: int | None = None
    """How many documents were asked for."""
    error_type: str | None = None
    error: ErrorReport | None = None
    within: int | None = None


Step: TypeAlias = ToolCall | Retrieval | Reranking | Generation
