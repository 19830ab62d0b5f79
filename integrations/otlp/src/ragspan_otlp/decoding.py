"""From an OTLP request to spans: as bytes at once, as plain data once their trace has ended.

A request is taken apart into the bytes of its spans, so that a span holds no more memory than is counted for it, and nobody
pays for attributes that no reader looks at. A body of some kilobytes may unpack to millions of empty messages, each of which
takes a hundred bytes as an object: so parts are counted before there are objects, and there is one span at a time.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from google.protobuf.json_format import ParseDict
from google.protobuf.json_format import ParseError as JSONError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ragspan.telemetry import semconv
from ragspan_otlp.traces import SpanEvent, TracedSpan

_TRACE_ID, _SPAN_ID = 16, 8  # bytes
_SCOPE = 200  # characters of a scope's name
_MAX_RESOURCE = 64 * 1024  # bytes; a larger one is left out
_MAX_SPAN = 4 * 1024 * 1024  # bytes; a larger one is rejected
_MAX_PARTS = 50_000
_RESOURCE_SPANS, _HEAD, _CONTENT = 1, 1, 2  # numbers of fields: of a request; of what it holds, on two levels
_VARINT, _BYTES, _FIXED = 0, 2, {1: 8, 5: 4}  # kinds of fields, and how many bytes the others have
_MAX_DEPTH = 16  # lists and maps inside one another; what is deeper becomes None
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_MARKS = re.compile(rb"gen_ai\.|llm\.|openinference\.|traceloop\.")
"""How names of attributes begin in spans of which a reader makes anything."""


class RefusedError(Exception):
    """A request that is not taken; the sender is told why.

    Args:
        status: of HTTP, as OTLP has it for such a request.
        message: what is wrong.
    """

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class RawSpan:
    """A span as it came."""

    id: bytes
    is_root: bool
    is_marked: bool
    """A reader may care for it."""
    encoded: bytes
    scope: str
    resource: bytes


@dataclass(slots=True)
class Batch:
    """The spans of a request, by trace."""

    traces: dict[bytes, list[RawSpan]]
    rejected: int = 0
    """Spans that are none, have no id that can be one, or are too large."""
    own: int = 0
    """Spans of ragspan itself: scores that come back, and answers that are scored already."""


def unpacked(body: bytes | bytearray, most: int) -> bytes:
    """What a body in gzip or zlib, which HTTP calls deflate, holds.

    Raises:
        RefusedError: that is more than `most` bytes; or it is neither, or not whole.
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
        RefusedError: it holds none.
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
        RefusedError: it is none, or has more parts than it may.
    """
    batch, parts = Batch({}), _Parts()
    try:
        for of_resource in parts.of(memoryview(body))[_RESOURCE_SPANS]:
            held = parts.of(of_resource)
            resource = b"".join(held[_HEAD])
            Resource.FromString(resource)  # so that it can be read later
            for of_scope in held[_CONTENT]:
                below = parts.of(of_scope)
                scope = InstrumentationScope.FromString(b"".join(below[_HEAD])).name[:_SCOPE]
                _add(batch, below[_CONTENT], scope, resource if len(resource) <= _MAX_RESOURCE else b"")
    except (ValueError, LookupError, DecodeError):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is no ExportTraceServiceRequest") from None
    return batch


def _add(batch: Batch, spans: Sequence[memoryview], scope: str, resource: bytes) -> None:
    if scope == semconv.SCOPE:
        batch.own += len(spans)
        return
    for part in spans:
        encoded = bytes(part)
        span = _ids_of(encoded)
        if span is None:
            batch.rejected += 1
            continue
        is_root, is_marked = not any(span.parent_span_id), _MARKS.search(encoded) is not None
        raw = RawSpan(span.span_id, is_root, is_marked, encoded, scope, resource)
        batch.traces.setdefault(span.trace_id, []).append(raw)


def _ids_of(encoded: bytes) -> Span | None:
    """The span, for its ids; None where it is none, has none that can be one, or is too large."""
    if len(encoded) > _MAX_SPAN:
        return None
    try:
        span = Span.FromString(encoded)
    except DecodeError:
        return None
    trace_id, span_id = span.trace_id, span.span_id
    can_be = len(trace_id) == _TRACE_ID and len(span_id) == _SPAN_ID and any(trace_id) and any(span_id)
    return span if can_be else None


class _Parts:
    """Takes messages of protobuf apart, so many parts in all: a few bytes may hold millions of empty messages."""

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
            key, place = _varint(message, place)
            start, kind = place, key & 7
            if kind == _VARINT:
                _, place = _varint(message, place)
            elif kind == _BYTES:
                size, start = _varint(message, place)
                place = start + size
                fields[key >> 3].append(message[start:place])
            else:
                place += _FIXED[kind]
            if place > len(message):
                raise ValueError
            self._left -= 1
            if self._left < 0:
                raise RefusedError(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a request may have {_MAX_PARTS} spans and other parts"
                )
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
    """The spans of a trace; one that no reader cares for has neither attributes nor events."""
    resources: dict[bytes, Mapping[str, Any]] = {}
    for raw in spans:
        if raw.resource not in resources:
            resources[raw.resource] = _mapping(Resource.FromString(raw.resource).attributes)
        span = Span.FromString(raw.encoded)
        yield TracedSpan(
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=None if raw.is_root else span.parent_span_id.hex(),
            name=span.name,
            start_ns=span.start_time_unix_nano,
            end_ns=span.end_time_unix_nano,
            attributes=_mapping(span.attributes) if raw.is_marked else {},
            events=[
                SpanEvent(name=event.name, time_ns=event.time_unix_nano, attributes=_mapping(event.attributes))
                for event in (span.events if raw.is_marked else ())
            ],
            status_error=span.status.code == Status.STATUS_CODE_ERROR,
            status_message=span.status.message,
            scope=raw.scope,
            resource=resources[raw.resource],
            trace_state=span.trace_state,
        )


def _mapping(pairs: Any, depth: int = 0) -> dict[str, Any]:
    return {pair.key: _value(pair.value, depth) for pair in pairs}


def _value(value: AnyValue, depth: int) -> Any:
    kind = value.WhichOneof("value")
    if kind is None or depth > _MAX_DEPTH:
        return None
    if kind == "kvlist_value":
        return _mapping(value.kvlist_value.values, depth + 1)
    if kind == "array_value":
        return [_value(one, depth + 1) for one in value.array_value.values]
    return getattr(value, kind)
