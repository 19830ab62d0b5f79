"""Tells the broker of what is in hand, so that it gives none of it to another worker.

Guarantees:
- Every record in hand is told of three times in `ack_wait`, or more often: in that of this worker or in that which the broker
  has, whichever is shorter. All workers share one consumer, and the last that was started has set it up.
- A broker that is away, or takes nothing, holds nothing up.

All of it runs in the worker's loop.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.streams import StreamNames
from ragspan_nats.worker.in_hand import InHand

if TYPE_CHECKING:
    from nats.aio.client import Client

_SIGN = b"+WPI"
_TIMES = 3  # in `ack_wait`
_LOOK = 5.0  # seconds between two looks at what the broker's `ack_wait` is
_LIMIT = 5.0  # seconds for each round


class Signs:
    """Gives the signs.

    Args:
        connection: to the broker.
        names: of stream and consumer.
        in_hand: what is told of.
        ack_wait: seconds, as this worker would have it.
        log: told of trouble.
    """

    def __init__(
        self, connection: BrokerConnection, names: StreamNames, in_hand: InHand, *, ack_wait: float, log: ThrottledLog
    ) -> None:
        self._connection = connection
        self._names = names
        self._in_hand = in_hand
        self._own_wait = self._wait = ack_wait
        self._log = log
        self._looked_at = time.monotonic()

    async def run(self) -> None:
        """Give signs until cancelled."""
        while True:
            await asyncio.sleep(min(self._wait / _TIMES, _LOOK))
            if not self._connection.is_up:
                continue
            try:
                await asyncio.wait_for(self._give(), _LIMIT)
            except Exception as error:  # noqa: BLE001 - the connection is lost at this moment, or the consumer is gone
                self._log.trouble("signs", "the broker could not be told of records in hand: %s", type(error).__name__)

    async def _give(self) -> None:
        client = await self._connection.client()
        for delivery in self._in_hand.all():
            # One that is given back would have to wait for the whole of `ack_wait` in place of its back-off.
            if not (delivery.is_given_back or delivery.is_orphan):
                await client.publish(delivery.arrival.reply, _SIGN)
        if time.monotonic() - self._looked_at >= _LOOK:
            self._looked_at = time.monotonic()
            await self._look(client)

    async def _look(self, client: Client) -> None:
        consumer = await client.jetstream().consumer_info(self._names.stream, self._names.consumer)
        theirs = consumer.config.ack_wait or self._own_wait
        self._wait = min(theirs, self._own_wait)
