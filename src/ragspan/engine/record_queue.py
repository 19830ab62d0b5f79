"""What was submitted and is not yet out: what waits, and what is in work.

`submit` waits for nothing but other steps, of a few microseconds each. No code of the user's runs inside a step, not even the
finaliser of a capture that is let go. Each step replaces `stats` once for each item, by a balanced value.
"""

from __future__ import annotations

import functools
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ragspan.engine.stats import Dropped, DropReason, EngineStats
from ragspan.engine.threads import Deadline, ReentrantCriticalSection, step
from ragspan.outcomes import ScoredRecord
from ragspan.records import Capture

_FIRST_LOOK, _LOOK = 0.001, 0.02  # seconds between looks whether all is out


@dataclass(slots=True, eq=False)
class Item:
    """A capture on its way through the engine."""

    capture: Capture
    size: int
    """Bytes, as the capture hinted."""
    sequence: int = 0
    """Its place in the order of all submits, from 1."""
    sample: bool = True
    """False scores it whatever the sample rates say."""
    only: Collection[str] | None = None
    """The metrics that score it, by name; None is all."""
    on_end: Callable[[ScoredRecord | Dropped], None] | None = None
    """Called once with what became of it, outside of every lock."""
    is_out: bool = False
    """It has ended in any way; what is still done with it does not count."""


class RecordQueue(ReentrantCriticalSection):
    """What the request threads put in and the worker takes out, in the order of the submits.

    An item with `on_end` is neither refused nor evicted for lack of room: its caller holds it in any case.

    Args:
        max_count: items that may wait; the oldest ones go for new ones.
        max_bytes: the sum of their sizes and of those in work, which hold their memory until they are out.
        wake_worker: wakes or starts the worker, or sets `worker_sleeps`; runs outside the steps and raises nothing.
    """

    def __init__(self, *, max_count: int, max_bytes: int, wake_worker: Callable[[], None]) -> None:
        super().__init__()
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._wake_worker = wake_worker
        self._waiting: deque[Item] = deque()
        self._awaited: deque[Item] = deque()
        self._in_work: dict[int, Item] = {}
        self.refuses: DropReason | None = None
        """Why nothing is let in any more; None while it is."""
        self.is_ending = False
        """The process ends: what comes now pushes nothing out, and what has no room counts as `shutdown`."""
        self.worker_sleeps = True
        """There is no worker, or it stopped short of the queue's end: the next submit wakes one."""
        self.stats = EngineStats()
        """Replaced as a whole: who reads it takes no lock and sees no step half done."""
        self.bytes = 0
        """Bytes that wait or are in work."""

    def wait_until_out(self, deadline: Deadline) -> bool:
        """Wait for everything that was submitted before; False if some of it is not out by then, and at once inside a step."""
        submitted, pause = self.stats.submitted, _FIRST_LOOK
        while not self.is_held_here:
            if not self._is_left(submitted):
                return True
            if not (left := deadline.remaining):
                break
            time.sleep(min(pause, left))
            pause = min(2 * pause, _LOOK)
        return False

    def has_room(self, size: int) -> bool:
        """Whether an item of this size would push out no other. True of one that is too large to be let in at all."""
        return size > self._max_bytes or self._lacks_room_for(size) is None

    @step
    def submit(self, item: Item) -> list[Item]:
        """Let the item in, or refuse it. Returns what was evicted, so that it is let go of outside the step."""
        evicted: list[Item] = []
        is_awaited = item.on_end is not None
        short_of = None if is_awaited else self._lacks_room_for(item.size)
        refused = self.refuses
        if refused is None and short_of:
            if self.is_ending:
                refused = "shutdown"
            # What waits is summed up only when the queue is full of what is in work.
            elif (excess := self.bytes + item.size - self._max_bytes) > (self._waiting[0].size if self._waiting else 0):
                refused = short_of if excess > sum(one.size for one in self._waiting) else None
        if refused is not None:
            self._count(refused, submitted=1)
            self._end(item, Dropped(reason=refused))
            return evicted
        while short_of and self._waiting:
            evicted.append(oldest := self._waiting.popleft())
            self._drop([oldest], short_of, queued=-1)
            short_of = self._lacks_room_for(item.size)
        self._count(submitted=1, queued=1)
        item.sequence = self.stats.submitted
        (self._awaited if is_awaited else self._waiting).append(item)
        self.bytes += item.size
        self.ensure_worker()
        return evicted

    @step
    def refuse(self, reason: DropReason) -> None:
        """Count a capture that cannot be let in."""
        self._count(reason, submitted=1)

    @step
    def record_error(self, place: str) -> None:
        """Count something that went wrong and lost no record."""
        self._count(None, place)

    @step
    def take(self) -> Item | None:
        """The oldest item, in work from now on; None lets the worker sleep until it is woken."""
        waiting, awaited = self._waiting, self._awaited
        if not waiting and not awaited:
            self.worker_sleeps = True
            return None
        is_awaited = awaited and (not waiting or awaited[0].sequence < waiting[0].sequence)
        item = (awaited if is_awaited else waiting).popleft()
        self._in_work[item.sequence] = item
        self._count(queued=-1, in_flight=1)
        return item

    @step
    def end(self, item: Item, result: ScoredRecord | Dropped | None = None) -> None:
        """Count what became of an item in work, and call its `on_end`; None if nobody asks for the result."""
        if self._in_work.pop(item.sequence, None) is None:
            return  # it was dropped in the meantime, and counted then
        self.bytes -= item.size
        if not isinstance(result, Dropped):
            self._count(in_flight=-1, finished=1)
        elif result.reason == "nothing_to_score":
            self._count(in_flight=-1, nothing_to_score=1)
        else:
            self._count(result.reason, in_flight=-1)
        self._end(item, result)

    @step
    def cancel(self, item: Item) -> None:
        """Drop an item that nobody awaits any more, unless it has ended."""
        if self._in_work.pop(item.sequence, None) is not None:
            self._drop([item], "cancelled", in_flight=-1)
        elif item in self._awaited:
            self._awaited.remove(item)
            self._drop([item], "cancelled", queued=-1)

    @step
    def ensure_worker(self) -> None:
        """Start a worker if something waits and there is none: perhaps no thread could be started before."""
        if self.worker_sleeps and (self._waiting or self._awaited):
            self.worker_sleeps = False
            self._later.append(self._wake_worker)

    @step
    def drop_left(self, reason: DropReason, *, waiting: bool) -> Sequence[Item]:
        """Drop what is in work, and also what waits; returns it."""
        in_work, left = [*self._in_work.values()], [*self._waiting, *self._awaited] if waiting else []
        self._in_work.clear()
        self._drop(in_work, reason, in_flight=-1)
        if waiting:
            self._waiting.clear()
            self._awaited.clear()
            self._drop(left, reason, queued=-1)
        return in_work + left

    @step
    def _is_left(self, sequence: int) -> bool:
        """Whether something that was submitted up to here is not out."""
        self.ensure_worker()
        left = [*self._in_work, *(items[0].sequence for items in (self._waiting, self._awaited) if items)]
        return bool(left) and min(left) <= sequence

    # What follows runs inside a step.

    def _count(self, dropped: DropReason | None = None, error: str | None = None, /, **changes: int) -> None:
        """Change the counts by name; the changes have to keep the balance."""
        before = self.stats
        changed: dict[str, Any] = {name: getattr(before, name) + change for name, change in changes.items()}
        if dropped is not None:
            changed["dropped"] = {**before.dropped, dropped: before.dropped.get(dropped, 0) + 1}
        if error is not None:
            changed["errors"] = {**before.errors, error: before.errors.get(error, 0) + 1}
        self.stats = before._replace(**changed)

    def _lacks_room_for(self, size: int) -> DropReason | None:
        if self.bytes + size > self._max_bytes:
            return "queue_bytes"
        return "queue_full" if len(self._waiting) >= self._max_count else None

    def _drop(self, items: Sequence[Item], reason: DropReason, **changes: int) -> None:
        for item in items:
            self.bytes -= item.size
            self._count(reason, **changes)
            self._end(item, Dropped(reason=reason))

    def _end(self, item: Item, result: ScoredRecord | Dropped | None) -> None:
        item.is_out = True
        if item.on_end is not None and result is not None:
            self._later.append(functools.partial(item.on_end, result))
