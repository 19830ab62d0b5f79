"""The way to the stream: a connection, the streams at its end, and a gate that is open while both are there.

Guarantees:
- The gate closes as soon as the connection is known to be lost, and whoever waits for an acknowledgement is told at once.
- Each time it opens, the streams were there or were made, if the broker lets us and answers within two seconds. If it does not, the
  gate opens all the same: who may publish need not be allowed to make streams.
- When the event loop is wound down, the connection is closed.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.sink._acknowledgements import Acknowledgements
from ragspan_nats.sink.options import SinkOptions
from ragspan_nats.streams import ensure_streams

if TYPE_CHECKING:
    from nats.aio.client import Client

_ANSWER_TIMEOUT = 5.0  # seconds; a cluster that stores three copies takes some milliseconds
_LOOK_TIMEOUT = 2.0  # seconds for seeing to the streams
_PAUSE = 1.0  # seconds, where a connection was lost while it was being made ready


class Link:
    """Keeps a connection from now on, for as long as the event loop runs."""

    def __init__(self, options: SinkOptions, *, log: ThrottledLog) -> None:
        self._options = options
        self._log = log
        self._connection = BrokerConnection(options.access, name=options.name, log=log, on_lost=self.close_gate)
        self._acknowledgements: Acknowledgements | None = None
        self._gate = asyncio.Event()
        self._has_closed = asyncio.Event()
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    @property
    def max_payload(self) -> int:
        """Bytes that a message may have, headers included."""
        return self._connection.max_payload

    def way(self) -> Acknowledgements | None:
        """What publishes, while the gate is open. Closes the gate where it finds the connection lost."""
        if not self._gate.is_set():
            return None
        if not self._connection.is_up:  # and nobody has told us yet
            self.close_gate()
            return None
        return self._acknowledgements

    async def open_within(self, seconds: float) -> bool:
        """Wait for the gate to be open; False if it was not, in this time."""
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._gate.wait(), seconds)
        return self._gate.is_set()

    def close_gate(self) -> None:
        """The connection is lost, or the stream: nothing is published until both are there again."""
        self._gate.clear()
        if self._acknowledgements is not None:
            self._acknowledgements.give_up()
        self._has_closed.set()

    async def _keep(self) -> None:
        try:
            while True:
                await self._open_once()
        finally:
            await self._connection.close()

    async def _open_once(self) -> None:
        """Make ready what is needed, and wait until it is there no longer."""
        try:
            client = await self._connection.client()
            self._has_closed.clear()
            await self._listen(client)
            await self._see_to_streams(client)
        except Exception as error:  # noqa: BLE001 - nats-py's, of a connection that was lost this very moment
            self._log.trouble("link", "the connection to the broker could not be used: %s", type(error).__name__)
            await asyncio.sleep(_PAUSE)
            return
        if not self._has_closed.is_set():
            self._gate.set()
        await self._has_closed.wait()

    async def _listen(self, client: Client) -> None:
        if self._acknowledgements is None or self._acknowledgements.client is not client:
            acknowledgements = Acknowledgements(client, timeout=_ANSWER_TIMEOUT)
            await acknowledgements.listen()
            self._acknowledgements = acknowledgements

    async def _see_to_streams(self, client: Client) -> None:
        jetstream = client.jetstream(timeout=_LOOK_TIMEOUT)
        looking = ensure_streams(jetstream, self._options.names, self._options.limits)
        try:
            await asyncio.wait_for(looking, _LOOK_TIMEOUT)
        except Exception as error:  # noqa: BLE001 - whatever it is, publishing may work
            self._log.trouble(
                "streams",
                "the stream %s could neither be found nor made: %s; records are published all the same",
                self._options.names.stream,
                type(error).__name__,
            )
