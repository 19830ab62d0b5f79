"""Reads OTLP requests: each span is kept as bytes at once, so that it holds what is counted for it, and read as plain data once its trace has ended."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from google.protobuf.json_format import Parse, ParseError
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ragspan.telemetry import semconv

_TRACE_ID, _SPAN_ID = 16, 8  # bytes
_SCOPE = 200  # characters of a scope's name
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_MARKS = (
    b"openinference.",
    b"llm.",
    b"gen_ai.",
    b"traceloop.",
    b"ai.operationId",
    b"langfuse.observation.",
    b"gcp.vertex.",
)
"""How names of attributes begin in spans that a reader understands or names."""


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
    is_root: bool
    is_marked: bool
    """A reader may understand it."""
    encoded: bytes
    scope: str


@dataclass(slots=True)
class Batch:
    """The spans of a request, by trace."""

    traces: dict[bytes, list[RawSpan]] = field(default_factory=dict)
    rejected: int = 0
    """Spans without a valid id."""
    own: int = 0
    """Spans of ragspan itself: scores that come back, and answers that are scored already."""


def batch_of(body: bytes | bytearray, *, most: int, is_json: bool = False, is_packed: bool = False) -> Batch:
    """The spans of a request's body, which may have `most` bytes when it is unpacked from gzip or zlib (HTTP's deflate).

    Raises:
        RefusedError: it is too large, or not what it says.
    """
    plain = _unpacked(body, most) if is_packed else bytes(body)
    request = ExportTraceServiceRequest()
    try:
        if is_json:
            Parse(plain, request, ignore_unknown_fields=True)
        else:
            request.ParseFromString(plain)
    except (DecodeError, ParseError, ValueError, TypeError, RecursionError):
        form = " in JSON" if is_json else ""
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"the body is not an ExportTraceServiceRequest{form}") from None
    batch = Batch()
    for of_resource in request.resource_spans:
        for of_scope in of_resource.scope_spans:
            if of_scope.scope.name == semconv.SCOPE:
                batch.own += len(of_scope.spans)
                continue
            for span in of_scope.spans:
                if is_json:  # ids are hexadecimal digits there, which the library has read as if they were base64
                    for name in ("trace_id", "span_id", "parent_span_id"):
                        digits = base64.b64encode(getattr(span, name))
                        is_hexadecimal = not digits.strip(b"0123456789abcdefABCDEF")
                        setattr(span, name, bytes.fromhex(digits.decode()) if is_hexadecimal else b"")
                has_ids = len(span.trace_id) == _TRACE_ID and len(span.span_id) == _SPAN_ID
                if not (has_ids and span.trace_id.strip(b"\0") and span.span_id.strip(b"\0")):
                    batch.rejected += 1
                    continue
                encoded = span.SerializeToString()
                raw = RawSpan(
                    id=span.span_id,
                    is_root=not span.parent_span_id.strip(b"\0"),
                    is_marked=any(mark in encoded for mark in _MARKS),
                    encoded=encoded,
                    scope=of_scope.scope.name[:_SCOPE],
                )
                batch.traces.setdefault(span.trace_id, []).append(raw)
    return batch


def _unpacked(body: bytes | bytearray, most: int) -> bytes:
    stream = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        plain = stream.decompress(body, most + 1)
    except zlib.error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is not packed as it says") from None
    if len(plain) > most:
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"this body may unpack to {most} bytes")
    if not stream.eof or stream.unused_data:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is not one whole stream")
    return plain


def decoded(spans: Iterable[RawSpan]) -> Iterator[TracedSpan]:
    """The spans of a trace as plain data; one that no reader understands has neither attributes nor events."""
    return (traced(Span.FromString(raw.encoded), scope=raw.scope, has_content=raw.is_marked) for raw in spans)


def traced(span: Span, *, scope: str = "", has_content: bool = True) -> TracedSpan:
    """The span as plain data, with its attributes and events if it `has_content`."""
    return TracedSpan(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() if span.parent_span_id.strip(b"\0") else None,
        name=span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        attributes=_fields(span.attributes) if has_content else {},
        events=[
            SpanEvent(name=event.name, time_ns=event.time_unix_nano, attributes=_fields(event.attributes))
            for event in (span.events if has_content else ())
        ],
        status_error=span.status.code == Status.STATUS_CODE_ERROR,
        status_message=span.status.message,
        scope=scope,
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
