"""What the application and its helper say to each other: msgpack, each batch of messages behind its length."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Callable
from dataclasses import fields
from typing import Generic, Literal, TypeVar, cast

import msgspec

from ragspan.outcomes import MetricFailure, Score
from ragspan.records import RagRecord, RetrievedContext

_M = TypeVar("_M")
FORMAT = repr([[field.name for field in fields(kind)] for kind in (RagRecord, RetrievedContext, Score, MetricFailure)])
"""Differs between versions of ragspan whose data differ."""
_LENGTH = struct.Struct(">Q")


class ToHelper(msgspec.Struct, array_like=True, kw_only=True):
    """What the application says.

    `metrics`, once: all of them, pickled together, so that they share a judge there as they do here. `score`: a question, what this
    metric says of this record. `cancel`: nobody waits for the answer to that question any more.
    """

    kind: Literal["metrics", "score", "cancel"]
    number: int = 0
    """Of the question."""
    metric: int = 0
    session: int = 0
    """The same for all metrics of one record that is being scored."""
    content: bytes = b""


class ToApplication(msgspec.Struct, array_like=True, kw_only=True):
    """What the helper says.

    `ready`: the metrics are there, with the helper's `FORMAT`. `answer`: what is known of the response, and the outcome, pickled.
    `refusal`: why there is no answer, or no start. `log`: a line for the log, and the name of its logger.
    """

    kind: Literal["ready", "answer", "refusal", "log"]
    number: int = 0
    """Of the question; of a line its level."""
    content: bytes = b""
    text: str = ""
    logger: str = ""


def pack(record: RagRecord) -> bytes:
    """The record as JSON, in which metadata that nobody else can read, such as a client or a lock, is the name of its type."""
    return record.to_json().encode()


def unpack(packed: bytes) -> RagRecord:
    """The record that `pack` packed. It is ours: no limits are checked."""
    try:
        return msgspec.json.decode(packed, type=RagRecord)
    except msgspec.DecodeError:  # a lone surrogate
        return msgspec.convert(json.loads(packed), RagRecord)


class Connection(asyncio.Protocol, Generic[_M]):
    """One end of the socket, for use in its event loop only. Sending never blocks, and one turn's messages go as one batch.

    Args:
        reads: the messages of the other side.
        on_message: called with each of them.
        on_lost: called when the connection has ended.
    """

    def __init__(self, reads: type[_M], *, on_message: Callable[[_M], None], on_lost: Callable[[], None]) -> None:
        self._decode: Callable[[bytes], list[_M]] = msgspec.msgpack.Decoder(list[reads]).decode  # type: ignore[valid-type]
        self._encode = msgspec.msgpack.Encoder().encode
        self._on_message, self._on_lost = on_message, on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[object] = []
        self._incoming = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, message: object) -> None:
        """Send it with this turn's batch; nothing happens if the connection is lost."""
        if not self._outgoing:
            self._loop.call_soon(self._send_batch)
        self._outgoing.append(message)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._incoming += data
        while len(self._incoming) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._incoming)[0]
            if len(self._incoming) < end:
                return
            batch = bytes(memoryview(self._incoming)[_LENGTH.size : end])
            del self._incoming[:end]
            for message in self._decode(batch):
                self._on_message(message)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self._on_lost()

    def _send_batch(self) -> None:
        batch, self._outgoing = self._outgoing, []
        if self._transport is not None and not self._transport.is_closing():
            data = self._encode(batch)
            self._transport.write(_LENGTH.pack(len(data)) + data)
