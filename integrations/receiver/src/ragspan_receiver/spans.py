"""From an OTLP request to spans: as bytes at once, as plain data once their trace has ended.

A request is taken apart into the bytes of its spans, so that a span holds no more memory than is counted for it, and attributes
that no reader needs are not decoded. A body of some kilobytes may unpack to millions of empty messages, each of which takes a
hundred bytes as an object. So the parts of a request are counted before they become objects.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from google.protobuf.json_format import ParseDict
from google.protobuf.json_format import ParseError as JSONError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ragspan.telemetry import semconv

_TRACE_ID, _SPAN_ID = 16, 8  # bytes
_SCOPE = 200  # characters of a scope's name
_MAX_SPAN = 4 * 1024 * 1024  # bytes; a larger one is rejected
_MAX_PARTS = 50_000
_VARINT, _BYTES, _FIXED = 0, 2, {1: 8, 5: 4}  # kinds of fields in protobuf, and how many bytes the others have
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_MARKS = re.compile(rb"gen_ai\.|llm\.|openinference\.|traceloop\.")
"""How names of attributes begin in spans that a reader understands."""


class RefusedError(Exception):
    """A request that is not taken.

    Args:
        status: of HTTP, as OTLP has it for such a request.
        message: what is wrong, for the sender.
    """

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, kw_only=True, slots=True)
class SpanEvent:
    """An event of a span, such as a message or an exception."""

    name: str
    time_ns: int
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class TracedSpan:
    """One span of a trace, as the application exported it. Nothing in it is checked: times may be wrong, parents may be missing."""

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
    trace_state: str = ""
    """As the W3C `tracestate` header has it."""


@dataclass(frozen=True, slots=True)
class RawSpan:
    """A span as it came."""

    id: bytes
    is_root: bool
    is_marked: bool
    """A reader may understand it."""
    encoded: bytes
    scope: str


@dataclass(slots=True)
class Batch:
    """The spans of a request, by trace."""

    traces: dict[bytes, list[RawSpan]]
    rejected: int = 0
    """Spans that cannot be read, have no valid id, or are too large."""
    own: int = 0
    """Spans of ragspan itself: scores that come back, and answers that are scored already."""


def unpacked(body: bytes | bytearray, most: int) -> bytes:
    """The content of a body in gzip or zlib, which HTTP calls deflate.

    Raises:
        RefusedError: it is more than `most` bytes, in another format, or incomplete.
    """
    stream = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        content = stream.decompress(body, most + 1)
    except zlib.error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is not packed as it says") from None
    if len(content) > most:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may unpack to {most} bytes")
    if not stream.eof or stream.unused_data:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is not one whole stream")
    return content


def from_json(body: bytes | bytearray) -> bytes:
    """A request in JSON, in which OTLP has ids in hexadecimal digits, as protobuf.

    Raises:
        RefusedError: the body is no such request.
    """
    try:
        content = json.loads(body)
        for of_resource in content.get("resourceSpans", ()):
            for of_scope in of_resource.get("scopeSpans", ()):
                for span in of_scope.get("spans", ()):
                    span.pop("links", None)
                    for name in ("traceId", "spanId", "parentSpanId"):
                        span[name] = base64.b64encode(bytes.fromhex(span.get(name) or "")).decode()
        request = ParseDict(content, ExportTraceServiceRequest(), ignore_unknown_fields=True)
    except (ValueError, TypeError, AttributeError, RecursionError, JSONError):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is no ExportTraceServiceRequest in JSON") from None
    return bytes(request.SerializeToString())


def batch_of(body: bytes) -> Batch:
    """The spans of a request.

    Raises:
        RefusedError: the body is no request, or has more parts than are allowed.
    """
    batch, parts = Batch({}), _Parts()
    try:
        for of_resource in parts.of(memoryview(body))[1]:
            for of_scope in parts.of(of_resource)[2]:
                inside = parts.of(of_scope)
                scope = InstrumentationScope.FromString(b"".join(inside[1])).name[:_SCOPE]
                _add(batch, inside[2], scope)
    except (ValueError, LookupError, DecodeError):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is no ExportTraceServiceRequest") from None
    return batch


def _add(batch: Batch, spans: Sequence[memoryview], scope: str) -> None:
    if scope == semconv.SCOPE:
        batch.own += len(spans)
        return
    for part in spans:
        encoded = bytes(part)
        span = _valid(encoded)
        if span is None:
            batch.rejected += 1
        else:
            is_root, is_marked = not any(span.parent_span_id), _MARKS.search(encoded) is not None
            raw = RawSpan(span.span_id, is_root, is_marked, encoded, scope)
            batch.traces.setdefault(span.trace_id, []).append(raw)


def _valid(encoded: bytes) -> Span | None:
    """The span; None if it cannot be read, has no valid id, or is too large."""
    try:
        span = Span.FromString(encoded) if len(encoded) <= _MAX_SPAN else Span()
    except DecodeError:
        return None
    has_ids = len(span.trace_id) == _TRACE_ID and len(span.span_id) == _SPAN_ID
    return span if has_ids and any(span.trace_id) and any(span.span_id) else None


class _Parts:
    """Takes messages of protobuf apart without making objects of them, up to a number of parts in all."""

    def __init__(self) -> None:
        self._left = _MAX_PARTS

    def of(self, message: memoryview) -> Mapping[int, list[memoryview]]:
        """The fields of a message that hold bytes, by their numbers.

        Raises:
            ValueError: it is no message; so LookupError.
            RefusedError: there are too many parts.
        """
        fields: defaultdict[int, list[memoryview]] = defaultdict(list)
        place = 0
        while place < len(message):
            self._left -= 1
            if self._left < 0:
                told = f"a request may have {_MAX_PARTS} spans and other parts"
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, told)
            key, start = _varint(message, place)
            kind = key & 7
            if kind == _VARINT:
                _, place = _varint(message, start)
                continue
            size, start = _varint(message, start) if kind == _BYTES else (_FIXED[kind], start)
            place = start + size
            if place > len(message):
                raise ValueError
            if kind == _BYTES:
                fields[key >> 3].append(message[start:place])
        return fields


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """The number that begins here, and where it ends."""
    number = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last one
            return number, place
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
