"""What readers make of spans, whatever their convention: the steps of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ragspan.capturing.snapshots import OPAQUE, Snapshot
from ragspan.runs.payloads import Document, Message
from ragspan_otlp.readers.payloads import Payloads
from ragspan_otlp.traces import TracedSpan

Kind: TypeAlias = Literal["chain", "agent", "model", "retriever", "reranker", "tool", "ignored"]
Scored: TypeAlias = tuple[Document, float | None]
"""A document, with its score if it came with one."""


@dataclass(kw_only=True, slots=True, eq=False)
class Step:
    """One span, as one thing that was done for an answer. A convention's reader fills in what it knows."""

    span: TracedSpan
    kind: Kind
    """`ignored` is what serves no answer, with all inside it: an evaluation."""
    name: str
    framework: str = ""
    shows_models: bool = False
    """The instrumentation shows every call of a model: where there is none, none was made."""
    inputs: Snapshot = OPAQUE
    """What a chain, an agent or a tool was called with; opaque where the span does not say."""
    output: Snapshot = OPAQUE
    query: str | None = None
    """Of a search or a reranker."""
    found: Sequence[Scored] | None = None
    """The documents that a search or a reranker gave; None where their texts are not known."""
    given: Sequence[Scored] = ()
    """The documents that a reranker was given."""
    written: Sequence[str] = ()
    """Documents as a step wrote them for the model: with their metadata, say."""
    prompt: Sequence[Message] = ()
    """Of a model."""
    beside: Snapshot = None
    """Documents that a model was given beside its prompt."""
    reply: Message | None = None
    told: Mapping[str, Any] = field(default_factory=dict)
    """What the span tells of a model's reply, as `ragspan.provider_replies` reads it."""
    made_prompt: Sequence[Message] = ()
    """Of a chain: the prompt that it filled in, for a model to come."""
    has_ended: bool = True
    """Of a model: False where only its prompt is known, since spans come when they end."""
    model: str | None = None
    provider: str | None = None
    first_token_ns: int | None = None
    call_id: str | None = None
    """Of a tool: the model's request."""
    top_k: int | None = None
    source: str | None = None
    """What was searched."""
    session_id: str | None = None
    user_id: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


Reader: TypeAlias = Callable[[TracedSpan, Payloads], Step | None]
"""Reads a span of one convention; None if it is no step."""


@dataclass(kw_only=True, slots=True, eq=False)
class Placed:
    """A step in its place: what is around it, and how deep it lies."""

    step: Step
    outer: Placed | None = None
    depth: int = 0

    def around(self) -> Iterator[Placed]:
        """What is around it, the innermost first."""
        place = self.outer
        while place is not None:
            yield place
            place = place.outer

    def is_in(self, kind: str) -> bool:
        return any(place.step.kind == kind for place in self.around())
