"""Publishes with a subject to answer to, and hands each answer to whoever waits for it.

Guarantees:
- Whoever publishes gets an answer, or None: after the timeout, or as soon as `give_up` says that the connection is lost.
- What waits costs one future each and one timer for all. nats-py's own `publish` makes three futures, a timer and a random token
  for each message, and timers that outlive their message make the garbage collections of the application more frequent.
- Not more than a megabyte, and a message, waits in nats-py for a connection that takes nothing.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ragspan_nats.message import Message
from ragspan_nats.sink._answers import Answer, answer_in

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

_MAX_UNSENT = 1024 * 1024  # bytes
_LOOK_AGAIN = 0.05  # seconds


class Acknowledgements:
    """The answers to what one client publishes.

    Args:
        client: connected.
        timeout: seconds that an answer may take.
    """

    def __init__(self, client: Client, *, timeout: float) -> None:
        self.client = client
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._inbox = client.new_inbox()
        self._number = 0
        self._waiting: dict[str, tuple[asyncio.Future[Answer | None], float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def listen(self) -> None:
        """Ask the broker for the answers, on this connection and on those that the client makes later.

        Raises:
            nats.errors.Error: the client is closed.
        """
        await self.client.subscribe(f"{self._inbox}.*", cb=self._hear)

    async def publish(self, subject: str, message: Message) -> Answer | None:
        """What the stream says to the message; None if nobody says anything.

        Raises:
            nats.errors.Error: the client cannot publish at this moment.
        """
        if not await self._has_room():
            return None
        self._number += 1
        due = self._loop.time() + self._timeout
        reply_to = f"{self._inbox}.{self._number}"
        answer: asyncio.Future[Answer | None] = self._loop.create_future()
        self._waiting[reply_to] = (answer, due)
        if self._timer is None:
            self._timer = self._loop.call_at(due, self._expire)
        try:
            await self.client.publish(subject, message.payload, reply=reply_to, headers=dict(message.headers))
            return await answer
        finally:
            self._waiting.pop(reply_to, None)

    async def _has_room(self) -> bool:
        """Wait until what was published before has left; False if it does not."""
        limit = self._loop.time() + self._timeout
        while self.client.pending_data_size > _MAX_UNSENT and self._loop.time() < limit:  # noqa: ASYNC110 - nats-py tells nobody
            await asyncio.sleep(_LOOK_AGAIN)
        return self.client.pending_data_size <= _MAX_UNSENT

    def give_up(self) -> None:
        """No answer will come to what was published until now."""
        waiting, self._waiting = self._waiting, {}
        for answer, _ in waiting.values():
            _resolve(answer, None)

    async def _hear(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject)
        if waiting is not None:
            _resolve(waiting[0], answer_in(message))

    def _expire(self) -> None:
        self._timer = None
        now = self._loop.time()
        for answer, due in self._waiting.values():  # in the order in which they are due
            if due > now:
                self._timer = self._loop.call_at(due, self._expire)
                break
            _resolve(answer, None)


def _resolve(answer: asyncio.Future[Answer | None], result: Answer | None) -> None:
    if not answer.done():  # nobody waits for a cancelled one
        answer.set_result(result)
