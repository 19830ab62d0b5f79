"""What the application and its helper say to each other: msgpack, each batch of messages behind its length."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from ragspan.records import RagRecord

_M = TypeVar("_M")
_LENGTH = struct.Struct(">Q")


class ToHelper(msgspec.Struct, array_like=True):
    """A question of this number: what does the metric say of the record? Without a record nobody waits for the answer any more.

    The message with the number 0 is the first one: all metrics, pickled together, so that they share a judge there as they do here.
    """

    number: int
    content: bytes = b""
    metric: int = 0
    session: int = 0
    """The same for all metrics of one record that is being scored."""


class ToApplication(msgspec.Struct, array_like=True):
    """The answer to the question of this number: what is known of the response, and the outcome, pickled; or why there is none."""

    number: int
    content: bytes = b""
    refusal: str | None = None


def pack(record: RagRecord) -> bytes:
    """The record as JSON, in which metadata that nobody else can read, such as a client or a lock, is the name of its type."""
    return record.to_json().encode()


def unpack(packed: bytes) -> RagRecord:
    """The record that `pack` packed. It is ours: no limits are checked."""
    return msgspec.json.decode(packed, type=RagRecord)


class Connection(asyncio.Protocol, Generic[_M]):
    """One end of the socket. Sending never blocks, and one turn's messages go as one batch.

    Args:
        reads: the messages of the other side.
        on_message: called with each of them.
        on_lost: called when the connection has ended.
    """

    def __init__(self, reads: type[_M], *, on_message: Callable[[_M], None], on_lost: Callable[[], None]) -> None:
        self._decode: Callable[[bytes], list[_M]] = msgspec.msgpack.Decoder(list[reads]).decode  # type: ignore[valid-type]
        self._on_message, self._on_lost = on_message, on_lost
        self._transport: Any = None
        self._outgoing: list[object] = []
        self._incoming = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self._on_lost()

    def data_received(self, data: bytes) -> None:
        self._incoming += data
        while len(self._incoming) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._incoming)[0]
            if len(self._incoming) < end:
                return
            batch = bytes(self._incoming[_LENGTH.size : end])
            del self._incoming[:end]
            for message in self._decode(batch):
                self._on_message(message)

    def send(self, message: object) -> None:
        """Send it with this turn's batch; nothing happens if the connection is lost."""
        if not self._outgoing:
            asyncio.get_running_loop().call_soon(self._send_batch)
        self._outgoing.append(message)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _send_batch(self) -> None:
        batch, self._outgoing = self._outgoing, []
        if self._transport is not None and not self._transport.is_closing():
            data = msgspec.msgpack.encode(batch)
            self._transport.write(_LENGTH.pack(len(data)) + data)
