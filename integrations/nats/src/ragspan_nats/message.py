"""Messages: records, copies of messages that are published once more, and dead letters.

Anybody who may publish to a stream may publish anything. So all sizes, headers and payloads are checked when they are read, and a copy
keeps only those headers that say how to read the payload.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ragspan.exceptions import RecordError
from ragspan.record_json import MAX_JSON, check

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext
    from nats.js.api import RawStreamMsg

    from ragspan.records import RagRecord
    from ragspan_nats.delivery import Delivery, Disposition
    from ragspan_nats.settings import Stream

MESSAGE_ID = "Nats-Msg-Id"
"""The stream recognizes a message that it already has by this header."""
ENCODING = "Content-Encoding"

# Headers of dead letters.
REASON = "Ragspan-Reason"
DETAIL = "Ragspan-Detail"
DELIVERIES = "Ragspan-Deliveries"
RECORD = "Ragspan-Record"
DEAD_LETTERED_AT = "Ragspan-Dead-Lettered-At"

_COMPRESS_ABOVE = 8192  # bytes of JSON
_GZIP = "gzip"
_GZIP_FORMAT = 31  # zlib's number for gzip with a window of 32 kB
_LEVEL = 1  # takes a fifth of the time of the default level, and packs nearly as well
_MEMORY = 6  # zlib clears a third less memory for each record than by default
_HEADER_TEXT = re.compile(r"[\x21-\x7e]{1,128}")
_FRAME = len(b"NATS/1.0\r\n" + b"\r\n")
_LINE = len(b": " + b"\r\n")
_MAX_TEXT = 300
_TIMEOUT = 10.0  # seconds
_NO_ROOM = "(the message itself had no room)"


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


def message_of(record: RagRecord, *, compress_above: int = _COMPRESS_ABOVE) -> BrokerMessage:
    """The record as a message, compressed if its JSON has more bytes than `compress_above`.

    Raises:
        RecordError: the JSON has more bytes than a worker reads.
    """
    payload = record.to_json().encode()
    check("bytes of JSON", len(payload), MAX_JSON)
    headers = {MESSAGE_ID: message_id_of(record)}
    if len(payload) > compress_above:
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_FORMAT, _MEMORY)
        payload = packer.compress(payload) + packer.flush()
        headers[ENCODING] = _GZIP
    return BrokerMessage(payload=payload, headers=headers)


def json_in(payload: bytes, headers: Mapping[str, str]) -> bytes:
    """The payload, unpacked.

    Raises:
        RecordError: it is damaged, or unpacks to more bytes than a record may have.
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
    """The record's id, or a digest of it if it cannot be a header."""
    if _HEADER_TEXT.fullmatch(record.record_id):
        return record.record_id
    return hashlib.sha256(record.record_id.encode(errors="surrogatepass")).hexdigest()


def header_text(text: str) -> str:
    """The text as one line of printable ASCII."""
    return "".join(sign if " " <= sign <= "~" else "?" for sign in text[:_MAX_TEXT])


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredMessage:
    """A message as its stream keeps it. What only a dead letter says is empty for others."""

    stream: str
    sequence: int
    """Its number in the stream."""
    payload: bytes
    headers: Mapping[str, str]

    @property
    def reason(self) -> str:
        """Why no worker could score it."""
        return self.headers.get(REASON, "")

    def facts(self) -> dict[str, object]:
        """What `ragspan dead-letters list` shows."""
        deliveries = self.headers.get(DELIVERIES, "")[:5]
        return {
            "number": self.sequence,
            "dead_lettered": self.headers.get(DEAD_LETTERED_AT, ""),
            "reason": self.reason,
            "deliveries": int(deliveries) if deliveries.isdecimal() else 0,
            "record": self.headers.get(RECORD, ""),
            "detail": self.headers.get(DETAIL, ""),
        }


async def stored_messages(
    jetstream: JetStreamContext, stream: str, subject: str, *, first: int, last: int
) -> AsyncIterator[StoredMessage]:
    """The messages with these numbers, the oldest first. Those that expire or are moved in the meantime are left out.

    Raises:
        nats.errors.Error: the broker does not permit it, or fails.
    """
    from nats.js.errors import NotFoundError

    while first <= last:
        try:
            message = await jetstream.get_msg(stream, first, subject, next=True)
        except NotFoundError:
            return
        found = message.seq or first
        if found <= last:
            headers = _headers_in(message)
            yield StoredMessage(stream=stream, sequence=found, payload=message.data or b"", headers=headers)
        first = found + 1


async def dead_letters(client: Client, stream: Stream) -> AsyncIterator[StoredMessage]:
    """All dead letters that are there now, the oldest first.

    Raises:
        nats.js.errors.NotFoundError: there is no such stream.
        nats.errors.Error: the broker does not permit it, or fails.
    """
    jetstream = client.jetstream()
    state = (await jetstream.stream_info(stream.dead_stream)).state
    found = stored_messages(
        jetstream, stream.dead_stream, stream.dead_letters, first=state.first_seq, last=state.last_seq
    )
    async for letter in found:
        yield letter


async def publish_dead_letter(client: Client, stream: Stream, delivery: Delivery, disposition: Disposition) -> None:
    """Make a message a dead letter. If a worker dies and another does it again, the stream recognizes the duplicate.

    Raises:
        nats.errors.Error: the broker did not take it.
    """
    headers = _headers_of_copy(delivery.payload, delivery.headers, place=f"{stream.name}-{delivery.sequence}") | {
        RECORD: header_text(delivery.headers.get(MESSAGE_ID, "")),
        REASON: disposition.reason or "",
        DETAIL: header_text(disposition.detail),
        DELIVERIES: str(delivery.number),
        DEAD_LETTERED_AT: datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }
    letter = BrokerMessage(payload=delivery.payload, headers=headers)
    if letter.size > client.max_payload:
        letter = BrokerMessage(payload=b"", headers={**headers, DETAIL: f"{headers[DETAIL]} {_NO_ROOM}".strip()})
    await _publish(client, stream.dead_letters, letter)


async def deliver_again(client: Client, message: StoredMessage, subject: str) -> bool:
    """Move a message to the end of the stream that takes the subject.

    It gets a new message id, since the stream would ignore the old one as a duplicate. After a crash in between it can be moved
    again: the stream recognizes the new id.

    Returns:
        False if its payload was left out, or it would be larger than the broker allows. Then it stays where it is.

    Raises:
        nats.errors.Error: the broker did not take it, and it stays where it is; or somebody else has just moved it.
    """
    headers = _headers_of_copy(message.payload, message.headers, place=f"{message.stream}-{message.sequence}")
    copy = BrokerMessage(payload=message.payload, headers=headers)
    # The client does not count headers. It would send a message that is too large, and the broker would close the connection.
    if not message.payload or copy.size > client.max_payload:
        return False
    await _publish(client, subject, copy)
    await client.jetstream().delete_msg(message.stream, message.sequence)
    return True


async def _publish(client: Client, subject: str, message: BrokerMessage) -> None:
    jetstream = client.jetstream(timeout=_TIMEOUT)
    await jetstream.publish(subject, message.payload, headers=dict(message.headers))


def _headers_of_copy(payload: bytes, headers: Mapping[str, str], *, place: str) -> dict[str, str]:
    """The headers of a message that is published once more.

    Its stream and number, which are `place`, become the message id, together with a digest: a copy that two processes publish is
    stored once, and a stream that is made anew counts from 1 again.
    """
    copied = {MESSAGE_ID: f"{place}-{hashlib.blake2b(payload, digest_size=8).hexdigest()}"}
    if ENCODING in headers:
        copied[ENCODING] = header_text(headers[ENCODING])
    return copied


def _headers_in(message: RawStreamMsg) -> dict[str, str]:
    """The headers of a message that was looked up in its stream, read like those of a delivered message.

    The client parses them as e-mail: then a value may be an object, and one bad line hides all others.
    """
    lines = base64.b64decode(message.hdrs or b"").split(b"\r\n")[1:]
    pairs = (line.partition(b":") for line in lines if b":" in line)
    return {name.strip().decode("ascii", "replace"): text.strip().decode("utf-8", "replace") for name, _, text in pairs}
