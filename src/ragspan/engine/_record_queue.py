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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ragspan.config import DropPolicy
from ragspan.engine._threads import Deadline, ReentrantCriticalSection, step
from ragspan.engine.budget import TokenBucket
from ragspan.engine.stats import Counts, Dropped, DropReason
from ragspan.outcomes import ScoredRecord
from ragspan.records import Capture

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

    def end(self, item: Item, result: ScoredRecord | Dropped | None) -> None:
        """The item has this result; None where it was worked on, and nobody asks for what came of it."""
        ...

    def record_error(self, place: str) -> None:
        """Count something that went wrong and lost no record."""
        ...


@dataclass(slots=True, eq=False)
class _Waiter:
    """Somebody who waits until everything up to a sequence number is out."""

    sequence: int = 0
    is_out: queue.SimpleQueue[None] = field(default_factory=queue.SimpleQueue)


class RecordQueue(ReentrantCriticalSection):
    """What the request threads put in and the worker takes out.

    Args:
        max_count: items that may wait.
        max_bytes: the sum of their sizes.
        drop: what goes when it is full: the oldest items, or the newest, which is not let in.
        wake_worker: wakes or starts the worker; runs outside the steps.
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
        super().__init__()
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._drops_newest = drop == "newest"
        self._rate_limit = rate_limit
        self._wake_worker = wake_worker
        self._waiting: deque[Item] = deque()
        self._awaited: deque[Item] = deque()
        self._in_work: dict[int, Item] = {}
        self._waiters: list[_Waiter] = []
        self._refuses: DropReason | None = None
        self._worker_sleeps = True
        self.counts = Counts()
        self.bytes = 0
        """Bytes that wait."""
        self.uncounted = 0
        """Captures that could not even be refused, for want of stack; counted as `capture_error` with the next submit."""

    @property
    def is_closed(self) -> bool:
        return self._refuses is not None

    def close(self, reason: DropReason) -> None:
        """Refuse whatever is submitted from now on."""
        self._refuses = self._refuses or reason

    def has_in_work(self, item: Item) -> bool:
        """False once the item has ended in any way."""
        return item.sequence in self._in_work

    def let_worker_sleep(self) -> None:
        """There is no worker, or it stopped short of the queue's end: wake one for the next submit."""
        self._worker_sleeps = True

    def put_off(self, call: Callable[[], object]) -> None:
        """Call this when the interrupted step has ended, in the same thread."""
        self._later.append(call)

    def wait_until_out(self, deadline: Deadline) -> bool:
        """Wait for everything that was submitted before; False if some of it is not out by then.

        False at once inside a step, where waiting would be waiting for oneself.
        """
        if self.is_held_here:
            return False
        waiter = _Waiter()
        self._enlist(waiter)
        while left := deadline.remaining:
            with contextlib.suppress(queue.Empty):
                waiter.is_out.get(timeout=min(left, _LOOK_AGAIN))
                break
            self.see_to_worker()
        return self._dismiss(waiter) is True

    @step
    def submit(self, item: Item) -> list[Item]:
        """Let the item in, or refuse it. Returns what was evicted, so that it is let go of outside the step."""
        if self.uncounted:
            self._count_the_uncounted()
        evicted: list[Item] = []
        is_awaited = item.on_end is not None
        refused = self._refuses
        short_of = None if is_awaited else self._lacks_room_for(item.size)
        if refused is None and short_of and (self._drops_newest or item.size > self._max_bytes):
            refused = short_of
        if refused is None and self._rate_limit is not None and not self._rate_limit.take():
            refused = "rate_limited"
        if refused is not None:
            self.counts = self.counts.moved(submitted=1, dropped=refused)
            self._tell_end(item, Dropped(reason=refused))
            return evicted
        while short_of and self._waiting:
            evicted.append(oldest := self._waiting.popleft())
            self.bytes -= oldest.size
            self._drop([oldest], short_of, queued=-1)
            short_of = self._lacks_room_for(item.size)
        self.counts = self.counts.moved(submitted=1, queued=1)
        item.sequence = self.counts.submitted
        (self._awaited if is_awaited else self._waiting).append(item)
        self.bytes += item.size
        self._see_to_worker()
        return evicted

    @step
    def refuse(self, reason: DropReason) -> None:
        """Count a capture that cannot be let in."""
        self.counts = self.counts.moved(submitted=1, dropped=reason)

    @step
    def record_error(self, place: str) -> None:
        """Count something that went wrong and lost no record."""
        self.counts = self.counts.moved(error=place)

    @step
    def take(self) -> Item | None:
        """The oldest item, in work from now on; None lets the worker sleep until it is woken."""
        waiting, awaited = self._waiting, self._awaited
        if not waiting and not awaited:
            self._worker_sleeps = True
            return None
        is_awaited = awaited and (not waiting or awaited[0].sequence < waiting[0].sequence)
        item = (awaited if is_awaited else waiting).popleft()
        self.bytes -= item.size
        self._in_work[item.sequence] = item
        self.counts = self.counts.moved(queued=-1, in_flight=1)
        return item

    @step
    def end(self, item: Item, result: ScoredRecord | Dropped | None = None) -> None:
        """Count what became of an item in work, and tell who awaits it; None where nobody asks what came of it."""
        if self._in_work.pop(item.sequence, None) is None:
            return  # it was abandoned in the meantime, and counted then
        if not isinstance(result, Dropped):
            self.counts = self.counts.moved(in_flight=-1, scored=1)
        elif result.reason == "nothing_to_score":
            self.counts = self.counts.moved(in_flight=-1, nothing_to_score=1)
        else:
            self.counts = self.counts.moved(in_flight=-1, dropped=result.reason)
        if item.on_end is not None and result is not None:
            self._tell_end(item, result)
        if self._waiters:
            self._tell_waiters()

    @step
    def cancel(self, item: Item) -> None:
        """Drop an awaited item, wherever it is, unless it has ended: nobody waits for it any more."""
        if self._in_work.pop(item.sequence, None) is not None:
            self._drop([item], "cancelled", in_flight=-1)
        elif item in self._awaited:
            self._awaited.remove(item)
            self.bytes -= item.size
            self._drop([item], "cancelled", queued=-1)

    @step
    def see_to_worker(self) -> None:
        """Wake a worker if something waits and there is none: it may have died since the last submit."""
        self._see_to_worker()

    @step
    def worker_left(self) -> Sequence[Item]:
        """There is no worker any more: drop what it had in work, and wake one for what waits or comes."""
        lost = self._drop_in_work("worker_error")
        self._worker_sleeps = True
        self._see_to_worker()
        return lost

    @step
    def abandon(self) -> Sequence[Item]:
        """Drop all that is not out yet; returns it."""
        waiting = [*self._waiting, *self._awaited]
        self._waiting.clear()
        self._awaited.clear()
        self.bytes = 0
        self._drop(waiting, "shutdown", queued=-1)
        return [*waiting, *self._drop_in_work("shutdown")]

    @step
    def _enlist(self, waiter: _Waiter) -> None:
        self._count_the_uncounted()
        waiter.sequence = self.counts.submitted
        self._see_to_worker()  # it may have died since the last submit
        self._waiters.append(waiter)
        self._tell_waiters()

    @step
    def _dismiss(self, waiter: _Waiter) -> bool:
        """Whether it got what it waited for."""
        if waiter not in self._waiters:
            return True
        self._waiters.remove(waiter)
        return False

    # What follows runs inside a step.

    def _count_the_uncounted(self) -> None:
        while self.uncounted:
            self.uncounted -= 1
            self.counts = self.counts.moved(submitted=1, dropped="capture_error")

    def _lacks_room_for(self, size: int) -> DropReason | None:
        if self.bytes + size > self._max_bytes:
            return "queue_bytes"
        return "queue_full" if len(self._waiting) >= self._max_count else None

    def _drop(self, items: Sequence[Item], reason: DropReason, *, queued: int = 0, in_flight: int = 0) -> None:
        for item in items:
            self.counts = self.counts.moved(queued=queued, in_flight=in_flight, dropped=reason)
            self._tell_end(item, Dropped(reason=reason))
        self._tell_waiters()

    def _drop_in_work(self, reason: DropReason) -> Sequence[Item]:
        items = [*self._in_work.values()]
        self._in_work.clear()
        self._drop(items, reason, in_flight=-1)
        return items

    def _tell_end(self, item: Item, result: ScoredRecord | Dropped) -> None:
        if item.on_end is not None:
            self._later.append(functools.partial(item.on_end, result))

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
            self._later.append(self._wake)

    # And this outside of all steps.

    def _wake(self) -> None:
        try:
            self._wake_worker()
        except BaseException as error:
            self._worker_sleeps = True  # the next submit tries again
            if not isinstance(error, Exception):
                raise
