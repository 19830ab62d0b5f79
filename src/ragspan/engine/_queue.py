"""A queue bounded by count and by bytes, which says what has to go when it is full."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragspan.config import DropPolicy
from ragspan.engine.stats import Dropped, DropReason
from ragspan.outcomes import ScoredRecord
from ragspan.records import Capture


@dataclass(slots=True, eq=False)
class Item:
    """A capture on its way through the engine."""

    capture: Capture
    size: int
    """Bytes, as the capture hinted."""
    ticket: int = 0
    """Its place in the order of all submits, from 1."""
    sample: bool = True
    """False scores it whatever the sample rates say."""
    on_end: Callable[[ScoredRecord | Dropped], None] | None = None
    """Told once what became of it. The one who waits for that holds the capture, so it takes no room in the queue."""


class BoundedQueue:
    """Items in the order of their submits. Not safe for threads by itself."""

    def __init__(self, *, max_count: int, max_bytes: int, drop: DropPolicy) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._drop = drop
        self._items: deque[Item] = deque()
        self.bytes = 0
        """The sum of the sizes of the items in it."""

    def __len__(self) -> int:
        return len(self._items)

    @property
    def first(self) -> Item | None:
        return self._items[0] if self._items else None

    def room_for(self, size: int) -> DropReason | None:
        """None if an item of this size fits in as things are, else what is short."""
        if self.bytes + size > self._max_bytes:
            return "queue_bytes"
        return "queue_full" if len(self._items) >= self._max_count else None

    def must_refuse(self, size: int) -> DropReason | None:
        """Why an item of this size is not let in; None if it is, once older ones have made room."""
        if size > self._max_bytes:
            return "queue_bytes"
        return self.room_for(size) if self._drop == "newest" else None

    def append(self, item: Item) -> None:
        self._items.append(item)
        self.bytes += item.size

    def take(self) -> Item | None:
        """The oldest item."""
        if not self._items:
            return None
        item = self._items.popleft()
        self.bytes -= item.size
        return item

    def take_all(self) -> Sequence[Item]:
        items, self._items, self.bytes = self._items, deque(), 0
        return items
