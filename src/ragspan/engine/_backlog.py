"""Everything that was submitted and is not yet out: the queue, what is in work, and who waits for it.

Guarantees:
- `submit` waits for nothing but other steps, of a few microseconds each, and may be re-entered at any point in the same
  thread (see `Section`). No code of the user's runs inside a step, not even the finaliser of a capture that is let go.
- The worker is called only when it sleeps: it has found the queue empty, or there is none. Exactly one caller is told to
  call it.
- An item with `on_end` is neither refused nor evicted for want of room: who awaits it holds it in any case. Items leave in
  the order of their submits, whichever way they came.
- Who waits for the backlog waits on a `SimpleQueue`, the one primitive of Python that may be signalled from a finaliser.
"""

from __future__ import annotations

import contextlib
import functools
import queue
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ragspan.engine._deadline import Deadline
from ragspan.engine._ledger import Ledger
from ragspan.engine._queue import BoundedQueue, Item
from ragspan.engine._section import Section
from ragspan.engine._token_bucket import TokenBucket
from ragspan.engine.stats import Dropped, DropReason
from ragspan.outcomes import ScoredRecord

_T = TypeVar("_T")

_LOOK_AGAIN = 1.0  # seconds until somebody who waits sees to it that there is a worker


@dataclass(slots=True, eq=False)
class _Waiter:
    """Somebody who waits until everything up to a ticket is out."""

    ticket: int = 0
    is_out: queue.SimpleQueue[None] = field(default_factory=queue.SimpleQueue)


class Backlog:
    """What the request threads put in and the worker takes out.

    Args:
        items: the queue, which from now on belongs to the backlog.
        call_worker: wakes or starts the worker; runs outside the critical section.
        admission: lets in one capture a token; None lets in all.
    """

    def __init__(
        self, items: BoundedQueue, *, call_worker: Callable[[], None], admission: TokenBucket | None = None
    ) -> None:
        self._queue = items
        self._admission = admission
        self._call_worker = call_worker
        self._section = Section()
        self._ledger = Ledger()
        self._awaited: deque[Item] = deque()
        self._in_work: dict[int, Item] = {}
        self._ended: deque[Callable[[], None]] = deque()
        self._waiters: list[_Waiter] = []
        self._refuses: DropReason | None = None
        self._worker_sleeps = True
        self._call_is_due = False
        self._put_off: Callable[[], object] | None = None
        self.stats = self._ledger.stats
        self.uncounted = 0
        """Captures that could not even be refused, for want of stack; counted as `capture_error` with the next step."""

    @property
    def bytes(self) -> int:
        """Bytes that wait in the queue."""
        return self._queue.bytes

    @property
    def finished(self) -> int:
        return self._ledger.finished

    @property
    def dropped(self) -> Mapping[str, int]:
        """By reason; another mapping after each drop."""
        return self._ledger.dropped

    def submit(self, item: Item) -> None:
        self._run(self._admit, item)

    def refuse(self, reason: DropReason) -> None:
        """Count a capture that cannot be let in."""
        self._run(self._ledger.refused, reason)

    def went_wrong(self, place: str) -> None:
        self._run(self._ledger.went_wrong, place)

    def take(self) -> Item | None:
        """The oldest item, in work from now on; None lets the worker sleep until it is called."""
        return self._run(self._take)

    def has_in_work(self, item: Item) -> bool:
        """False once the item has ended in any way."""
        return item.ticket in self._in_work

    def end_scored(self, item: Item, scored: ScoredRecord | None = None) -> None:
        self._run(self._end, item, scored, self._ledger.scored)

    def end_with_nothing_to_score(self, item: Item) -> None:
        self._run(self._end, item, Dropped(reason="nothing_to_score"), self._ledger.nothing_to_score)

    def end_dropped(self, item: Item, reason: DropReason) -> None:
        self._run(self._end, item, Dropped(reason=reason), self._ledger.lost, reason)

    def cancel(self, item: Item) -> None:
        """Drop an awaited item, wherever it is, unless it has ended: nobody waits for it any more."""
        self._run(self._cancel, item)

    def see_to_worker(self) -> None:
        """Call a worker if something waits and there is none: it may have died since the last submit."""
        self._run(self._see_to_worker)

    def worker_left(self) -> None:
        """There is no worker any more: drop what it had in work, and call one for what waits or comes."""
        self._run(self._lose_worker)

    def let_worker_sleep(self) -> None:
        """There is no worker, or it stopped short of the queue's end: call one for the next submit."""
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
        if self._call_is_due:
            self._call_is_due = False
            try:
                self._call_worker()
            except BaseException as error:
                self._worker_sleeps = True  # the next submit tries again
                if not isinstance(error, Exception):
                    raise
        if self._put_off is not None and not self.is_held_here:
            call, self._put_off = self._put_off, None
            call()
        return result

    def _count_the_uncounted(self) -> None:
        while self.uncounted:
            self.uncounted -= 1
            self._ledger.refused("capture_error")

    def _admit(self, item: Item) -> list[Item]:
        """Returns what was evicted, so that it is let go of outside the section."""
        evicted: list[Item] = []
        is_awaited = item.on_end is not None
        refused = self._refuses or (not is_awaited and self._queue.must_refuse(item.size)) or self._is_over_the_rate()
        if refused:
            self._ledger.refused(refused)
            self._tell_end(item, Dropped(reason=refused))
            return evicted
        if is_awaited:
            self._ledger.queued()
            item.ticket = self._ledger.submitted
            self._awaited.append(item)
            self._see_to_worker()
            return evicted
        while (short_of := self._queue.room_for(item.size)) and (oldest := self._queue.take()):
            evicted.append(oldest)
            self._ledger.evicted(short_of)
        self._ledger.queued()
        item.ticket = self._ledger.submitted
        self._queue.append(item)
        if evicted:
            self._tell_waiters()
        self._see_to_worker()
        return evicted

    def _is_over_the_rate(self) -> DropReason | None:
        return "rate_limited" if self._admission is not None and not self._admission.take() else None

    def _take(self) -> Item | None:
        awaited, first = self._awaited, self._queue.first
        is_awaited_first = awaited and (first is None or awaited[0].ticket < first.ticket)
        item = awaited.popleft() if is_awaited_first else self._queue.take()
        if item is None:
            self._worker_sleeps = True
            return None
        self._in_work[item.ticket] = item
        self._ledger.taken()
        return item

    def _end(self, item: Item, result: ScoredRecord | Dropped | None, count: Callable[..., None], *args: Any) -> None:
        if self._in_work.pop(item.ticket, None) is None:
            return  # it was abandoned in the meantime, and counted then
        count(*args)
        self._tell_end(item, result)
        self._tell_waiters()

    def _cancel(self, item: Item) -> None:
        if self._in_work.pop(item.ticket, None) is not None:
            self._ledger.lost("cancelled")
        elif item in self._awaited:
            self._awaited.remove(item)
            self._ledger.evicted("cancelled")
        self._tell_waiters()

    def _tell_end(self, item: Item, result: ScoredRecord | Dropped | None) -> None:
        """To who awaits it, outside the section: that calls an event loop."""
        if item.on_end is not None and result is not None:
            self._ended.append(functools.partial(item.on_end, result))

    def _lose_worker(self) -> Sequence[Item]:
        lost = [*self._in_work.values()]
        self._in_work.clear()
        for item in lost:
            self._ledger.lost("worker_error")
            self._tell_end(item, Dropped(reason="worker_error"))
        self._worker_sleeps = True
        self._see_to_worker()
        self._tell_waiters()
        return lost

    def _abandon(self) -> Sequence[Item]:
        waiting, in_work = [*self._queue.take_all(), *self._awaited], [*self._in_work.values()]
        self._awaited.clear()
        self._in_work.clear()
        for _ in waiting:
            self._ledger.evicted("shutdown")
        for _ in in_work:
            self._ledger.lost("shutdown")
        for item in (*waiting, *in_work):
            self._tell_end(item, Dropped(reason="shutdown"))
        self._tell_waiters()
        return [*waiting, *in_work]

    def _enlist(self, waiter: _Waiter) -> None:
        waiter.ticket = self._ledger.submitted
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
        oldest = self._oldest_ticket()
        told = [waiter for waiter in self._waiters if oldest is None or oldest > waiter.ticket]
        for waiter in told:
            self._waiters.remove(waiter)
            waiter.is_out.put(None)

    def _oldest_ticket(self) -> int | None:
        """The lowest of what is not out yet. The queue is in order, and few are in work."""
        waiting = [
            first for first in (self._queue.first, self._awaited[0] if self._awaited else None) if first is not None
        ]
        return min([*self._in_work, *(item.ticket for item in waiting)], default=None)

    def _see_to_worker(self) -> None:
        if self._worker_sleeps and (len(self._queue) or self._awaited):
            self._worker_sleeps = False
            self._call_is_due = True
