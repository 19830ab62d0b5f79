"""Where the servers hand the bodies of requests in, and what all of them together may take.

Guarantees:
- The bytes of all requests under way are bounded, whichever way they come.
- Bodies are unpacked and read in threads, a few at a time, so that the event loop answers probes meanwhile.
- A sender waits for room, and its body for its turn, for some seconds at most, and not if its sender has gone.
- Requests are taken one after the other, so that each is held to the room that those before it have left. A large one that waits for its
  room is passed by none but those that have been read as well.

All but the threads' work belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.engine.processing import Deadline
from ragspan_receiver.bodies import RefusedError
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.spans import Batch, batch_of, content_of

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request's body, before and after it is unpacked."""
MAX_JSON = 16 * 1024 * 1024
"""Bytes of a body in JSON."""
_MAX_HELD = 256 * 1024 * 1024  # bytes of all requests under way
_AT_ONCE = 2  # bodies that are read; more would only take turns with the interpreter
_ROOM = 8.0  # seconds that a sender waits for room before it has to try again; exporters wait for ten
_LOOK = 0.05  # seconds between two looks for room, of each ten senders that wait
_LONGEST_LOOK = 0.5  # seconds, however many wait


class HeldBytes:
    """What one request holds."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self.size = 0

    def change(self, size: int) -> None:
        """Count more bytes, or fewer.

        Raises:
            RefusedError: all requests under way have too many then.
        """
        self.size += size
        self._intake.grow(size)


class Intake:
    """Takes bodies for a receiver.

    Args:
        receiver: takes the spans.
    """

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._door = asyncio.Lock()
        self._waiting = 0
        """Senders that wait for room."""
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ragspan-intake")
        self.held = 0
        """Bytes of requests under way."""

    @asynccontextmanager
    async def holding(self) -> AsyncIterator[HeldBytes]:
        """Counts the bytes of one request, until the block ends. It begins when there is room.

        Raises:
            RefusedError: there is none for some seconds.
        """
        await self._room(Deadline(_ROOM))
        held = HeldBytes(self)
        try:
            yield held
        finally:
            self.held -= held.size

    def grow(self, size: int) -> None:
        """Hold `size` bytes more, or fewer.

        Raises:
            RefusedError: there are too many.
        """
        self.held += size
        if self.held > _MAX_HELD and size > 0:
            self.receiver.refuse()

    async def take(
        self,
        body: bytes | bytearray,
        *,
        received: int,
        is_json: bool = False,
        is_packed: bool = False,
        gone: Awaitable[object],
    ) -> ExportTraceServiceResponse:
        """Take a request.

        Args:
            body: all of it.
            received: how many bytes came; what the request may cost follows from it.
            is_json: else it is protobuf.
            is_packed: it is in gzip or zlib.
            gone: ends when the sender has gone.

        Raises:
            RefusedError: it is not taken, or its sender has gone before its turn came.
        """
        going, deadline = asyncio.ensure_future(gone), Deadline(_ROOM)
        loop = asyncio.get_running_loop()
        try:
            await self._turn(going, deadline)
            try:
                await self._room(deadline)
                batch, whole = await loop.run_in_executor(self._threads, self._read, body, received, is_json, is_packed)
                async with self._door:
                    await self._room(deadline, whole)
                    self._check_sender(going)
                    return await loop.run_in_executor(self._threads, self.receiver.take, batch, whole)
            finally:
                self._turns.release()
        finally:
            going.cancel()

    async def _room(self, deadline: Deadline, traces: int = 1) -> None:
        """Wait until there is room for so many traces.

        Raises:
            RefusedError: there is none in time, or there will be none.
        """
        while not self.receiver.has_room(traces):  # other threads make room
            if self.receiver.is_stopped or not deadline.remaining:
                self.receiver.refuse()
            self._waiting += 1
            try:
                await asyncio.sleep(min(_LONGEST_LOOK, _LOOK * (1 + self._waiting // 10)))
            finally:
                self._waiting -= 1

    def _check_sender(self, gone: asyncio.Future[object]) -> None:
        """Raise a `RefusedError` if the sender has gone."""
        if gone.done() and not gone.cancelled():
            self.receiver.count("requests.gone")
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the sender has gone")

    async def _turn(self, gone: asyncio.Future[object], deadline: Deadline) -> None:
        """Wait for a turn, which the caller gives back.

        Raises:
            RefusedError: none came in time, or the sender has gone.
        """
        turn, has_turn = asyncio.ensure_future(self._turns.acquire()), False
        try:
            waited: set[asyncio.Future[Any]] = {turn, gone}
            await asyncio.wait(waited, timeout=deadline.remaining, return_when=asyncio.FIRST_COMPLETED)
            has_turn = turn.done() and not gone.done()
        finally:
            if not has_turn and not turn.cancel():
                self._turns.release()
        self._check_sender(gone)
        if not has_turn:
            self.receiver.refuse()

    def _read(
        self,
        body: bytes | bytearray,
        received: int,
        is_json: bool,  # noqa: FBT001
        is_packed: bool,  # noqa: FBT001
    ) -> tuple[Batch, int]:
        """The spans of a request, and how many traces of them are whole."""
        most = MAX_JSON if is_json else MAX_BODY
        plain = content_of(body, most=most, is_json=is_json, is_packed=is_packed)
        batch = batch_of(plain, received=received)
        return batch, self.receiver.whole_in(batch)
