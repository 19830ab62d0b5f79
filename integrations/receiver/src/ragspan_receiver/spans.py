"""Reads the spans of an OTLP request: as bytes at once, as plain data once their trace has ended.

A request is taken apart into the bytes of its spans, so that a span holds no more memory than is counted for it, and attributes
that no reader needs are not decoded. A body of some kilobytes may unpack to millions of empty messages, each of which takes a
hundred bytes as an object. So the parts of a request are counted before they become objects.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ragspan.telemetry import semconv
from ragspan_receiver.bodies import RefusedError, from_json, parts_within, unpacked, values_within

_TRACE_ID, _SPAN_ID = 16, 8  # bytes
_SCOPE = 200  # characters of a scope's name
_MAX_SPAN = 4 * 1024 * 1024  # bytes; a larger one is rejected
_VARINT, _BYTES, _FIXED = 0, 2, {1: 8, 5: 4}  # kinds of fields in protobuf, and how many bytes the others have
_MAX_SPAN_VALUES = 500_000  # that a span may seem to have before it is parsed
_FEW = 16  # values that a span seems to have; then it is not worth while to look closer
_VALUE_TAGS = (b"\n", b"J", b"Z", b"j")  # of a list's or map's entries, and of a span's attributes, events and links
_OPENINFERENCE, _LLM, _GEN_AI, _TRACELOOP = b"openinference.", b"llm.", b"gen_ai.", b"traceloop."
_VERCEL = b"ai.operationId"
"""How names of attributes begin in spans that a reader understands."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanEvent:
    """An event of a span, such as a message or an exception."""

    name: str
    time_ns: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedSpan:
    """A span as the application exported it. Nothing in it is checked: times may be wrong, parents may be missing."""

    trace_id: str
    """32 hexadecimal digits, in lower case."""
    span_id: str
    """16 hexadecimal digits, in lower case."""
    parent_id: str | None
    """The id of the span around it; None for a root."""
    name: str
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """OTLP's values as Python ones: str, bool, int, float, bytes, None, and lists and dicts of these."""
    events: Sequence[SpanEvent] = ()
    """What happened in it, in the order of the export."""
    status_error: bool = False
    status_message: str = ""
    scope: str = ""
    """The instrumentation scope's name."""
    trace_state: str = ""
    """The text of the W3C `tracestate` header."""


@dataclass(slots=True)
class RawSpan:
    """A span as it came."""

    id: bytes
    parent: bytes
    """The id of the span around it; empty for a root."""
    is_marked: bool
    """A reader may understand it."""
    encoded: bytes
    scope: str
    took: float = 0.0
    """Seconds, as its sender says."""
    ended: float = 0.0
    """Its end in seconds, by its sender's clock: only differences count."""

    @property
    def is_root(self) -> bool:
        return not self.parent


@dataclass(slots=True)
class Batch:
    """The spans of a request, by trace."""

    traces: dict[bytes, list[RawSpan]]
    rejected: int = 0
    """Spans that cannot be read, have no valid id, or are too large."""
    own: int = 0
    """Spans of ragspan itself: scores that come back, and answers that are scored already."""


def content_of(body: bytes | bytearray, *, most: int, is_json: bool, is_packed: bool) -> bytes:
    """A request in protobuf, whatever it came as; unpacked it may have `most` bytes.

    Raises:
        RefusedError: it is too large, or not what it says.
    """
    plain = unpacked(body, most) if is_packed else bytes(body)
    return from_json(plain, received=len(body)) if is_json else plain


def batch_of(body: bytes, *, received: int | None = None) -> Batch:
    """The spans of a request.

    Args:
        body: the request in protobuf.
        received: how many bytes it had when it came, if it was packed.

    Raises:
        RefusedError: the body is not a request, or has more parts or values than are allowed.
    """
    received = len(body) if received is None else received
    batch, parts = Batch({}), _Parts(parts_within(received))
    left = values_within(received)
    try:
        for of_resource in parts.of(memoryview(body))[1]:
            for of_scope in parts.of(of_resource)[2]:
                inside = parts.of(of_scope)
                scope = InstrumentationScope.FromString(b"".join(inside[1])).name[:_SCOPE]
                left = _add(batch, inside[2], scope, left)
    except (ValueError, LookupError, DecodeError):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is not an ExportTraceServiceRequest") from None
    return batch


def _add(batch: Batch, spans: Sequence[memoryview], scope: str, left: int) -> int:
    """Add spans of one scope; returns how many values others may have, of `left`."""
    if scope == semconv.SCOPE:
        batch.own += len(spans)
        return left
    for part in spans:
        encoded = bytes(part)
        seem = sum(map(encoded.count, _VALUE_TAGS))
        span = _valid(encoded) if seem <= _MAX_SPAN_VALUES else None
        if span is None:
            batch.rejected += 1
            continue
        left -= seem if seem <= _FEW else _values(span, left)
        if left < 0:
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request has too many values; send fewer spans")
        raw = RawSpan(
            id=span.span_id,
            parent=span.parent_span_id if span.parent_span_id.strip(b"\0") else b"",
            is_marked=_OPENINFERENCE in encoded
            or _LLM in encoded
            or _GEN_AI in encoded
            or _TRACELOOP in encoded
            or _VERCEL in encoded,
            encoded=encoded,
            scope=scope,
            took=max(0, span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
            ended=span.end_time_unix_nano / 1e9,
        )
        batch.traces.setdefault(span.trace_id, []).append(raw)
    return left


def _valid(encoded: bytes) -> Span | None:
    """The span; None if it cannot be read, has no valid id, or is too large."""
    try:
        span = Span.FromString(encoded) if len(encoded) <= _MAX_SPAN else Span()
    except DecodeError:
        return None
    trace_id, span_id = span.trace_id, span.span_id
    has_ids = len(trace_id) == _TRACE_ID and len(span_id) == _SPAN_ID
    return span if has_ids and trace_id.strip(b"\0") and span_id.strip(b"\0") else None


def _values(span: Span, most: int) -> int:
    """How many values the span has: attributes, events, links, and entries of lists and maps; counted to a few beyond `most`."""
    number = len(span.events) + len(span.links) + len(span.attributes)
    if number > most:
        return number
    waiting: list[Any] = [span.attributes, *(one.attributes for one in (*span.events, *span.links))]
    number = len(span.events) + len(span.links)
    while waiting and number <= most:
        entries = waiting.pop()
        number += len(entries)
        for entry in entries if number <= most else ():
            value = getattr(entry, "value", entry)
            kind = value.WhichOneof("value")
            if kind in {"array_value", "kvlist_value"}:
                waiting.append(getattr(value, kind).values)
    return number


class _Parts:
    """Takes messages of protobuf apart without making objects of them, up to a number of parts in all."""

    def __init__(self, most: int) -> None:
        self._most = self._left = most

    def of(self, message: memoryview) -> Mapping[int, list[memoryview]]:
        """The fields of a message that hold bytes, by their numbers.

        Raises:
            ValueError: it is not a message; so LookupError.
            RefusedError: there are too many parts.
        """
        fields: defaultdict[int, list[memoryview]] = defaultdict(list)
        position = 0
        while position < len(message):
            self._left -= 1
            if self._left < 0:
                limit = f"this request may have {self._most} spans and other parts"
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
            key, start = _varint(message, position)
            kind = key & 7
            if kind == _VARINT:
                _, position = _varint(message, start)
                continue
            size, start = _varint(message, start) if kind == _BYTES else (_FIXED[kind], start)
            position = start + size
            if position > len(message):
                raise ValueError
            if kind == _BYTES:
                fields[key >> 3].append(message[start:position])
        return fields


def _varint(message: memoryview, position: int) -> tuple[int, int]:
    """The number that begins here, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        byte = message[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last one
            return number, position
    raise ValueError


def decoded(spans: Iterable[RawSpan]) -> Iterator[TracedSpan]:
    """The spans of a trace as plain data; one that no reader understands has neither attributes nor events."""
    for raw in spans:
        span = Span.FromString(raw.encoded)
        yield TracedSpan(
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=None if raw.is_root else span.parent_span_id.hex(),
            name=span.name,
            start_ns=span.start_time_unix_nano,
            end_ns=span.end_time_unix_nano,
            attributes=_fields(span.attributes) if raw.is_marked else {},
            events=[
                SpanEvent(name=event.name, time_ns=event.time_unix_nano, attributes=_fields(event.attributes))
                for event in (span.events if raw.is_marked else ())
            ],
            status_error=span.status.code == Status.STATUS_CODE_ERROR,
            status_message=span.status.message,
            scope=raw.scope,
            trace_state=span.trace_state,
        )


def _fields(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Any:
    """The value as plain data. Protobuf itself bounds how deep values lie inside one another."""
    kind = value.WhichOneof("value")
    if kind == "kvlist_value":
        return _fields(value.kvlist_value.values)
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return None if kind is None else getattr(value, kind)
