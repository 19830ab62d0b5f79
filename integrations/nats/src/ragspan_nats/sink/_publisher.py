"""Publishes a message until the stream has it, or the patience is over."""

from __future__ import annotations

import asyncio

from ragspan.engine._deadline import Deadline
from ragspan.engine._record_queue import CompletionListener
from ragspan.engine.stats import DropReason
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.message import Message
from ragspan_nats.sink._acknowledgements import Acknowledgements
from ragspan_nats.sink._answers import Answer
from ragspan_nats.sink._brake import Brake
from ragspan_nats.sink._link import Link

_HEAD = len(b"NATS/1.0\r\n\r\n")
_AROUND_HEADER = len(b": \r\n")


class Publisher:
    """Publishes on one link. A message that is published again has the same id, by which the stream knows it."""

    def __init__(self, link: Link, *, subject: str, account: CompletionListener, log: ThrottledLog) -> None:
        self._link = link
        self._subject = subject
        self._account = account
        self._log = log
        self._brake = Brake()
        self._last_refusal: DropReason = "broker_unavailable"

    @property
    def obstacle(self) -> DropReason:
        """Why a record is given up that could not be published in time."""
        return self._last_refusal if self._link.way() is not None else "broker_unavailable"

    async def ready(self, patience: Deadline) -> Acknowledgements | None:
        """What publishes, once the way is open and nothing rests; None if that does not come in time."""
        while patience.remaining:
            pause = self._brake.remaining
            if pause:
                await asyncio.sleep(min(pause, patience.remaining))
            elif (way := self._link.way()) is not None:
                return way
            else:
                await self._link.open_within(patience.remaining)
        return None

    async def publish(self, message: Message, patience: Deadline) -> DropReason | None:
        """None once the stream has the message; else why it was given up."""
        while (way := await self.ready(patience)) is not None:
            if _size(message) > self._link.max_payload:
                return self._too_large(message)
            answer = await self._ask(way, message)
            if answer is Answer.STORED:
                self._brake.release()
                return None
            if answer is Answer.TOO_LARGE:
                return self._too_large(message)
            self._last_refusal = "stream_full" if answer is Answer.FULL else "broker_unavailable"
            self._account.record_error("publish")
        return self.obstacle

    async def _ask(self, way: Acknowledgements, message: Message) -> Answer | None:
        try:
            answer = await way.publish(self._subject, message)
        except Exception as error:  # noqa: BLE001 - nats-py's, of a connection that is being lost
            self._log.trouble("publish", "a record could not be published: %s", type(error).__name__)
            answer = Answer.REFUSED
        if answer is Answer.NO_STREAM:
            self._link.close_gate()  # to see to the stream
        if answer in {Answer.FULL, Answer.NO_STREAM, Answer.REFUSED}:
            self._brake.press()
        return answer

    def _too_large(self, message: Message) -> DropReason:
        self._log.trouble("too_large", "a record is larger than the broker takes: %d bytes", _size(message))
        return "too_large"


def _size(message: Message) -> int:
    """Bytes as the broker counts them, headers included."""
    headers = sum(len(name) + len(value) + _AROUND_HEADER for name, value in message.headers.items())
    return len(message.payload) + headers + _HEAD
