"""Messages between the application and its helper, tuples of plain data, in the order in which they were sent.

Guarantees:
- What is sent within one turn of the event loop goes as one batch: the questions of a record's metrics, and their
  answers. Nothing waits longer than that turn, nor for others that take their time in it.
- Sending never blocks; what the socket does not take stays in memory until it does. The engine's `concurrency` bounds
  how much that can be.
- When the connection ends, in whatever way, `on_lost` is called once.
"""

from __future__ import annotations

import asyncio
import pickle
import struct
from collections.abc import Callable
from typing import Any, cast

_LENGTH = struct.Struct(">Q")
_PROTOCOL = 5  # of pickle
_MAX_WAIT = 0.005  # seconds


class Link(asyncio.Protocol):
    """One end of the connection. For use in its event loop only.

    Args:
        on_message: called with each message.
        on_lost: called when there is no connection any more.
    """

    def __init__(self, *, on_message: Callable[[tuple[Any, ...]], None], on_lost: Callable[[], None]) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._outgoing: list[tuple[Any, ...]] = []
        self._along: list[tuple[Any, ...]] = []
        self._began = 0.0
        self._incoming = bytearray()
        self._wanted: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def send(self, message: tuple[Any, ...]) -> None:
        """Send it with this turn's batch; to nobody, if the connection is lost."""
        self._outgoing.append(message)
        if len(self._outgoing) == 1:
            self._began = self._loop.time()
            self._loop.call_soon(self._send_batch)
        elif self._loop.time() - self._began > _MAX_WAIT:
            self._send_batch()

    def send_along(self, message: tuple[Any, ...]) -> None:
        """Send it before the messages of the next batch, whenever that is: a batch of its own would not be worth it."""
        self._along.append(message)

    def close(self) -> None:
        """End the connection at once, whatever has not been sent."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._incoming += data
        while (batch := self._next_batch()) is not None:
            for message in pickle.loads(batch):  # noqa: S301 - nobody else holds the socket
                self._on_message(message)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self._on_lost()

    def _send_batch(self) -> None:
        if not self._outgoing:
            return
        batch, self._along, self._outgoing = self._along + self._outgoing, [], []
        if self._transport is None or self._transport.is_closing():
            return
        data = pickle.dumps(batch, _PROTOCOL)
        self._transport.write(_LENGTH.pack(len(data)) + data)

    def _next_batch(self) -> bytes | None:
        """The next one that is there as a whole."""
        if self._wanted is None:
            if len(self._incoming) < _LENGTH.size:
                return None
            (self._wanted,) = _LENGTH.unpack_from(self._incoming)
            del self._incoming[: _LENGTH.size]
        if len(self._incoming) < self._wanted:
            return None
        batch = bytes(memoryview(self._incoming)[: self._wanted])
        del self._incoming[: self._wanted]
        self._wanted = None
        return batch
