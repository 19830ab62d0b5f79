"""What waits to be written, and what is written when. Starts no thread, waits for nothing, takes no lock.

A batch can fail in four ways. The backend names the items that failed: each goes its own way. It takes nothing at the
moment: all wait for it, and the items are as they were. It rejects the batch for good: it is halved until the item is alone
because of which it is rejected. Or it fails, for whatever reason: all wait a little, the batch's items longer, and the next
batch that they are in is half as large. So an item that makes a backend fail ends up alone and delays nobody.

What is due next is known without a look at all items, for thousands may wait: they are in a heap, by when they are due. Its
entries are checked when they come up, not removed when they are outdated.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import takewhile
from typing import Any, Generic, Literal, TypeAlias, TypeGuard, TypeVar

from ragspan.backoff import backoff
from ragspan.delivery.backend import (
    BatchRejected,
    Deliverable,
    Delivered,
    DeliveryOptions,
    DeliveryStats,
    DropReason,
    Ending,
    Failed,
    Rejected,
    SpanNotFound,
    Unavailable,
    WriteResult,
)

DeliveryState: TypeAlias = Literal["waiting", "settled", "lost"]
"""Of all scores of an answer together.

`waiting`: one of them is on its way. `settled`: each is delivered, or rejected for good, or there is no span to write it to.
`lost`: one was given up although a second emission might bring it there.
"""

_LONGEST_PAUSE = 10.0  # seconds between tries of a backend that is away, so that it is soon seen to be back
_MAX_RETRY_AFTER = 300.0  # seconds that a backend may ask to be left alone
_SMALL = 100  # outdated entries of the heap that do no harm
_WITHOUT_SPAN = {"no_span", "span_not_found"}  # what a second emission could not deliver either

_Item = TypeVar("_Item", bound=Deliverable)


@dataclass(slots=True, kw_only=True, eq=False)
class Entry(Generic[_Item]):
    """An item and how it fares."""

    item: _Item
    number: int
    """Items are numbered as they come, from 1."""
    due: float
    """When it is to be tried; of the queue's clock, as are all times."""
    ends: float
    """When it is given up."""
    max_batch_size: int
    tries: int = 0
    """Those that may have failed because of it."""
    trouble: DropReason = "unavailable"
    """Why it was not delivered yet."""
    in_flight: bool = False
    missed_since: float = math.inf
    """When its span was first looked for in vain."""
    missed_at: float = -math.inf
    """When it was last looked for in vain."""
    ended: Ending | None = None
    """How; None as long as it waits."""
    replaced_by: Entry[_Item] | None = None

    def is_lost(self) -> bool:
        """Whether it has ended, and might be written if it was emitted once more."""
        return self.ended is not None and self.ended[0] == "dropped" and self.ended[1] not in _WITHOUT_SPAN

    def is_waiting(self, max_span_wait: float) -> bool:
        """Whether it is on its way, and its span was not looked for in vain for so many seconds."""
        is_missed = self.trouble == "span_not_found" and self.missed_at - self.missed_since >= max_span_wait
        return self.ended is None and not is_missed


class DeliveryStatus:
    """Says what has become of the scores of one answer. May be asked from any thread; it waits for no I/O.

    Args:
        entries: those of the scores.
        is_lost: they were not let in.
    """

    def __init__(self, entries: Sequence[Entry[Any]], *, is_lost: bool = False) -> None:
        self._entries = entries
        self._is_lost = is_lost

    def state(self, *, max_span_wait: float = math.inf) -> DeliveryState:
        """What has become of them.

        Args:
            max_span_wait: seconds from the first look to the last for which a score's span was not there, after which the
                score counts as settled. It is tried further; but a span that is sampled out on its way never comes.
        """
        latest = [_latest(entry) for entry in self._entries]
        if self._is_lost or any(entry.is_lost() for entry in latest):
            return "lost"
        return "waiting" if any(entry.is_waiting(max_span_wait) for entry in latest) else "settled"


def _latest(entry: Entry[Any]) -> Entry[Any]:
    while entry.replaced_by is not None:
        entry = entry.replaced_by
    return entry


class RetryQueue(Generic[_Item]):
    """The items of one writer, from their emission to their end. Not safe to use from several threads at once."""

    def __init__(
        self,
        options: DeliveryOptions,
        *,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._options = options
        self._clock = clock
        self._draw = draw
        self._entries: OrderedDict[int, Entry[_Item]] = OrderedDict()
        """The oldest first; those in flight included."""
        self._latest: dict[Hashable, Entry[_Item]] = {}
        self._heap: list[tuple[float, int]] = []
        """When each entry that is not in flight is due, and its number."""
        self._bytes = 0
        self._paused_until = -math.inf
        self._failures = 0
        self._offered = 0
        self._totals: Counter[Ending] = Counter()
        self._told: Counter[Ending] = Counter()
        self.last_number = 0

    @property
    def waiting(self) -> int:
        """How many items have not ended."""
        return len(self._entries)

    def is_past(self, number: int) -> bool:
        """Whether all items up to this number have ended."""
        return next(iter(self._entries), number + 1) > number

    def lost(self) -> int:
        """How many items were dropped without a later one in their place."""
        return sum(n for (result, reason), n in self._totals.items() if result == "dropped" and reason != "replaced")

    def news(self) -> Mapping[Ending, int]:
        """How many items ended in each way since this was last asked."""
        news, self._told = self._totals - self._told, self._totals.copy()
        return news

    def stats(self) -> DeliveryStats:
        return DeliveryStats(
            offered=self._offered,
            waiting=len(self._entries),
            delivered=self._totals["delivered", None],
            rejected={str(reason): n for (result, reason), n in self._totals.items() if result == "rejected"},
            dropped={str(reason): n for (result, reason), n in self._totals.items() if result == "dropped"},
        )

    def put(self, items: Sequence[_Item]) -> Sequence[Entry[_Item]]:
        """Take items in, to which the oldest give way."""
        entries = [self._put(item) for item in items]
        while (is_full := len(self._entries) > self._options.queue_size) or self._bytes > self._options.queue_bytes:
            oldest = next(self._not_in_flight(), None)
            if oldest is None:
                break
            self._end(oldest, ("dropped", "queue_full" if is_full else "queue_bytes"))
        return entries

    def drop(self, number: int, reason: DropReason) -> None:
        """Count items that are not let in."""
        self._offered += number
        self._totals += Counter({("dropped", reason): number})

    def hurry(self) -> None:
        """Let everything be due now, whatever it waits for."""
        self._paused_until = -math.inf
        now = self._clock()
        for entry in self._entries.values():
            entry.due = min(entry.due, now)
        self._rebuild_heap()

    def abandon(self, reason: DropReason) -> None:
        """Give everything up, what is in flight included."""
        for entry in list(self._entries.values()):
            self._end(entry, ("dropped", reason))

    def expire(self) -> bool:
        """Give up what has become too old; whether there was any."""
        now = self._clock()
        # All have equally much time, so those whose time is up are the first ones.
        too_old = list(takewhile(lambda entry: entry.ends <= now, self._not_in_flight()))
        for entry in too_old:
            self._end(entry, ("dropped", entry.trouble))
        return bool(too_old)

    def next_due(self) -> float | None:
        """When there is something to write; None if nothing waits."""
        while self._heap:
            due, number = self._heap[0]
            if self._ready(due, number) is not None:
                return max(due, self._paused_until)
            heappop(self._heap)
        return None

    def take(self) -> list[Entry[_Item]]:
        """What is due, and what will be soon with it, oldest first and now in flight; to be settled when it was tried."""
        due_until = now = self._clock()
        if now < self._paused_until:
            return []
        batch: list[Entry[_Item]] = []
        left: list[Entry[_Item]] = []
        limit = self._options.batch_size
        while len(batch) < limit and (entry := self._pop(due_until)) is not None:
            if len(batch) >= entry.max_batch_size:
                left.append(entry)
                continue
            limit = min(limit, entry.max_batch_size)
            due_until = now + self._options.linger
            entry.in_flight = True
            batch.append(entry)
        for entry in left:
            self._push(entry)
        return sorted(batch, key=lambda entry: entry.number)

    def settle(self, batch: Sequence[Entry[_Item]], results: object) -> None:
        """Settle what the backend returned for the batch, or the exception that it raised."""
        for entry in batch:
            entry.in_flight = False
        if isinstance(results, Unavailable):
            self._pause(results.retry_after)
            for entry in batch:
                entry.trouble = "unavailable"
        elif _fits(results, batch):
            self._failures = 0
            for entry, result in zip(batch, results, strict=True):
                self._settle_one(entry, result)
        else:
            self._settle_whole(batch, results)
        for entry in batch:
            if entry.ended is None:
                self._put_back(entry)

    def _settle_whole(self, batch: Sequence[Entry[_Item]], error: object) -> None:
        """The batch has failed as a whole: an item that is alone is the reason, several are tried in smaller batches."""
        for entry in batch:
            entry.max_batch_size = max(1, len(batch) // 2)
            if not isinstance(error, BatchRejected):
                self._settle_one(entry, Failed())
            elif len(batch) == 1:
                self._settle_one(entry, Rejected(error.reason))
        if isinstance(error, BatchRejected):
            self._failures = 0
        else:
            self._pause(None)

    def _put_back(self, entry: Entry[_Item]) -> None:
        """Let it wait again, unless a later one came while it was in flight."""
        if self._latest[entry.item.key] is entry:
            self._push(entry)
        else:
            self._replace(entry)

    def _put(self, item: _Item) -> Entry[_Item]:
        now, options = self._clock(), self._options
        self._offered += 1
        self.last_number += 1
        entry = Entry(
            item=item,
            number=self.last_number,
            due=now + options.linger,
            ends=now + options.retry_window,
            max_batch_size=options.batch_size,
        )
        if item.size > options.queue_bytes:  # it would drive out all others, and then itself
            entry.ended = ("dropped", "queue_bytes")
            self._totals["dropped", "queue_bytes"] += 1
            return entry
        earlier = self._latest.get(item.key)
        self._latest[item.key] = entry
        self._entries[entry.number] = entry
        self._bytes += item.size
        self._push(entry)
        if earlier is not None and not earlier.in_flight:
            self._replace(earlier)
        return entry

    def _replace(self, entry: Entry[_Item]) -> None:
        entry.replaced_by = self._latest[entry.item.key]
        self._end(entry, ("dropped", "replaced"))

    def _end(self, entry: Entry[_Item], ending: Ending) -> None:
        if self._entries.pop(entry.number, None) is None:
            return
        entry.ended = ending
        self._bytes -= entry.item.size
        if self._latest[entry.item.key] is entry:
            del self._latest[entry.item.key]
        self._totals[ending] += 1

    def _settle_one(self, entry: Entry[_Item], result: WriteResult) -> None:
        match result:
            case Delivered():
                self._end(entry, ("delivered", None))
            case Rejected():
                self._end(entry, ("rejected", result.reason))
            case _:
                now = self._clock()
                entry.trouble = "failed"
                if isinstance(result, SpanNotFound):
                    entry.trouble, entry.missed_at = "span_not_found", now
                    entry.missed_since = min(entry.missed_since, now)
                entry.tries += 1
                entry.due = min(now + backoff(entry.tries, draw=self._draw), entry.ends)

    def _pause(self, retry_after: float | None) -> None:
        self._failures += 1
        pause = backoff(self._failures, longest=_LONGEST_PAUSE, draw=self._draw)
        if retry_after is not None:
            pause = max(pause, min(retry_after, _MAX_RETRY_AFTER))
        self._paused_until = self._clock() + pause

    def _push(self, entry: Entry[_Item]) -> None:
        heappush(self._heap, (entry.due, entry.number))
        if len(self._heap) > 2 * len(self._entries) + _SMALL:
            self._rebuild_heap()

    def _rebuild_heap(self) -> None:
        self._heap = [(entry.due, entry.number) for entry in self._entries.values() if not entry.in_flight]
        heapify(self._heap)

    def _pop(self, due_until: float) -> Entry[_Item] | None:
        """The entry that is due first, if it is due by then; it is no longer in the heap."""
        while self._heap and self._heap[0][0] <= due_until:
            entry = self._ready(*heappop(self._heap))
            if entry is not None:
                return entry
        return None

    def _ready(self, due: float, number: int) -> Entry[_Item] | None:
        entry = self._entries.get(number)
        return entry if entry is not None and not entry.in_flight and entry.due == due else None

    def _not_in_flight(self) -> Iterator[Entry[_Item]]:
        return (entry for entry in self._entries.values() if not entry.in_flight)


def _fits(results: object, batch: Sequence[object]) -> TypeGuard[Sequence[WriteResult]]:
    return (
        isinstance(results, Sequence)
        and len(results) == len(batch)
        and all(isinstance(result, WriteResult) for result in results)
    )
