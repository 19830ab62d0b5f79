"""The queue and the thread of a writer.

Guarantees:
- `put` waits for no I/O: the lock is held for bookkeeping only. What waits is bounded by number and by bytes.
- One daemon thread, started at the first item, makes the connection, writes, and closes it. If it dies, the next item or
  flush starts another. Where no thread can be started (the end of the interpreter, a limit of the system) whoever flushes
  does its work.
- `flush` and `shutdown` return when their time is up, whatever hangs in the thread.
- Every item ends in exactly one counted way: delivered, rejected, or dropped with a reason.
- The child of a fork starts with nothing to deliver, and connects anew: what is left is the parent's.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from opentelemetry import metrics

from ragspan.delivery._retry_queue import DeliveryStatus, RetryQueue
from ragspan.delivery.backend import (
    BatchRejected,
    Deliverable,
    DeliveryOptions,
    DeliveryStats,
    DropReason,
    ScoreBackend,
    Unavailable,
)
from ragspan.forks import keep_inherited, watch_forks
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.telemetry.suppress import suppressed
from ragspan.telemetry.values import encodable, named
from ragspan.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

_HURRIED = 0.5  # seconds after which everything is tried again while somebody waits for it

_Item = TypeVar("_Item", bound=Deliverable)


class BatchSender(Generic[_Item]):
    """Items on their way to one backend.

    Args:
        options: how long they are retried, and how many may wait.
        connect: makes the connection, when it is first needed, in the sender's thread.
        name: of the backend.
        items: what they are, for the log.
        meter_provider: where `ragspan.deliveries` goes; None means the global one, whenever it is set.
    """

    def __init__(
        self,
        options: DeliveryOptions,
        *,
        connect: Callable[[], ScoreBackend[_Item]],
        name: str,
        items: str = "scores",
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self.options = options
        self._connect = connect
        self._name = name
        self._items = items
        self._log = ThrottledLog()
        self._deliveries = meter_of(meter_provider or metrics.get_meter_provider()).create_counter(
            semconv.METRIC_DELIVERIES,
            unit="{score}",
            description="Scores that are done with: delivered to the backend, rejected by it, or dropped.",
        )
        self._begin()
        watch_forks(self, BatchSender._begin_in_child)

    def put(self, items: Sequence[_Item]) -> DeliveryStatus:
        """Take items in, to be written later."""
        with self._changed:
            is_closed = self._is_closed
            entries = () if is_closed else self._queue.put(items)
            if entries:
                self._start()
                if (due := self._queue.next_due()) is not None and due < self._wakes_at:
                    self._changed.notify_all()
        if is_closed:
            return self.drop(len(items), "shutdown")
        self._tell()
        return DeliveryStatus(entries)

    def drop(self, number: int, reason: DropReason) -> DeliveryStatus:
        """Count items that are not let in."""
        with self._changed:
            self._queue.drop(number, reason)
        self._tell()
        return DeliveryStatus((), is_lost=number > 0 and reason != "no_span")

    def stats(self) -> DeliveryStats:
        """Where every item is."""
        with self._changed:
            return self._queue.stats()

    def flush(self, timeout: float) -> bool:
        """Try everything at once; True if all that was put before is delivered or rejected within `timeout` seconds."""
        ends_at = time.monotonic() + timeout
        with self._changed:
            last, lost = self._queue.last_number, self._queue.lost()
        while not self._hurry(last, ends_at):
            if not _left(ends_at):
                return False
        with self._changed:
            return self._queue.lost() == lost

    def shutdown(self, timeout: float) -> None:
        """Take nothing any more, deliver what is left within `timeout` seconds, and drop the rest."""
        ends_at = time.monotonic() + timeout
        with self._changed:
            self._is_closed = True
        self.flush(timeout)
        with self._changed:
            self._queue.abandon("shutdown")
            self._is_over = True
            self._changed.notify_all()
        self._tell()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_left(ends_at))
        if thread is None or not thread.is_alive():
            self._disconnect()

    def _hurry(self, last: int, ends_at: float) -> bool:
        """Have everything tried now, and wait a little; whether all items up to this number have ended."""
        until = min(ends_at, time.monotonic() + _HURRIED)
        with self._changed:
            if self._queue.is_past(last):
                return True
            self._queue.hurry()
            self._changed.notify_all()
            if self._start():
                return self._changed.wait_for(lambda: self._queue.is_past(last), _left(until))
        self._work_until(until, last)
        with self._changed:
            return self._queue.is_past(last)

    def _begin(self) -> None:
        self._queue: RetryQueue[_Item] = RetryQueue(self.options)
        self._changed = threading.Condition()
        self._working = threading.Lock()
        self._thread: threading.Thread | None = None
        self._connection: ScoreBackend[_Item] | None = None
        self._wakes_at = -math.inf
        self._is_closed = False
        self._is_over = False

    def _begin_in_child(self) -> None:
        keep_inherited(vars(self).copy())
        self._begin()

    def _start(self) -> bool:
        """Make sure that there is a thread; False if none can be started."""
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._run, name=f"ragspan-{self._name}", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        return True

    def _run(self) -> None:
        with suppressed():
            while not self._is_over:
                self._step(math.inf)
        self._disconnect()

    def _work_until(self, ends_at: float, last: int) -> None:
        """Do the thread's work in this one."""
        if not self._working.acquire(timeout=_left(ends_at)):
            return
        try:
            with suppressed():
                while not self._queue.is_past(last) and _left(ends_at):
                    self._step(ends_at)
        finally:
            self._working.release()

    def _step(self, ends_at: float) -> None:
        """Write what is due; if nothing is, wait for it, until `ends_at` at most."""
        with self._changed:
            has_expired = self._queue.expire()
            batch = self._queue.take()
            if not batch and not has_expired and not self._is_over:
                self._wakes_at = min(ends_at, self._queue.next_due() or math.inf)
                self._changed.wait(_left(self._wakes_at))
                self._wakes_at = -math.inf
        results = self._write([entry.item for entry in batch]) if batch else []
        with self._changed:
            if batch:
                self._queue.settle(batch, results)
            if batch or has_expired:
                self._changed.notify_all()
        self._tell(results if isinstance(results, BaseException) else None)

    def _write(self, items: Sequence[_Item]) -> object:
        """What the backend returned, or the exception that it raised."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            return self._connection.write(items)
        except BaseException as error:  # noqa: BLE001 - not our code; whatever it raises must not end the thread
            return error

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # nobody is left who could do something about it
                connection.close()

    def _tell(self, trouble: BaseException | None = None) -> None:
        """Count what ended; log what was lost and what went wrong, a line a minute at most for each kind.

        Of an exception only the type is logged, and of the backend's own words only `Unavailable.reason`.
        """
        with self._changed:
            news, waiting = self._queue.news(), self._queue.waiting
        name, items = self._name, self._items
        for (result, reason), number in news.items():
            told = {semconv.DESTINATION: named(name), semconv.RESULT: result, semconv.REASON: reason and named(reason)}
            with contextlib.suppress(Exception):  # of a meter provider that is not the SDK's
                self._deliveries.add(number, encodable(told))
            if result != "delivered" and reason not in {"no_span", "replaced"}:
                line = "%s: %d %s were %s: %s"
                self._log.trouble(f"{result} {reason}", line, name, number, items, result, reason)
        if trouble is not None and not isinstance(trouble, BatchRejected):  # that shows in what was rejected
            kind = trouble.reason if isinstance(trouble, Unavailable) else type(trouble).__name__
            self._log.trouble("trouble", "%s took no %s: %s; %d wait to be tried again", name, items, kind, waiting)


def _left(ends_at: float) -> float:
    return max(0.0, min(ends_at - time.monotonic(), threading.TIMEOUT_MAX))
