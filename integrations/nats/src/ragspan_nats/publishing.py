"""Publishes messages to the stream, on a connection that is kept for as long as the event loop runs.

Guarantees:
- Each time the connection is made, the streams are there or are made, if the broker lets us and answers within two seconds. If
  it does not, records are published all the same: who may publish need not be allowed to make streams.
- A message that is published again has the same id, by which the stream knows it.
- Not more than a megabyte, and a message, waits in nats-py for a connection that takes nothing.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from ragspan.engine._threads import Deadline
from ragspan.engine.stats import DropReason
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection, ensure_streams, has_no_listener
from ragspan_nats.message import Message
from ragspan_nats.settings import BrokerAccess, StreamLimits, StreamNames

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

_LOOK_TIMEOUT = 2.0  # seconds for seeing to the streams
_MAX_UNSENT = 1024 * 1024  # bytes
_UNSENT_TIMEOUT, _LOOK_AGAIN = 5.0, 0.05  # seconds
_NO_ROOM = frozenset({10002, 10023, 10028, 10047, 10077})  # account, server, memory, store, stream
_TOO_LARGE = frozenset({10054, 10097})  # the message for the stream, or its headers for any
_SHORTEST_REST, _LONGEST_REST = 0.25, 10.0  # seconds

Answer: TypeAlias = Literal["stored", "stream_full", "too_large", "no_stream", "broker_unavailable"]
"""What the stream says to a message. `broker_unavailable` is anything that may change."""


class Brake:
    """How long publishing rests while the stream takes nothing: longer after every refusal, not at all after a success."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause = self._until = 0.0

    @property
    def remaining(self) -> float:
        """Seconds left of the pause; 0 without one."""
        return max(0.0, self._until - self._clock()) if self._until else 0.0

    def press(self) -> None:
        """Something was refused. What is refused during a pause was sent before it, and makes it no longer."""
        if self.remaining:
            return
        self._pause = min(max(_SHORTEST_REST, 2 * self._pause), _LONGEST_REST)
        self._until = self._clock() + self._pause

    def release(self) -> None:
        """Something was taken."""
        self._pause = self._until = 0.0


class StreamPublisher:
    """Publishes messages.

    Args:
        access: the broker.
        names: of the streams.
        limits: of the streams, where they have to be made.
        name: what the broker's own statistics call us.
        retried: called when a message is to be published once more.
        log: told of trouble.
    """

    def __init__(
        self,
        access: BrokerAccess,
        names: StreamNames,
        limits: StreamLimits,
        *,
        name: str,
        retried: Callable[[], None],
        log: ThrottledLog,
    ) -> None:
        self._names = names
        self._limits = limits
        self._retried = retried
        self._log = log
        self._brake = Brake()
        self._last_refusal: DropReason = "broker_unavailable"
        self._connection = BrokerConnection(access, name=name, log=log, on_lost=self._close)
        self._client: Client | None = None
        """None while the connection, or the stream, is not there."""
        self._opened, self._closed = asyncio.Event(), asyncio.Event()
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    @property
    def obstacle(self) -> DropReason:
        """Why a record is given up that could not be published in time."""
        return "broker_unavailable" if self._usable() is None else self._last_refusal

    async def ready(self, limit: Deadline) -> Client | None:
        """What publishes, once it is there and nothing rests; None if that does not come in time."""
        while limit.remaining:
            if pause := self._brake.remaining:
                await asyncio.sleep(min(pause, limit.remaining))
            elif (client := self._usable()) is not None:
                return client
            else:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._opened.wait(), limit.remaining)
        return None

    async def publish(self, message: Message, limit: Deadline) -> DropReason | None:
        """None once the stream has the message; else why it was given up."""
        while (client := await self.ready(limit)) is not None:
            answer = await self._try(client, message)
            if answer == "stored":
                self._brake.release()
                return None
            if answer == "too_large":
                self._log.trouble("too_large", "a record is larger than the broker takes: %d bytes", message.size)
                return answer
            if answer == "no_stream":
                self._close()  # to see to the stream
            self._last_refusal = "stream_full" if answer == "stream_full" else "broker_unavailable"
            self._retried()
        return self.obstacle

    async def _try(self, client: Client, message: Message) -> Answer:
        """What the stream says to the message."""
        if message.size > self._connection.max_payload:
            return "too_large"
        answer: Answer = "broker_unavailable"
        try:
            if not await self._has_room(client):
                return answer
            reply = await self._connection.ask(client, self._names.records, message.payload, message.headers)
            if reply is None:
                return answer
            answer = _answer_in(reply)
        except Exception as error:  # noqa: BLE001 - nats-py's, of a connection that is being lost
            self._log.trouble("publish", "a record could not be published: %s", type(error).__name__)
        if answer not in {"stored", "too_large"}:
            self._brake.press()
        return answer

    async def _has_room(self, client: Client) -> bool:
        """Wait until what was published before has left; False if it does not."""
        limit = Deadline(_UNSENT_TIMEOUT)
        while client.pending_data_size > _MAX_UNSENT and limit.remaining:  # noqa: ASYNC110 - nats-py tells nobody
            await asyncio.sleep(_LOOK_AGAIN)
        return client.pending_data_size <= _MAX_UNSENT

    def _usable(self) -> Client | None:
        if self._client is not None and not self._connection.is_up:  # and nobody has told us yet
            self._close()
        return self._client

    def _close(self) -> None:
        """The connection is lost, or the stream: nothing is published until both are there again."""
        self._client = None
        self._opened.clear()
        self._closed.set()
        self._connection.stop_waiting()

    async def _keep(self) -> None:
        """Open the way to the stream whenever it is closed."""
        try:
            while True:
                await self._open()
                await self._closed.wait()
        finally:
            await self._connection.close()

    async def _open(self) -> None:
        client = await self._connection.client()
        self._closed.clear()
        jetstream = client.jetstream(timeout=_LOOK_TIMEOUT)
        try:
            await asyncio.wait_for(ensure_streams(jetstream, self._names, self._limits), _LOOK_TIMEOUT)
        except Exception as error:  # noqa: BLE001 - whatever it is, publishing may work
            self._log.trouble(
                "streams",
                "the stream %s could neither be found nor made: %s; records are published all the same",
                self._names.stream,
                type(error).__name__,
            )
        if not self._closed.is_set():
            self._client = client
            self._opened.set()


def _answer_in(message: Msg) -> Answer:
    """What this reply to a publish says. Garbage is a refusal. nats-py's own `publish_async` never answers some errors."""
    if has_no_listener(message):
        return "no_stream"
    try:
        reply = json.loads(message.data)
    except ValueError:
        return "broker_unavailable"
    if not isinstance(reply, dict):
        return "broker_unavailable"
    error = reply.get("error")
    if error is None and isinstance(reply.get("seq"), int) and "stream" in reply:
        return "stored"
    code = error.get("err_code") if isinstance(error, dict) else None
    if isinstance(code, int) and code in _NO_ROOM | _TOO_LARGE:
        return "stream_full" if code in _NO_ROOM else "too_large"
    return "broker_unavailable"
