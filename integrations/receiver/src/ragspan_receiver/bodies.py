"""The body of a request before it is spans: unpacked, from JSON, and within bounds.

A body of some kilobytes may unpack to many megabytes, and these may be millions of values, each of which takes a hundred bytes and a
microsecond as an object. So what a request may cost follows from the bytes that its sender has sent, and values are counted before
they become objects.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import msgspec
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from ragspan.json_values import count_values

_PARTS, _MAX_PARTS = 10_000, 50_000  # spans that any request may have, and the largest one, with what lies around them
_BYTES_A_PART = 64  # received; each such part of a body may hold a span more
_UNPACKED = 16 * 1024 * 1024  # bytes that any packed body may unpack to
_PACKS = 32  # how many times as large as it came a larger body may be
_VALUES = 100_000  # that any request may have
_BYTES_A_VALUE = 16  # received; each such part of a body may hold a value more
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_PIECE = 1024 * 1024  # bytes that are unpacked at a time


class RefusedError(Exception):
    """A request that is not taken.

    Args:
        status: of HTTP, as OTLP has it for such a request.
        message: what is wrong, for the sender.
    """

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def values_within(received: int) -> int:
    """How many values a request may have of which `received` bytes have come."""
    return _VALUES + received // _BYTES_A_VALUE


def parts_within(received: int) -> int:
    """How many spans it may have, with what lies around them."""
    return min(_PARTS + received // _BYTES_A_PART, _MAX_PARTS)


def unpacked(body: bytes | bytearray, most: int) -> bytes:
    """The content of a body in gzip or zlib, which HTTP calls deflate.

    Raises:
        RefusedError: it is more than `most` bytes or too many for its size, in another format, or incomplete.
    """
    most = min(most, max(_UNPACKED, _PACKS * len(body)))
    stream = zlib.decompressobj(_GZIP_OR_ZLIB)
    content, packed = bytearray(), bytes(body)
    try:
        while packed and not stream.eof and len(content) <= most:
            content += stream.decompress(packed, _PIECE)
            packed = stream.unconsumed_tail
    except zlib.error:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is not packed as it says") from None
    if len(content) > most:
        limit = f"this body may unpack to {most} bytes: {_UNPACKED}, or {_PACKS} times its size"
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
    if not stream.eof or stream.unused_data:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is not one whole stream")
    return bytes(content)


# JSON


class _Value(msgspec.Struct):
    """As OTLP has it. Whole numbers may be texts, and so may figures that JSON does not have."""

    stringValue: str | None = None  # noqa: N815  OTLP's names
    boolValue: bool | None = None  # noqa: N815
    intValue: int | str | None = None  # noqa: N815
    doubleValue: float | str | None = None  # noqa: N815
    bytesValue: str | None = None  # noqa: N815
    arrayValue: _Values | None = None  # noqa: N815
    kvlistValue: _Pairs | None = None  # noqa: N815


class _Values(msgspec.Struct):
    values: list[_Value] | None = None


class _Pair(msgspec.Struct):
    key: str = ""
    value: _Value | None = None


class _Pairs(msgspec.Struct):
    values: list[_Pair] | None = None


class _Event(msgspec.Struct):
    name: str = ""
    timeUnixNano: int | str = 0  # noqa: N815
    attributes: list[_Pair] | None = None


class _Status(msgspec.Struct):
    code: int | str = 0
    message: str | None = None


class _Span(msgspec.Struct):
    traceId: str | None = None  # noqa: N815
    spanId: str | None = None  # noqa: N815
    parentSpanId: str | None = None  # noqa: N815
    traceState: str | None = None  # noqa: N815
    name: str | None = None
    startTimeUnixNano: int | str | None = None  # noqa: N815
    endTimeUnixNano: int | str | None = None  # noqa: N815
    attributes: list[_Pair] | None = None
    events: list[_Event] | None = None
    status: _Status | None = None


class _Scope(msgspec.Struct):
    name: str | None = None


class _OfScope(msgspec.Struct):
    scope: _Scope | None = None
    spans: list[msgspec.Raw] | None = None


class _OfResource(msgspec.Struct):
    scopeSpans: list[msgspec.Raw] | None = None  # noqa: N815


class _Request(msgspec.Struct):
    resourceSpans: list[msgspec.Raw] | None = None  # noqa: N815


_REQUEST, _OF_RESOURCE = msgspec.json.Decoder(_Request), msgspec.json.Decoder(_OfResource)
_OF_SCOPE, _SPAN = msgspec.json.Decoder(_OfScope), msgspec.json.Decoder(_Span)
_CODES: dict[str, Any] = {"STATUS_CODE_ERROR": Status.STATUS_CODE_ERROR, "STATUS_CODE_OK": Status.STATUS_CODE_OK}


def from_json(body: bytes | bytearray, *, received: int | None = None) -> bytes:
    """A request in JSON, in which OTLP has ids in hexadecimal digits, as protobuf.

    It is read span by span, so that other threads get their turn in between.

    Args:
        body: the request.
        received: how many bytes it had when it came, if it was packed.

    Raises:
        RefusedError: the body is not such a request, or has too many values.
    """
    received = len(body) if received is None else received
    most = values_within(received)
    if count_values(body, most) > most:
        limit = f"this request may have {most} values: brackets and commas outside of texts"
        raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
    request = ExportTraceServiceRequest()
    try:
        for name, spans in _spans_by_scope(body, parts_within(received)):
            of_scope = request.resource_spans.add().scope_spans.add()
            of_scope.scope.name = name
            for span in spans:
                _fill_span(of_scope.spans.add(), _SPAN.decode(span))
        return bytes(request.SerializeToString())
    except (ValueError, TypeError, RecursionError, msgspec.DecodeError):
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is not an ExportTraceServiceRequest in JSON") from None


def _spans_by_scope(body: bytes | bytearray, most: int) -> Iterator[tuple[str, list[msgspec.Raw]]]:
    """The names of scopes, and what they hold, not read yet.

    Raises:
        RefusedError: there are too many of them.
        msgspec.DecodeError: it is not a request.
    """
    left = most
    for of_resource in _REQUEST.decode(body).resourceSpans or ():
        for raw in _OF_RESOURCE.decode(of_resource).scopeSpans or ():
            of_scope = _OF_SCOPE.decode(raw)
            spans = of_scope.spans or []
            left -= 1 + len(spans)
            if left < 0:
                limit = f"this request may have {most} spans and other parts"
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, limit)
            yield (of_scope.scope and of_scope.scope.name) or "", spans


def _fill_span(made: Span, span: _Span) -> None:
    made.trace_id = bytes.fromhex(span.traceId or "")
    made.span_id = bytes.fromhex(span.spanId or "")
    made.parent_span_id = bytes.fromhex(span.parentSpanId or "")
    made.trace_state = span.traceState or ""
    made.name = span.name or ""
    made.start_time_unix_nano = int(span.startTimeUnixNano or 0)
    made.end_time_unix_nano = int(span.endTimeUnixNano or 0)
    _fill_pairs(made.attributes, span.attributes)
    for event in span.events or ():
        of_event = made.events.add(name=event.name, time_unix_nano=int(event.timeUnixNano))
        _fill_pairs(of_event.attributes, event.attributes)
    if span.status is not None:
        code: Any = span.status.code
        made.status.code = _CODES.get(code, 0) if isinstance(code, str) else code
        made.status.message = span.status.message or ""


def _fill_pairs(made: Any, pairs: list[_Pair] | None) -> None:
    """Fill a value in place: a value that is made first is copied once for each level."""
    for pair in pairs or ():
        one = made.add(key=pair.key)
        if pair.value is not None:
            _fill(one.value, pair.value)


def _fill(made: AnyValue, value: _Value) -> None:
    if value.stringValue is not None:
        made.string_value = value.stringValue
    elif value.intValue is not None:
        made.int_value = int(value.intValue)
    elif value.boolValue is not None:
        made.bool_value = value.boolValue
    elif value.doubleValue is not None:
        made.double_value = float(value.doubleValue)
    elif value.bytesValue is not None:
        made.bytes_value = base64.b64decode(value.bytesValue, validate=True)
    elif value.arrayValue is not None:
        made.array_value.SetInParent()
        for one in value.arrayValue.values or ():
            _fill(made.array_value.values.add(), one)
    elif value.kvlistValue is not None:
        made.kvlist_value.SetInParent()
        _fill_pairs(made.kvlist_value.values, value.kvlistValue.values)
