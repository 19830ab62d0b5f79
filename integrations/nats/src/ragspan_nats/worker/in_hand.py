"""What a worker has in hand.

The engine's threads look records up here; everything else happens in the worker's loop. Single operations on dictionaries
are all that the two share, so there is no lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ragspan.records import RagRecord
from ragspan_nats.worker.delivery import Arrival, Delivery


class InHand:
    """Deliveries that have not ended."""

    def __init__(self) -> None:
        self._by_message: dict[tuple[int, float], Delivery] = {}
        self._by_record: dict[int, Delivery] = {}
        self._changed = asyncio.Event()
        self.settling = self.settling_bytes = 0
        """Messages without a record that are being put aside, and their bytes."""

    def __len__(self) -> int:
        return len(self._by_message) + self.settling

    def all(self) -> Sequence[Delivery]:
        return list(self._by_message.values())

    def being_scored(self) -> int:
        return sum(delivery.verdict is None for delivery in self.all())

    def size(self) -> int:
        """Bytes of JSON that the records take, and of the messages without a record."""
        return self.settling_bytes + sum(delivery.size for delivery in self.all())

    def of_message(self, arrival: Arrival) -> Delivery | None:
        """The delivery of the message that this one is another of."""
        return self._by_message.get(arrival.message)

    def of(self, record: RagRecord) -> Delivery | None:
        """The delivery of this very object; two messages may hold records with the same id."""
        return self._by_record.get(id(record))

    def add(self, delivery: Delivery) -> None:
        self._by_message[delivery.arrival.message] = delivery
        self._by_record[id(delivery.record)] = delivery

    def remove(self, delivery: Delivery) -> None:
        if self._by_message.get(delivery.arrival.message) is delivery:  # and not one that came after it was given back
            del self._by_message[delivery.arrival.message]
        self.withdraw(delivery)
        self.tell()

    def withdraw(self, delivery: Delivery) -> None:
        """Emit nothing more of its record; it is in hand until it is removed."""
        self._by_record.pop(id(delivery.record), None)

    def tell(self) -> None:
        """Wake who waits for a change."""
        self._changed.set()

    async def changed(self, timeout: float) -> None:
        """Wait until something has ended, for `timeout` seconds at most."""
        try:
            await asyncio.wait_for(self._changed.wait(), timeout)
        except asyncio.TimeoutError:
            return
        self._changed.clear()
