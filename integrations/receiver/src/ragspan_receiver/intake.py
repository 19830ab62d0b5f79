"""Where the servers hand the bodies of requests in: they are read in threads, and all under way have a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.engine.threads import Deadline
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.spans import batch_of

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request's body, before and after it is unpacked."""
MAX_JSON = 8 * 1024 * 1024
"""Bytes of a body in JSON."""
_MAX_HELD = 256 * 1024 * 1024  # bytes of all requests under way
_AT_ONCE = 2  # bodies that are read; more would only take turns with the interpreter
_ROOM = 8.0  # seconds that a sender waits for room before it has to try again; exporters wait for ten
_LOOK = 0.05  # seconds between two looks for room


class Intake:
    """Takes bodies for a receiver, in one event loop."""

    def __init__(self, receiver: Receiver) -> None:
        self.receiver = receiver
        self.held = 0
        """Bytes of requests under way."""
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ragspan-intake")

    @contextmanager
    def holding(self) -> Iterator[Callable[[int], None]]:
        """Gives a function that counts bytes of one request, until the block ends; it raises a `RefusedError` if they are too many."""
        size = 0

        def grow(more: int) -> None:
            nonlocal size
            size += more
            self.held += more
            if self.held > _MAX_HELD and more > 0:
                self.receiver.refuse()

        try:
            yield grow
        finally:
            self.held -= size

    async def wait_for_room(self) -> None:
        """Wait until the receiver takes spans.

        Raises:
            RefusedError: it does not in time, or will not again.
        """
        deadline = Deadline(_ROOM)
        while not self.receiver.is_ready:  # other threads make room
            if self.receiver.is_stopped or not deadline.remaining:
                self.receiver.refuse()
            await asyncio.sleep(_LOOK)

    async def take(
        self, body: bytes | bytearray, *, is_json: bool = False, is_packed: bool = False
    ) -> ExportTraceServiceResponse:
        """Take a request, in protobuf or JSON, plain or packed by gzip or zlib.

        Raises:
            RefusedError: it is not taken.
        """
        read = partial(batch_of, most=MAX_JSON if is_json else MAX_BODY, is_json=is_json, is_packed=is_packed)
        loop = asyncio.get_running_loop()
        batch = await loop.run_in_executor(self._threads, read, body)
        await self.wait_for_room()
        return await loop.run_in_executor(self._threads, self.receiver.take, batch)
