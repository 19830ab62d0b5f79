"""Takes messages from the workers' consumer, never more than there is room for.

nats-py's own `fetch` waits for a batch to be full before it hands the first message over; a record would lose its time there.

Guarantees:
- No more than what was asked for arrives, so that no message waits here while its time with the broker runs out.
- A consumer, a stream or a broker that is gone is asked again once a second, for as long as it takes.
- What the broker says of a request is told apart from a message whatever its headers say.
- After `stop` nothing is asked for; what was under way arrives still, until `stop` returns. From then on the broker holds no
  request of ours, so that what is given back goes to others.
- The request of a worker that died is over long before its records are delivered again. nats-server 2.9 takes a redelivery back
  that finds only requests to which nobody listens any more: it counts that delivery no longer, and delivers another message twice.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.streams import StreamLimits, StreamNames, ensure_consumer, ensure_streams

if TYPE_CHECKING:
    from datetime import datetime

    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

_EXPIRY = 1.0  # seconds that a request stays with the broker, at most
_SHARE = 3  # the same as a part of `ack_wait`, at most
_MARGIN = 1.0  # seconds after that, when an end that was not told is taken for granted
_PAUSE = 1.0  # seconds, where the broker could not do as asked
_OF_A_MESSAGE = "$JS.ACK."  # begins what a message from a stream is acknowledged by; nobody else may use such subjects
_STATUS = "Status"
_USUAL_ENDS = frozenset({"404", "408"})  # no messages, or the request's time is over


class Pull:
    """Asks for messages.

    Args:
        connection: to the broker.
        names: of stream and consumer.
        limits: of the streams, where they have to be made.
        ack_wait: of the consumer.
        max_ack_pending: likewise.
        room: how many messages may come at this moment.
        on_message: takes one.
        on_new_stream: called when another stream has taken the place of the one that there was.
        log: told of trouble.
    """

    def __init__(
        self,
        connection: BrokerConnection,
        names: StreamNames,
        *,
        limits: StreamLimits,
        ack_wait: float,
        max_ack_pending: int,
        room: Callable[[], int],
        on_message: Callable[[Msg], Awaitable[None]],
        on_new_stream: Callable[[], None],
        log: ThrottledLog,
    ) -> None:
        self._connection = connection
        self._names = names
        self._limits = limits
        self._ack_wait = ack_wait
        self._expiry = min(_EXPIRY, ack_wait / _SHARE)
        self._max_ack_pending = max_ack_pending
        self._room = room
        self._on_message = on_message
        self._on_new_stream = on_new_stream
        self._log = log
        self._client: Client | None = None
        self._subscription: Subscription | None = None
        self._inbox = ""
        self._stream_made_at: datetime | None = None
        self._is_prepared = False
        self._asked_for = 0
        self._ended = asyncio.Event()
        self._stopping = False

    @property
    def is_ready(self) -> bool:
        """Whether messages can come at this moment."""
        return self._is_prepared and self._connection.is_up

    async def run(self, wait_for_room: Callable[[], Awaitable[None]]) -> None:
        """Take messages until `stop`.

        Args:
            wait_for_room: returns when there may be room again, or after a while.
        """
        while not self._stopping:
            number = self._room()
            if number < 1:
                await wait_for_room()
                continue
            try:
                client = await self._prepared_client()
                if not self._stopping:
                    await self._ask(client, number)
            except Exception as error:  # noqa: BLE001 - whatever the broker or the client says, it is asked again
                self._is_prepared = False
                self._log.trouble("pull", "records cannot be fetched: %s", type(error).__name__)
                await asyncio.sleep(_PAUSE)

    async def stop(self) -> None:
        """Ask for nothing more, and return when what was asked for has come, or will not come any more."""
        self._stopping = True
        if self._connection.is_up:
            await self._all_taken()
        if self._subscription is not None and self._client is not None and self._client.is_connected:
            with suppress(Exception):  # the connection is about to be closed anyway
                await self._subscription.unsubscribe()

    async def _prepared_client(self) -> Client:
        """The client, with stream, consumer and subscription."""
        client = await self._connection.client()
        if client is self._client and self._is_prepared:
            return client
        jetstream = client.jetstream()
        await ensure_streams(jetstream, self._names, self._limits)
        self._look_at_stream((await jetstream.stream_info(self._names.stream)).created)
        await ensure_consumer(jetstream, self._names, ack_wait=self._ack_wait, max_ack_pending=self._max_ack_pending)
        if client is not self._client:
            self._inbox = client.new_inbox()
            self._subscription = await client.subscribe(self._inbox, cb=self._arrived)
            self._client = client
        self._is_prepared = True
        return client

    def _look_at_stream(self, made_at: datetime | None) -> None:
        before, self._stream_made_at = self._stream_made_at, made_at
        if before is not None and before != made_at:
            self._log.trouble("stream", "stream %s is another one than before", self._names.stream)
            self._on_new_stream()

    async def _ask(self, client: Client, number: int) -> None:
        self._asked_for = number
        self._ended.clear()
        request = {"batch": number, "expires": int(self._expiry * 1e9)}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._names.stream}.{self._names.consumer}"
        await client.publish(subject, json.dumps(request).encode(), reply=self._inbox)
        if not await self._all_taken():
            self._is_prepared = False  # the broker was away, or is another one now
        self._asked_for = 0

    async def _all_taken(self) -> bool:
        """Whether what was asked for has come and been taken; False when nothing has for a while."""
        while self._asked_for:
            before = self._asked_for
            try:
                await asyncio.wait_for(self._ended.wait(), self._expiry + _MARGIN)
            except asyncio.TimeoutError:
                if self._asked_for == before:
                    return False
        return True

    async def _arrived(self, message: Msg) -> None:
        status = (message.headers or {}).get(_STATUS, "")
        if message.reply.startswith(_OF_A_MESSAGE):
            try:
                await self._on_message(message)
            finally:
                self._asked_for -= 1  # once it is taken: `stop` waits for that
        elif not status.startswith("1"):  # 100 is a sign of life
            if status not in _USUAL_ENDS:
                self._is_prepared = False
                self._log.trouble("pull", "the broker ended a request for records with status %.20s", status)
                await asyncio.sleep(_PAUSE)
            self._asked_for = 0
        if self._asked_for <= 0:
            self._asked_for = 0
            self._ended.set()
