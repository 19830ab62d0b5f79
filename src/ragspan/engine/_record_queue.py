"""What was submitted and is not yet out: what waits, what is in work, and who waits for it.

Guarantees:
- `submit` waits for nothing but other steps, of a few microseconds each, and may be re-entered at any point in the same
  thread (see `ReentrantCriticalSection`). No code of the user's runs inside a step, not even the finaliser of a capture that
  is let go.
- What waits is bounded by number and by bytes. An item with `on_end` is neither refused nor evicted for want of room: who
  awaits it holds it in any case. Items leave in the order of their submits, whichever way they came.
- The worker is woken only when it sleeps: it has found the queue empty, or there is none. Exactly one caller wakes it.
- Who waits for the queue waits on a `SimpleQueue`, the one primitive of Python that may be signalled from a finaliser.
"""

from __future__ import annotations

import contextlib
import functools
import queue
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from ragspan.config import DropPolicy
from ragspan.engine._threads import Deadline, ReentrantCriticalSection
from ragspan.engine.budget import TokenBucket
from ragspan.engine.stats import Dropped, DropReason, EngineCounters
from ragspan.outcomes import ScoredRecord
from ragspan.records import Capture

_T = TypeVar("_T")

_LOOK_AGAIN = 1.0  # seconds until somebody who waits sees to it that there is a worker


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
    on_end: Callable[[ScoredRecord | Dropped], None] | None = None
    """Told once what became of it, outside of every lock."""


class CompletionListener(Protocol):
    """Told what becomes of the items in work: the queue, or in a helper process the application behind it."""

    def has_in_work(self, item: Item) -> bool:
        """False once the item has ended in any way."""
        ...

    def end_scored(self, item: Item, scored: ScoredRecord | None = None) -> None: ...

    def end_with_nothing_to_score(self, item: Item) -> None: ...

    def end_dropped(self, item: Item, reason: DropReason) -> None: ...

    def record_error(self, place: str) -> None:
        """Count something that went wrong and lost no record."""
        ...


@dataclass(slots=True, eq=False)
class _Waiter:
    """Somebody who waits until everything up to a sequence number is out."""

    sequence: int = 0
    is_out: queue.SimpleQueue[None] = field(default_factory=queue.SimpleQueue)


class RecordQueue:
    """What the request threads put in and the worker takes out.

    Args:
        max_count: items that may wait.
        max_bytes: the sum of their sizes.
        drop: what goes when it is full: the oldest items, or the newest, which is not let in.
        wake_worker: wakes or starts the worker; runs outside the critical section.
        rate_limit: lets in one capture a token; None lets in all.
    """

    def __init__(
        self,
        *,
        max_count: int,
        max_bytes: int,
        drop: DropPolicy,
        wake_worker: Callable[[], None],
        rate_limit: TokenBucket | None = None,
    ) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._drop = drop
        self._rate_limit = rate_limit
        self._wake_worker = wake_worker
        self._section = ReentrantCriticalSection()
        self._counters = EngineCounters()
        self._waiting: deque[Item] = deque()
        self._awaited: deque[Item] = deque()
        self._in_work: dict[int, Item] = {}
        self._waiters: list[_Waiter] = []
        self._ended: deque[Callable[[], None]] = deque()
        self._refuses: DropReason | None = None
        self._worker_sleeps = True
        self._wake_is_due = False
        self._put_off: Callable[[], object] | None = None
        self.stats = self._counters.stats
        self.bytes = 0
        """Bytes that wait."""
        self.uncounted = 0
        """Captures that could not even be refused, for want of stack; counted as `capture_error` with the next step."""

    @property
    def finished(self) -> int:
        return self._counters.finished

    @property
    def dropped(self) -> Mapping[str, int]:
        """By reason; another mapping after each drop."""
        return self._counters.dropped

    def submit(self, item: Item) -> None:
        self._run(self._admit, item)

    def refuse(self, reason: DropReason) -> None:
        """Count a capture that cannot be let in."""
        self._run(self._counters.refused, reason)

    def record_error(self, place: str) -> None:
        self._run(self._counters.record_error, place)

    def take(self) -> Item | None:
        """The oldest item, in work from now on; None lets the worker sleep until it is woken."""
        return self._run(self._take)

    def has_in_work(self, item: Item) -> bool:
        """False once the item has ended in any way."""
        return item.sequence in self._in_work

    def end_scored(self, item: Item, scored: ScoredRecord | None = None) -> None:
        self._run(self._end, item, scored, self._counters.scored)

    def end_with_nothing_to_score(self, item: Item) -> None:
        self._run(self._end, item, Dropped(reason="nothing_to_score"), self._counters.nothing_to_score)

    def end_dropped(self, item: Item, reason: DropReason) -> None:
        self._run(self._end, item, Dropped(reason=reason), self._counters.lost, reason)

    def cancel(self, item: Item) -> None:
        """Drop an awaited item, wherever it is, unless it has ended: nobody waits for it any more."""
        self._run(self._cancel, item)

    def see_to_worker(self) -> None:
        """Wake a worker if something waits and there is none: it may have died since the last submit."""
        self._run(self._see_to_worker)

    def worker_left(self) -> None:
        """There is no worker any more: drop what it had in work, and wake one for what waits or comes."""
        self._run(self._lose_worker)

    def let_worker_sleep(self) -> None:
        """There is no worker, or it stopped short of the queue's end: wake one for the next submit."""
        self._worker_sleeps = True

    @property
    def is_closed(self) -> bool:
        return self._refuses is not None

    def close(self, reason: DropReason) -> None:
        """Refuse whatever is submitted from now on."""
        self._refuses = self._refuses or reason

    def abandon(self) -> int:
        """Drop all that is not out yet; the number of records."""
        return len(self._run(self._abandon) or ())

    @property
    def is_held_here(self) -> bool:
        """Whether a signal handler or a finaliser has interrupted a step in this thread: all others wait for that step."""
        return self._section.is_held_here

    def put_off(self, call: Callable[[], object]) -> None:
        """Call this when the interrupted step has ended, in the same thread."""
        self._put_off = call

    def wait_until_out(self, deadline: Deadline) -> bool:
        """Wait for everything that was submitted before; False if some of it is not out by then.

        False at once inside a step, where waiting would be waiting for oneself.
        """
        if self.is_held_here:
            return False
        waiter = _Waiter()
        self._run(self._enlist, waiter)
        while left := deadline.remaining:
            with contextlib.suppress(queue.Empty):
                waiter.is_out.get(timeout=min(left, _LOOK_AGAIN))
                break
            self.see_to_worker()
        return self._run(self._dismiss, waiter) is True

    def _run(self, step: Callable[..., _T], *args: Any) -> _T | None:
        result = self._section.run(step, *args)
        if self.uncounted:
            self._section.run(self._count_the_uncounted)
        while self._ended:
            with contextlib.suppress(IndexError):  # another thread took it
                self._ended.popleft()()
        if self._wake_is_due:
            self._wake_is_due = False
            try:
                self._wake_worker()
            except BaseException as error:
                self._worker_sleeps = True  # the next submit tries again
                if not isinstance(error, Exception):
                    raise
        if self._put_off is not None and not self.is_held_here:
            call, self._put_off = self._put_off, None
            call()
        return result

    # What follows are steps: they run inside the section.

    def _count_the_uncounted(self) -> None:
        while self.uncounted:
            self.uncounted -= 1
            self._counters.refused("capture_error")

    def _admit(self, item: Item) -> list[Item]:
        """Returns what was evicted, so that it is let go of outside the section."""
        evicted: list[Item] = []
        is_awaited = item.on_end is not None
        refused = self._refuses or (None if is_awaited else self._must_refuse(item.size)) or self._is_over_the_rate()
        if refused:
            self._counters.refused(refused)
            self._tell_end(item, Dropped(reason=refused))
            return evicted
        while not is_awaited and (short_of := self._lacks_room_for(item.size)) and self._waiting:
            evicted.append(self._pop())
            self._counters.evicted(short_of)
        self._counters.queued()
        item.sequence = self._counters.submitted
        if is_awaited:
            self._awaited.append(item)
        else:
            self._waiting.append(item)
            self.bytes += item.size
        if evicted:
            self._tell_waiters()
        self._see_to_worker()
        return evicted

    def _must_refuse(self, size: int) -> DropReason | None:
        """Why an item of this size is not let in; None if it is, once older ones have made room."""
        if size > self._max_bytes:
            return "queue_bytes"
        return self._lacks_room_for(size) if self._drop == "newest" else None

    def _lacks_room_for(self, size: int) -> DropReason | None:
        if self.bytes + size > self._max_bytes:
            return "queue_bytes"
        return "queue_full" if len(self._waiting) >= self._max_count else None

    def _is_over_the_rate(self) -> DropReason | None:
        return "rate_limited" if self._rate_limit is not None and not self._rate_limit.take() else None

    def _pop(self) -> Item:
        item = self._waiting.popleft()
        self.bytes -= item.size
        return item

    def _take(self) -> Item | None:
        waiting, awaited = self._waiting, self._awaited
        if awaited and (not waiting or awaited[0].sequence < waiting[0].sequence):
            item = awaited.popleft()
        elif waiting:
            item = self._pop()
        else:
            self._worker_sleeps = True
            return None
        self._in_work[item.sequence] = item
        self._counters.taken()
        return item

    def _end(self, item: Item, result: ScoredRecord | Dropped | None, count: Callable[..., None], *args: Any) -> None:
        if self._in_work.pop(item.sequence, None) is None:
            return  # it was abandoned in the meantime, and counted then
        count(*args)
        self._tell_end(item, result)
        self._tell_waiters()

    def _cancel(self, item: Item) -> None:
        if self._in_work.pop(item.sequence, None) is not None:
            self._counters.lost("cancelled")
        elif item in self._awaited:
            self._awaited.remove(item)
            self._counters.evicted("cancelled")
        self._tell_waiters()

    def _tell_end(self, item: Item, result: ScoredRecord | Dropped | None) -> None:
        if item.on_end is not None and result is not None:
            self._ended.append(functools.partial(item.on_end, result))

    def _lose_worker(self) -> Sequence[Item]:
        lost = self._drop_in_work("worker_error")
        self._worker_sleeps = True
        self._see_to_worker()
        self._tell_waiters()
        return lost

    def _abandon(self) -> Sequence[Item]:
        waiting = [*self._waiting, *self._awaited]
        self._waiting.clear()
        self._awaited.clear()
        self.bytes = 0
        for item in waiting:
            self._counters.evicted("shutdown")
            self._tell_end(item, Dropped(reason="shutdown"))
        in_work = self._drop_in_work("shutdown")
        self._tell_waiters()
        return [*waiting, *in_work]

    def _drop_in_work(self, reason: DropReason) -> Sequence[Item]:
        dropped = [*self._in_work.values()]
        self._in_work.clear()
        for item in dropped:
            self._counters.lost(reason)
            self._tell_end(item, Dropped(reason=reason))
        return dropped

    def _enlist(self, waiter: _Waiter) -> None:
        waiter.sequence = self._counters.submitted
        self._see_to_worker()  # it may have died since the last submit
        self._waiters.append(waiter)
        self._tell_waiters()

    def _dismiss(self, waiter: _Waiter) -> bool:
        """Whether it got what it waited for."""
        if waiter not in self._waiters:
            return True
        self._waiters.remove(waiter)
        return False

    def _tell_waiters(self) -> None:
        if not self._waiters:
            return
        oldest = min(
            [*self._in_work, *(items[0].sequence for items in (self._waiting, self._awaited) if items)], default=None
        )
        for waiter in [waiter for waiter in self._waiters if oldest is None or oldest > waiter.sequence]:
            self._waiters.remove(waiter)
            waiter.is_out.put(None)

    def _see_to_worker(self) -> None:
        if self._worker_sleeps and (self._waiting or self._awaited):
            self._worker_sleeps = False
            self._wake_is_due = True
