"""The consumer that all workers share, as one worker uses it: it receives messages and tells the broker how their deliveries end.

Guarantees:
- Messages are requested only when there is room for them, so none waits here while its `ack_wait` runs out.
- If the consumer, the stream or the broker is gone, it is asked for again once a second.
- What the broker does not confirm is sent again, over whatever connection there is. If it never arrives, the broker delivers the
  message again.
- A dead letter is stored before its message leaves the stream of records.
- A message that a killed broker has lost track of is put into the stream once more, and then its old copy is deleted.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ragspan.engine.processing import Deadline
from ragspan.telemetry.values import legible
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection, ensure_consumer, ensure_streams, error_text
from ragspan_nats.delivery import STOPPED, Delivery, Disposition
from ragspan_nats.message import deliver_again, publish_dead_letter, stored_messages
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg


# The request of a worker that died must end long before its messages are delivered again. If nats-server 2.9 finds only requests
# to which nobody listens, it takes a redelivery back, no longer counts it, and delivers another message twice.
_EXPIRY = 1.0  # seconds that a request stays with the broker, at most
_SHARE = 3  # the same as a part of `ack_wait`, at most; also the number of heartbeats in that time
_MARGIN = 1.0  # seconds after that, when a request counts as lost
LONGEST_REQUEST = _EXPIRY + _MARGIN
"""Seconds for which messages of a request may still come."""
_PAUSE = 1.0  # seconds between attempts
_HAS_A_MESSAGE: Final = "$JS.ACK."  # the subject for acknowledgements begins so; nobody else may use such subjects
_USUAL_STATUS = frozenset({"404", "408"})  # no messages, or the request has expired
_CONFIRMATION = 5.0  # seconds; a cluster that stores three copies takes some milliseconds
_RETRY_TIMEOUT = 120.0  # seconds; a stream that was deleted confirms nothing


@dataclass(kw_only=True, eq=False)
class Consumer:
    """The workers' consumer, as one worker uses it."""

    access: BrokerAccess
    stream: Stream
    options: WorkerOptions
    take: Callable[[Delivery], None]
    """Called with each message."""
    log: ThrottledLog
    scores: str = ""
    """Which metrics this worker scores, and by which judge."""

    def __post_init__(self) -> None:
        self._connection = BrokerConnection(self.access, name="ragspan worker", log=self.log, prepare=self._prepare)
        self._expiry = min(_EXPIRY, self.options.ack_wait / _SHARE)
        self._inbox = self._request = ""
        self._number = self._left = 0
        self._is_over = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether messages can come now."""
        return self._connection.ready_client is not None

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def request(self, number: int) -> None:
        """Request `number` messages. Returns when they have come, after a second, or when the broker cannot be asked."""
        try:
            client = await self._connection.client()
            self._number, self._left = self._number + 1, number
            self._request = f"{self._inbox}.{self._number}"
            self._is_over.clear()
            request = json.dumps({"batch": number, "expires": int(self._expiry * 1e9)}).encode()
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.stream.name}.{self.stream.consumer}"
            await client.publish(subject, request, reply=self._request)
            await asyncio.wait_for(self._is_over.wait(), self._expiry + _MARGIN)
        except Exception as error:  # noqa: BLE001 - whatever the broker or the client says, it is asked again
            self._connection.prepare_again()
            self.log.report("consumer", "records cannot be fetched: %s", error_text(error))
            await asyncio.sleep(_PAUSE)

    async def _hear(self, message: Msg) -> None:
        """Take a message, or the broker's status of a request. The subject tells them apart; a message may have any headers."""
        if message.reply.startswith(_HAS_A_MESSAGE):
            self._left -= 1
            self.take(Delivery.of(message))
        elif message.subject == self._request:
            self._left = 0
            status = (message.headers or {}).get("Status", "")
            if status not in _USUAL_STATUS:
                self._connection.prepare_again()
                self.log.report("consumer", "the broker ended a request for records with status %.20s", status)
                await asyncio.sleep(_PAUSE)
        if self._left <= 0:
            self._is_over.set()

    async def _prepare(self, client: Client) -> None:
        """Make the streams and the consumer if they are missing, and listen for messages."""
        from nats.js.errors import NotFoundError

        jetstream = client.jetstream()
        await ensure_streams(jetstream, self.stream)
        with suppress(NotFoundError):
            self._compare((await jetstream.consumer_info(self.stream.name, self.stream.consumer)).config.description)
        await ensure_consumer(jetstream, self.stream, self.options, self.scores)
        self._inbox = client.new_inbox()
        await client.subscribe(f"{self._inbox}.*", cb=self._hear)

    def _compare(self, others: str | None) -> None:
        """Say it if the worker that started last scores otherwise. The consumer's description tells what that does."""
        if self.scores and others and others != self.scores:
            self.log.report(
                "metrics",
                "workers of the stream %s score differently, so it is chance what a record gets: this one %s, another one %s",
                self.stream.name,
                self.scores,
                legible(others),
            )

    async def send_heartbeat(self, in_flight: Iterable[Delivery]) -> None:
        """Keep the broker from giving messages in flight to other workers.

        A message that is given back gets no heartbeat: it would wait for `ack_wait` in place of its delay.
        """
        client = await self._connection.client()
        for delivery in list(in_flight):
            if not delivery.is_nacked:
                await client.publish(delivery.reply, b"+WPI")

    async def end(self, delivery: Delivery, disposition: Disposition) -> Disposition:
        """Tell the broker how a delivery ends, until it confirms that; how it has really ended."""
        if disposition.ending == "dead_lettered" and not await self._dead_letter(delivery, disposition):
            disposition = Disposition(ending="nacked", reason="not_dead_lettered")
        if disposition.ending != "nacked":
            said = b"+ACK"
        elif disposition is STOPPED:
            said = b"-NAK"
        else:
            said = b"-NAK " + json.dumps({"delay": int(self.options.back_off(delivery.number) * 1e9)}).encode()
        deadline = Deadline(_RETRY_TIMEOUT)
        while deadline.remaining:
            try:
                client = await self._connection.client()
                await client.request(delivery.reply, said, timeout=_CONFIRMATION)
            except Exception as error:  # noqa: BLE001, PERF203 - it is sent again
                self.log.report("end", "the broker was not reached at the end of a delivery: %s", error_text(error))
                await asyncio.sleep(_PAUSE)
            else:
                return disposition
        return Disposition(ending="nacked", reason="not_confirmed")

    async def _dead_letter(self, delivery: Delivery, disposition: Disposition) -> bool:
        try:
            client = await self._connection.client()
            await ensure_streams(client.jetstream(), self.stream)  # somebody may have deleted it
            await publish_dead_letter(client, self.stream, delivery, disposition)
        except Exception as error:  # noqa: BLE001 - the message stays in the stream of records
            self.log.report("dead_letters", "a record could not be put aside: %s", error_text(error))
            return False
        return True

    async def recover_orphans(self) -> None:
        """Put messages into the stream once more that were delivered and still exist, but whose acknowledgement is not expected.

        A broker that is killed may have noted that a message was acknowledged, but not that it is deleted. Or it may have lost the
        note that a message was given back. They look alike, and nobody would get such a message again. They only show
        at a moment when the consumer expects no acknowledgement at all.

        Raises:
            nats.errors.Error: the broker does not permit it, or another worker moves the messages at the same moment.
        """
        from nats.js.api import RetentionPolicy

        client = await self._connection.client()
        jetstream, name = client.jetstream(), self.stream.name
        consumer = await jetstream.consumer_info(name, self.stream.consumer)
        self._compare(consumer.config.description)
        info = await jetstream.stream_info(name)
        keeps_acknowledged = info.config.retention != RetentionPolicy.WORK_QUEUE  # its owner may have chosen so
        if consumer.num_ack_pending or consumer.delivered is None or keeps_acknowledged:
            return
        orphans = stored_messages(
            jetstream, name, self.stream.records, first=info.state.first_seq, last=consumer.delivered.stream_seq
        )
        async for orphan in orphans:
            self.log.report("orphans", "the broker had lost track of a record, which is delivered again")
            await deliver_again(client, orphan, self.stream.records)
