"""The items that wait: bounded, in order, each with its own next time.

What is due next is known without a look at all of them, for thousands may wait: two heaps hold those that are ready, that
is, not in work and the first of their key. Their entries are checked when they come up, not removed when they are outdated.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Generic, TypeVar

from ragspan.delivery.destination import Deliverable
from ragspan.delivery.stats import DropReason, Ending

_Item = TypeVar("_Item", bound=Deliverable)

_SMALL = 100  # outdated entries of heaps that do no harm


@dataclass(slots=True, kw_only=True, eq=False)
class Waiting(Generic[_Item]):
    """An item and how it fares."""

    item: _Item
    number: int
    """Items are numbered as they come, from 1."""
    due: float
    """When it is to be tried; of the writer's clock, as are all times."""
    ends: float
    """When it is given up."""
    company: int
    """How many may go in one batch with it, itself included."""
    tries: int = 0
    """Those of which it may have been the fault that they failed."""
    trouble: DropReason = "unavailable"
    """Why it was not delivered yet."""
    in_work: bool = False
    missed_since: float | None = None
    """When its span was looked for in vain the first time."""
    missed_at: float | None = None
    """The same, the last time."""
    ended: Ending | None = None
    """How; None as long as it waits."""


class Line(Generic[_Item]):
    """Items in the order in which they came. Not safe to use from several threads at once.

    Those in work stay in it: they take memory, and are the first to be asked for by whoever waits for all of them.
    """

    def __init__(self, *, max_count: int, max_bytes: int) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._bytes = 0
        self._waiting: OrderedDict[int, Waiting[_Item]] = OrderedDict()
        self._of_key: dict[Hashable, list[Waiting[_Item]]] = {}
        self._by_due: list[tuple[float, int]] = []
        """Heap of when each ready item is due, and its number."""
        self._untried: list[int] = []
        """Heap of the numbers of ready items that were never tried."""
        self.last_number = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, item: _Item, *, due: float, ends: float, company: int) -> Waiting[_Item]:
        self.last_number += 1
        entry = Waiting(item=item, number=self.last_number, due=due, ends=ends, company=company)
        self._waiting[entry.number] = entry
        self._of_key.setdefault(item.key, []).append(entry)
        self._bytes += item.size
        self.line_up([entry])
        return entry

    def line_up(self, entries: Iterable[Waiting[_Item]]) -> None:
        """Note when these are due which are there and not in work; to be called whenever that has changed."""
        for entry in entries:
            if self._is_ready(entry):
                heappush(self._by_due, (entry.due, entry.number))
                if not entry.tries:
                    heappush(self._untried, entry.number)
        if len(self._by_due) + len(self._untried) > 4 * len(self._waiting) + _SMALL:
            self._line_up_anew()

    def make_room(self) -> Iterator[tuple[Waiting[_Item], DropReason]]:
        """Remove the oldest until the bounds are kept; each with the reason."""
        while (reason := self._excess()) and (oldest := next(self._not_in_work(), None)) is not None:
            self.remove(oldest)
            yield oldest, reason

    def remove(self, entry: Waiting[_Item]) -> bool:
        """False if it is not there any more."""
        if self._waiting.pop(entry.number, None) is None:
            return False
        self._bytes -= entry.item.size
        same = self._of_key[entry.item.key]
        same.remove(entry)
        if same:
            self.line_up(same[:1])
        else:
            del self._of_key[entry.item.key]
        return True

    def clear(self) -> Sequence[Waiting[_Item]]:
        """Remove everything, what is in work included, and return it."""
        removed = list(self._waiting.values())
        self._waiting.clear()
        self._of_key.clear()
        self._by_due, self._untried = [], []
        self._bytes = 0
        return removed

    def first_of(self, key: Hashable) -> Waiting[_Item]:
        """The one that all others of its key wait for; there has to be one."""
        return self._of_key[key][0]

    def is_past(self, number: int) -> bool:
        """Whether everything up to this number has left the line."""
        return next(iter(self._waiting), number + 1) > number

    def overdue(self, now: float) -> Iterator[Waiting[_Item]]:
        """Those whose time is up; all have equally much, so they are the first ones."""
        yield from list(self._while_over(now))

    def hurry(self, now: float) -> None:
        """Let everything be due now."""
        for entry in self._waiting.values():
            entry.due = min(entry.due, now)
        self._line_up_anew()

    def next_due(self, now: float) -> float | None:
        """When the next one is due: `now` at the latest if one is already, None if none waits."""
        while self._by_due:
            due, number = self._by_due[0]
            if self._ready(number, due) is not None:
                return max(due, now)
            heappop(self._by_due)
        return None

    def take(self, now: float, limit: int) -> list[Waiting[_Item]]:
        """Those that are due, and such as were never tried to go along with them: one of a key, in order, now in work."""
        batch: list[Waiting[_Item]] = []
        passed: list[Waiting[_Item]] = []
        while len(batch) < limit and (entry := self._next_to_take(now)) is not None:
            if len(batch) >= entry.company:
                passed.append(entry)
                continue
            limit = min(limit, entry.company)
            entry.in_work = True
            batch.append(entry)
        self.line_up(passed)
        return sorted(batch, key=lambda entry: entry.number)

    def _next_to_take(self, now: float) -> Waiting[_Item] | None:
        """The one that is due for the longest time, else the oldest that was never tried; it is no longer in the heap."""
        while self._by_due and self._by_due[0][0] <= now:
            due, number = heappop(self._by_due)
            if (entry := self._ready(number, due)) is not None:
                return entry
        while self._untried:
            entry = self._ready(heappop(self._untried))
            if entry is not None and not entry.tries:
                return entry
        return None

    def _line_up_anew(self) -> None:
        self._by_due, self._untried = [], []
        self.line_up(self._waiting.values())

    def _ready(self, number: int, due: float | None = None) -> Waiting[_Item] | None:
        """The item of this number, if it is ready, and due at that time."""
        entry = self._waiting.get(number)
        if entry is None or not self._is_ready(entry) or (due is not None and entry.due != due):
            return None
        return entry

    def _is_ready(self, entry: Waiting[_Item]) -> bool:
        is_there = entry.number in self._waiting and not entry.in_work
        return is_there and self.first_of(entry.item.key) is entry

    def _excess(self) -> DropReason | None:
        if len(self._waiting) > self._max_count:
            return "queue_full"
        return "queue_bytes" if self._bytes > self._max_bytes else None

    def _not_in_work(self) -> Iterator[Waiting[_Item]]:
        return (entry for entry in self._waiting.values() if not entry.in_work)

    def _while_over(self, now: float) -> Iterator[Waiting[_Item]]:
        for entry in self._waiting.values():
            if entry.ends > now:
                return
            if not entry.in_work:
                yield entry
