"""Messages, as they are published and read. Anybody may publish anything, so a reader checks sizes, headers and payloads."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from ragspan.exceptions import RecordError
from ragspan.records import MAX_JSON, RagRecord, check_size

MESSAGE_ID = "Nats-Msg-Id"
"""The stream recognizes a message that it already has by this header."""
ENCODING = "Content-Encoding"

_COMPRESS_ABOVE = 8192  # bytes of JSON
_GZIP = "gzip"
_GZIP_FORMAT = 31  # zlib's number for gzip with a window of 32 kB
_LEVEL = 1  # takes a fifth of the time of the default level, and packs nearly as well
_MEMORY = 6  # zlib clears a third less memory for each record than by default
_HEADER_TEXT = re.compile(r"[\x21-\x7e]{1,128}")
_FRAME = len(b"NATS/1.0\r\n" + b"\r\n")
_LINE = len(b": " + b"\r\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerMessage:
    """What is published."""

    payload: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Bytes as the broker counts them, headers included."""
        headers = sum(len(name) + len(text.encode()) + _LINE for name, text in self.headers.items())
        return len(self.payload) + _FRAME + headers


def message_of(record: RagRecord) -> BrokerMessage:
    """The record as a message, compressed if its JSON is large; a `RecordError` if a worker would not read so much."""
    payload = record.to_json().encode()
    check_size(payload)
    id_ = record.record_id  # a digest of it where it cannot be a header
    is_plain = _HEADER_TEXT.fullmatch(id_)
    headers = {MESSAGE_ID: id_ if is_plain else hashlib.sha256(id_.encode(errors="surrogatepass")).hexdigest()}
    if len(payload) > _COMPRESS_ABOVE:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_FORMAT, _MEMORY)
        payload = packer.compress(payload) + packer.flush()
        headers[ENCODING] = _GZIP
    return BrokerMessage(payload=payload, headers=headers)


def json_in(payload: bytes, headers: Mapping[str, str]) -> bytes:
    """The payload, unpacked; a `RecordError` if it is damaged, or unpacks to more bytes than a record may have."""
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
