"""What is written when: decides, and settles what came of it. Starts no thread, waits for nothing, takes no lock.

A batch can fail in four ways. The backend names the items that failed: each goes its own way. It takes nothing at the
moment: all wait for it, and the items are as they were. It refuses the batch for good: it is halved until the item is alone
for whose sake it is refused. Or it fails, for whatever reason: all wait a little, the batch's items longer, and they go
in half the company the next time. So an item that makes a backend fail ends up alone and holds nobody up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from ragspan.delivery._backoff import Backoff
from ragspan.delivery._line import Line, Waiting
from ragspan.delivery.destination import (
    BatchRefused,
    Deliverable,
    Failed,
    NotThereYet,
    Refused,
    Unavailable,
    WriteResult,
)
from ragspan.delivery.options import DeliveryOptions
from ragspan.delivery.receipt import Fate, is_lost
from ragspan.delivery.stats import Counts, DeliveryStats, DropReason, Ending, Result

_HURRIED = 0.5  # seconds between tries, at most, while somebody waits for them
_LONGEST_PAUSE = 10.0  # seconds between tries of a backend that is away, so that it is soon seen to be back
_MAX_RETRY_AFTER = 300.0  # seconds that a backend may ask to be left alone

_Item = TypeVar("_Item", bound=Deliverable)


class Schedule(Generic[_Item]):
    """The items of one writer, from their emission to their end."""

    def __init__(
        self,
        options: DeliveryOptions,
        *,
        counts: Counts,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._counts = counts
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._line: Line[_Item] = Line(max_count=options.queue_size, max_bytes=options.queue_bytes)
        self._paused_until = -math.inf
        self._failures = 0
        self._hurried = 0

    def __len__(self) -> int:
        return len(self._line)

    @property
    def last_number(self) -> int:
        return self._line.last_number

    def is_past(self, number: int) -> bool:
        """Whether all items up to this number have ended."""
        return self._line.is_past(number)

    def fate_of(self, entries: Sequence[Waiting[_Item]], span_patience: float) -> Fate:
        """What has become of all of these together, see `Receipt`."""
        if any(entry.ended is not None and is_lost(*entry.ended) for entry in entries):
            return "lost"
        waiting = (self._line.first_of(entry.item.key) for entry in entries if entry.ended is None)
        return "settled" if all(_seeks_its_span_for(span_patience, entry) for entry in waiting) else "waiting"

    @property
    def dropped(self) -> int:
        return self._counts.dropped

    @property
    def has_news(self) -> bool:
        return self._counts.has_news

    def news(self) -> Mapping[Ending, int]:
        """What ended since this was last asked."""
        return self._counts.news()

    def stats(self) -> DeliveryStats:
        return self._counts.stats(len(self._line))

    def put(self, items: Sequence[_Item]) -> Sequence[Waiting[_Item]]:
        """Take items in, to which the oldest give way."""
        entries = [self._put(item) for item in items]
        for entry, reason in self._line.make_room():
            self._end(entry, "dropped", reason)
        return entries

    def due_in(self, entries: Sequence[Waiting[_Item]]) -> float:
        """Seconds until the first of these is due."""
        due = min((entry.due for entry in entries), default=math.inf)
        return max(due, self._paused_until) - self._clock()

    def refuse(self, reason: DropReason, number: int) -> None:
        """Count items that are not let in."""
        self._counts.offered += number
        self._counts.end("dropped", reason, number)

    def hurry(self) -> None:
        """Somebody waits for everything to be delivered: try it now, and at short intervals."""
        self._hurried += 1
        self._paused_until = -math.inf
        self._line.hurry(self._clock())

    def hurry_no_more(self) -> None:
        self._hurried -= 1

    def abandon(self, reason: DropReason) -> int:
        """Give everything up, what is in work included; how much it was."""
        abandoned = self._line.clear()
        for entry in abandoned:
            self._end(entry, "dropped", reason)
        return len(abandoned)

    def wait(self) -> float | None:
        """Seconds until there is something to write; None if nothing waits. What has become too old is given up."""
        now = self._clock()
        for entry in self._line.overdue(now):
            self._line.remove(entry)
            self._end(entry, "dropped", entry.trouble)
        due = self._line.next_due(now)
        return None if due is None else max(due, self._paused_until, now) - now

    def begin(self) -> list[Waiting[_Item]]:
        """The next batch, to be settled when it was tried."""
        return self._line.take(self._clock(), self._options.batch_size)

    def settle(self, batch: Sequence[Waiting[_Item]], results: object) -> None:
        """Settle what the destination returned for the batch, or the exception that it raised."""
        for entry in batch:
            entry.in_work = False
        if isinstance(results, BatchRefused):
            self._split(batch, results.reason)
        elif isinstance(results, Unavailable):
            self._pause(results.retry_after)
            _note(batch, "unavailable")
        elif _is_result_for(batch, results):
            self._failures = 0
            for entry, result in zip(batch, results, strict=True):  # type: ignore[call-overload]
                self._settle_one(entry, result)
        else:
            self._pause(None)
            self._separate(batch)
        self._line.line_up(batch)

    def _put(self, item: _Item) -> Waiting[_Item]:
        now = self._clock()
        due = now if self._hurried else now + self._options.linger
        ends = now + self._options.retry_window
        self._counts.offered += 1
        entry = self._line.add(item, due=due, ends=ends, company=self._options.batch_size)
        if item.size > self._options.queue_bytes:  # it would drive out all others, and then itself
            self._line.remove(entry)
            self._end(entry, "dropped", "queue_bytes")
        return entry

    def _end(self, entry: Waiting[_Item], result: Result, reason: str | None = None) -> None:
        entry.ended = (result, reason)
        self._counts.end(result, reason)

    def _settle_one(self, entry: Waiting[_Item], result: WriteResult) -> None:
        if isinstance(result, (NotThereYet, Failed)):
            entry.trouble = "failed" if isinstance(result, Failed) else "span_not_found"
            if isinstance(result, NotThereYet):
                entry.missed_at = self._clock()
                entry.missed_since = entry.missed_at if entry.missed_since is None else entry.missed_since
            self._put_off(entry)
        elif self._line.remove(entry):
            if isinstance(result, Refused):
                self._end(entry, "refused", result.reason)
            else:
                self._end(entry, "delivered")

    def _split(self, batch: Sequence[Waiting[_Item]], reason: str) -> None:
        self._failures = 0
        if len(batch) == 1:
            self._settle_one(batch[0], Refused(reason))
            return
        for entry in batch:
            entry.company = _half(batch)

    def _separate(self, batch: Sequence[Waiting[_Item]]) -> None:
        _note(batch, "failed")
        for entry in batch:
            entry.company = _half(batch)
            self._put_off(entry)

    def _put_off(self, entry: Waiting[_Item]) -> None:
        entry.tries += 1
        entry.due = min(self._clock() + self._backoff.after(entry.tries, limit=self._limit), entry.ends)

    def _pause(self, retry_after: float | None) -> None:
        self._failures += 1
        pause = self._backoff.after(self._failures, limit=self._limit or _LONGEST_PAUSE)
        if retry_after is not None:
            pause = max(pause, min(retry_after, _MAX_RETRY_AFTER))
        self._paused_until = self._clock() + pause

    @property
    def _limit(self) -> float | None:
        return _HURRIED if self._hurried else None


def _seeks_its_span_for(seconds: float, entry: Waiting[_Item]) -> bool:
    """Whether that is what it waits for, and so much time has gone between the first look in vain and the last."""
    if entry.trouble != "span_not_found" or entry.missed_since is None or entry.missed_at is None:
        return False
    return entry.missed_at - entry.missed_since >= seconds


def _half(batch: Sequence[object]) -> int:
    return max(1, len(batch) // 2)


def _note(batch: Sequence[Waiting[_Item]], trouble: DropReason) -> None:
    for entry in batch:
        entry.trouble = trouble


def _is_result_for(batch: Sequence[object], results: object) -> bool:
    return (
        isinstance(results, Sequence)
        and len(results) == len(batch)
        and all(isinstance(result, WriteResult) for result in results)
    )
