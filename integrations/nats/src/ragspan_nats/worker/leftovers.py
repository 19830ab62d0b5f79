"""Delivers again what the consumer has lost sight of: messages that it has delivered, waits for no longer, and that are there still.

A broker that is killed may have noted that a message was acknowledged, and not yet that it is gone; or it may have lost the
note that the message was given back. Which of the two cannot be told any more, and nobody would get such a message again. So
it is put at the end of the stream as one that may have been delivered before: at worst it is scored twice, and says so.

Guarantees:
- Only what the consumer has delivered is taken for one, and only at a moment when it waits for no acknowledgement at all.
- It is published again before it is taken out of its place. Workers that do so at the same time publish it once.
- A stream that is no work queue, because its owner made it otherwise, is left alone.

All of it runs in the worker's loop.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b
from typing import TYPE_CHECKING

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.headers import fitting, headers_of, max_payload_of
from ragspan_nats.message import MESSAGE_ID
from ragspan_nats.streams import StreamNames
from ragspan_nats.worker.delivery import EARLIER_DELIVERIES, earlier_deliveries_in

if TYPE_CHECKING:
    from nats.js import JetStreamContext
    from nats.js.api import RawStreamMsg

_INTERVAL = 10.0  # seconds
_LIMIT = 10.0  # seconds for each look


class Leftovers:
    """Looks for such messages.

    Args:
        connection: to the broker.
        names: of stream and consumer.
        log: told of trouble.
    """

    def __init__(self, connection: BrokerConnection, names: StreamNames, *, log: ThrottledLog) -> None:
        self._connection = connection
        self._names = names
        self._log = log

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(_INTERVAL)
            if not self._connection.is_up:
                continue
            try:
                await asyncio.wait_for(self.look(), _LIMIT)
            except Exception as error:  # noqa: BLE001 - the broker is away, or does not let us
                self._log.trouble("leftovers", "the stream could not be looked through: %s", type(error).__name__)

    async def look(self) -> None:
        """Look once.

        Raises:
            nats.errors.Error: the broker is away, or does not let us.
        """
        from nats.js.api import RetentionPolicy
        from nats.js.errors import NotFoundError

        jetstream = await self._connection.jetstream()
        consumer = await jetstream.consumer_info(self._names.stream, self._names.consumer)
        if consumer.num_ack_pending or consumer.delivered is None:
            return
        last = consumer.delivered.stream_seq
        stream = await jetstream.stream_info(self._names.stream)
        sequence = stream.state.first_seq
        if stream.config.retention != RetentionPolicy.WORK_QUEUE or not stream.state.messages:
            return
        while sequence <= last:
            try:
                message = await jetstream.get_msg(self._names.stream, sequence, self._names.records, next=True)
            except NotFoundError:
                return
            sequence = message.seq or sequence
            if sequence <= last:
                self._log.trouble("leftovers", "the broker had lost sight of a record, which is delivered again")
                await self._deliver_again(jetstream, sequence, message)
            sequence += 1

    async def _deliver_again(self, jetstream: JetStreamContext, sequence: int, message: RawStreamMsg) -> None:
        payload, before = message.data or b"", headers_of(message)
        own = {
            MESSAGE_ID: f"{self._names.stream}-{sequence}-{blake2b(payload, digest_size=8).hexdigest()}",
            EARLIER_DELIVERIES: str(earlier_deliveries_in(before) + 1),
        }
        headers = fitting(before, own, payload, max_payload_of(jetstream))
        if headers is None:  # nothing that our sink has published; its own headers would have had room
            return
        await jetstream.publish(self._names.records, payload, headers=headers)
        await jetstream.delete_msg(self._names.stream, sequence)
