"""A record as a message: JSON, compressed above a size, and headers that say what it is.

What arrives is checked before anything is made of it: its size, its size when unpacked, how much it holds, and its schema.
Whoever may publish to the stream may publish anything.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import math
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from ragspan.exceptions import RecordError
from ragspan.record_json import MAX_JSON, check
from ragspan.records import RagRecord

if TYPE_CHECKING:
    from nats.js.api import RawStreamMsg

MESSAGE_ID = "Nats-Msg-Id"
"""By which the stream knows a message that it has already."""
ENCODING = "Content-Encoding"
EARLIER_DELIVERIES = "Ragspan-Earlier-Deliveries"
"""Header of a message that was put into the stream once more: how often it had been delivered before."""

_GZIP = "gzip"
_GZIP_FORMAT = 31  # zlib's number for gzip with a window of 32 kB
_LEVEL = 1  # in a fifth of the time of the usual level, and nearly as small
_MEMORY = 6  # a third less to be cleared for each record than usual, and no larger
_PLAIN_TYPES = (str, int, bool, type(None))
_HEADER_TEXT = re.compile(r"[\x21-\x7e]{1,128}")
_FRAME = len(b"NATS/1.0\r\n" + b"\r\n")
_LINE = len(b": " + b"\r\n")
_MAX_TEXT = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """What is published."""

    payload: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes as the broker counts them, headers included."""
        headers = sum(len(name) + len(text.encode()) + _LINE for name, text in self.headers.items())
        return len(self.payload) + _FRAME + headers


def message_of(record: RagRecord, *, compress_above: int) -> Message:
    """The record as a message, compressed above so many bytes of JSON.

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
    return Message(payload=payload, headers=headers)


def json_in(payload: bytes, headers: Mapping[str, str]) -> bytes:
    """The payload as it was before it was compressed.

    Raises:
        RecordError: it is damaged, or unpacks to more than a record may take.
    """
    encoding = headers.get(ENCODING)
    if encoding is None:
        return payload
    if encoding != _GZIP:
        raise RecordError(f"the message is encoded as {encoding!r:.40}, but should be plain or {_GZIP}")
    unpacker = zlib.decompressobj(_GZIP_FORMAT)
    try:
        unpacked = unpacker.decompress(payload, MAX_JSON + 1)
    except zlib.error:
        raise RecordError("the message says that it is compressed, but it is not, or it is damaged") from None
    if not unpacker.eof:
        raise RecordError(f"the message is cut off, or unpacks to more than {MAX_JSON} bytes")
    return unpacked


def message_id_of(record: RagRecord) -> str:
    """By which the stream knows the record; its id, or a digest where that cannot be a header's value."""
    if _HEADER_TEXT.fullmatch(record.record_id):
        return record.record_id
    return hashlib.sha256(record.record_id.encode(errors="surrogatepass")).hexdigest()


def copy_of(payload: bytes, headers: Mapping[str, str], *, place: str, own: Mapping[str, str]) -> Message:
    """The message to be published once more, with headers of our own; of the others it keeps what says how to read it.

    Args:
        payload: of the message.
        headers: those that it came with, whatever they are.
        place: its stream and number, so that whoever else publishes the same copy publishes it once. A stream that is made
            anew counts from 1 again, so a digest goes with it.
        own: our headers.
    """
    copied = {MESSAGE_ID: f"{place}-{hashlib.blake2b(payload, digest_size=8).hexdigest()}", **own}
    if ENCODING in headers:
        copied[ENCODING] = header_text(headers[ENCODING])
    return Message(payload=payload, headers=copied)


def headers_in(message: RawStreamMsg) -> dict[str, str]:
    """The headers, read as the client reads those of messages that are delivered.

    Those of messages that are looked up it reads as e-mail, where a value may be an object, and one bad line hides the rest.
    """
    lines = base64.b64decode(message.hdrs or b"").split(b"\r\n")[1:]
    pairs = (line.partition(b":") for line in lines if b":" in line)
    return {name.strip().decode("ascii", "replace"): text.strip().decode("utf-8", "replace") for name, _, text in pairs}


def earlier_deliveries_in(headers: Mapping[str, str]) -> int:
    """What a message's headers say of its earlier deliveries; 0 if that is no such number."""
    text = headers.get(EARLIER_DELIVERIES, "")
    return int(text) if text.isdecimal() and len(text) < 6 else 0  # noqa: PLR2004 - digits, not a meaning


def header_text(text: str) -> str:
    """One line of printable ASCII, as a header can hold it."""
    return "".join(sign if " " <= sign <= "~" else "?" for sign in text[:_MAX_TEXT])


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
    for contexts in (record.contexts or (), record.evidence, *(retrieval.contexts for retrieval in record.retrievals)):
        for context in contexts:
            yield context.metadata
