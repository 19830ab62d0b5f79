"""A record as a message: JSON, compressed above a size, and headers that say what it is.

What arrives is checked before anything is made of it: its size, its size when unpacked, how much it holds, its schema, and its
headers, of which only those are published once more that can be. Whoever may publish to the stream may publish anything.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from ragspan.exceptions import RecordError
from ragspan.record_json import MAX_JSON, check
from ragspan.records import RagRecord, SpanAnchor

if TYPE_CHECKING:
    from nats.js import JetStreamContext
    from nats.js.api import RawStreamMsg

MESSAGE_ID = "Nats-Msg-Id"
"""By which the stream knows a message that it has already."""
ENCODING = "Content-Encoding"
TRACEPARENT = "traceparent"
TRACESTATE = "tracestate"

_GZIP = "gzip"
_GZIP_FORMAT = 31  # zlib's number for gzip with a window of 32 kB
_LEVEL = 1  # in a fifth of the time of the usual level, and nearly as small
_MEMORY = 6  # a third less to be cleared for each record than usual, and no larger
_PLAIN_TYPES = (str, int, bool, type(None))

_HEADER_TEXT = re.compile(r"[\x21-\x7e]{1,128}")
_TRACE_STATE = re.compile(r"[\x20-\x7e]{1,512}")
_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")

_NEEDED = frozenset({ENCODING, TRACEPARENT, TRACESTATE})
"""To read the record."""
_BROKERS = "Nats-"
_OURS = "Ragspan-"
_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,200}")  # what the client lets be a header's name
_FRAME = len(b"NATS/1.0\r\n" + b"\r\n")
_LINE = len(b": " + b"\r\n")
_MAX_HEADERS = 64 * 1024 - 1  # bytes that a stream takes
_MAX_TEXT = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """What is published."""

    payload: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def message_of(record: RagRecord, *, compress_above: int) -> Message:
    """The record as a message.

    Args:
        record: what is to be scored elsewhere.
        compress_above: bytes of JSON from which on it is compressed.

    Raises:
        RecordError: it takes more bytes than anybody would read.
    """
    payload = _json_of(record)
    check("bytes of JSON", len(payload), MAX_JSON)
    headers = {MESSAGE_ID: message_id_of(record)}
    if len(payload) > compress_above:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_FORMAT, _MEMORY)
        payload = packer.compress(payload) + packer.flush()
        headers[ENCODING] = _GZIP
    if record.parent is not None:
        headers |= _trace_context(record.parent)
    return Message(payload=payload, headers=headers)


def size_of(message: Message) -> int:
    """Bytes as the broker counts them, headers included."""
    return len(message.payload) + _bytes_of(message.headers)


def unpacked(message: Message) -> Message:
    """The message as it was before it was compressed.

    Raises:
        RecordError: it is damaged, or unpacks to more than a record may take.
    """
    encoding = message.headers.get(ENCODING)
    if encoding is None:
        return message
    if encoding != _GZIP:
        raise RecordError(f"the message is encoded as {encoding!r:.40}, but should be plain or {_GZIP}")
    unpacker = zlib.decompressobj(_GZIP_FORMAT)
    try:
        payload = unpacker.decompress(message.payload, MAX_JSON + 1)
    except zlib.error:
        raise RecordError("the message says that it is compressed, but it is not, or it is damaged") from None
    if not unpacker.eof:
        raise RecordError(f"the message is cut off, or unpacks to more than {MAX_JSON} bytes")
    return Message(payload=payload, headers={name: text for name, text in message.headers.items() if name != ENCODING})


def record_of(message: Message) -> RagRecord:
    """The record that a message holds.

    A record without a parent gets the one that the trace context in the headers names, if there is one.

    Raises:
        RecordError: it holds none, or one that `RagRecord.from_json` refuses. What it holds is not shown.
    """
    record = RagRecord.from_json(unpacked(message).payload)
    parent = _parent_in(message.headers) if record.parent is None else None
    return record if parent is None else replace(record, parent=parent)


def message_id_of(record: RagRecord) -> str:
    """By which the stream knows the record; its id, or a digest where that cannot be a header's value."""
    if _HEADER_TEXT.fullmatch(record.record_id):
        return record.record_id
    return hashlib.sha256(record.record_id.encode(errors="surrogatepass")).hexdigest()


def _json_of(record: RagRecord) -> bytes:
    """JSON as `to_json` writes it, but in a tenth of the time, in which an application's requests would wait."""
    if all(map(_is_plain, _metadata_in(record))):
        # Lone surrogates, say, or types that only `to_json` can name, are left to it.
        with contextlib.suppress(TypeError, ValueError, RecursionError):
            return _encoder.encode(record)
    return record.to_json().encode("ascii")


def _exact(value: object) -> str:
    """The text that an object of a framework's own class of texts is; `to_json` knows what to do with all else."""
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(type(value).__name__)


_encoder = msgspec.json.Encoder(enc_hook=_exact)


def _is_plain(metadata: Mapping[str, Any]) -> bool:
    """Whether any writer of JSON writes the same."""
    return type(metadata) is dict and all(
        type(key) is str and (type(value) in _PLAIN_TYPES or (type(value) is float and math.isfinite(value)))
        for key, value in metadata.items()
    )


def _metadata_in(record: RagRecord) -> Iterator[Mapping[str, Any]]:
    yield record.metadata
    for passages in (record.contexts or (), record.evidence, *(retrieval.contexts for retrieval in record.retrievals)):
        for passage in passages:
            yield passage.metadata


def _trace_context(parent: SpanAnchor) -> dict[str, str]:
    """The W3C headers, so that what else reads the stream finds the trace."""
    text = f"00-{parent.trace_id:032x}-{parent.span_id:016x}-{parent.trace_flags & 0xFF:02x}"
    if not _TRACEPARENT.fullmatch(text):  # ids that are none
        return {}
    headers = {TRACEPARENT: text}
    if _TRACE_STATE.fullmatch(parent.trace_state):
        headers[TRACESTATE] = parent.trace_state
    return headers


def _parent_in(headers: Mapping[str, str]) -> SpanAnchor | None:
    found = _TRACEPARENT.fullmatch(headers.get(TRACEPARENT, ""))
    if found is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    if not trace_id or not span_id:
        return None
    state = headers.get(TRACESTATE, "")
    state = state if _TRACE_STATE.fullmatch(state) else ""
    return SpanAnchor(trace_id=trace_id, span_id=span_id, trace_flags=flags, trace_state=state, is_remote=True)


def fitting(headers: Mapping[str, str], own: Mapping[str, str], payload: bytes, limit: int) -> dict[str, str] | None:
    """As many of the headers as a message of at most `limit` bytes has room for beside our own; None if not even those."""
    kept = {name: text for name, text in headers.items() if _NAME.fullmatch(name) and not _is_replaced(name, own)}
    needed = {name: text for name, text in kept.items() if name in _NEEDED}
    for chosen in ({**kept, **own}, {**needed, **own}, dict(own)):
        size = _bytes_of(chosen)
        if size <= _MAX_HEADERS and size + len(payload) <= limit:
            return chosen
    return None


def _is_replaced(name: str, own: Mapping[str, str]) -> bool:
    return name in own or name.startswith((_BROKERS, _OURS))


def _bytes_of(headers: Mapping[str, str]) -> int:
    """Bytes that the headers take in a message."""
    return _FRAME + sum(len(name) + len(text.encode()) + _LINE for name, text in headers.items())


def max_payload_of(jetstream: JetStreamContext) -> int:
    """Bytes that a message may have, headers included."""
    # The client takes more, since it does not count the headers, and the broker ends the connection then.
    return jetstream._nc.max_payload  # noqa: SLF001 - what JetStream's part of the client does not tell


def headers_of(message: RawStreamMsg) -> dict[str, str]:
    """The headers, read as the client reads those of messages that are delivered.

    Those of messages that are looked up it reads as e-mail, where a value may be an object, and one bad line hides the rest.
    """
    lines = base64.b64decode(message.hdrs or b"").split(b"\r\n")[1:]
    pairs = (line.partition(b":") for line in lines if b":" in line)
    return {name.strip().decode("ascii", "replace"): text.strip().decode("utf-8", "replace") for name, _, text in pairs}


def header_text(text: str) -> str:
    """One line of printable ASCII, as a header can hold it."""
    return "".join(sign if " " <= sign <= "~" else "?" for sign in text[:_MAX_TEXT])
