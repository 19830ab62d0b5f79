"""What comes in, and what is made of it: spans of a trace as plain data, and the records that they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragspan.records import RagRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanEvent:
    """Something that a span notes: a message, an exception."""

    name: str
    time_ns: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedSpan:
    """One span of a trace, as the application exported it. Nothing in it is checked: times may lie, parents may be missing."""

    trace_id: str
    """32 hexadecimal digits, in lower case."""
    span_id: str
    """16 hexadecimal digits, in lower case."""
    parent_id: str | None
    """As `span_id`; None for a root."""
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """OTLP's values as Python ones: str, bool, int, float, bytes, None, and lists and dicts of these."""
    events: Sequence[SpanEvent] = ()
    """In the order in which they were exported."""
    status_error: bool = False
    status_message: str = ""
    scope: str = ""
    """The instrumentation scope's name."""
    resource: Mapping[str, Any] = field(default_factory=dict)
    """`service.name` and the like."""
    trace_state: str = ""
    """As the W3C `tracestate` header has it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedRecord:
    """An answer that was found in a trace."""

    record: RagRecord
    span_id: str
    """The answer's span, as `TracedSpan.span_id`."""
