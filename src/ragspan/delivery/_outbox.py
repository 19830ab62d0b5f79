"""The queue and the thread of a writer: all that a fork replaces.

Guarantees:
- `put` waits for no I/O: the lock is held for bookkeeping only. What waits is bounded by number and by bytes.
- One daemon thread, started at the first item, makes the connection, writes, and closes it. If it dies, the next item or
  flush starts another. Where no thread can be started (the end of the interpreter, a limit of the system) whoever flushes
  does its work.
- `flush` and `shutdown` return when their time is up, whatever hangs in the thread.
- Every item ends in exactly one counted way: delivered, refused, or dropped with a reason.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from ragspan.delivery._line import Waiting
from ragspan.delivery._report import Report
from ragspan.delivery._schedule import Schedule
from ragspan.delivery.destination import Deliverable, Destination
from ragspan.delivery.receipt import Fate, Receipt, is_lost
from ragspan.delivery.stats import DeliveryStats, DropReason
from ragspan.telemetry.suppress import suppressed

_Item = TypeVar("_Item", bound=Deliverable)


class Outbox(Generic[_Item]):
    """Items on their way to one destination.

    Args:
        schedule: says what is written when.
        connect: makes the connection, when it is first needed.
        report: tells what ended, and what went wrong; with no lock held.
        name: of the thread.
    """

    def __init__(
        self, schedule: Schedule[_Item], *, connect: Callable[[], Destination[_Item]], report: Report, name: str
    ) -> None:
        self._schedule = schedule
        self._connect = connect
        self._report = report
        self._name = name
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._connection: Destination[_Item] | None = None
        self._wakes_at = -math.inf
        self._is_closed = False
        self._is_over = False

    def put(self, items: Sequence[_Item]) -> Receipt:
        """Take items in, to be written later."""
        with self._changed:
            is_closed = self._is_closed
            entries = () if is_closed else self._schedule.put(items)
            if entries:
                self._start()
                if time.monotonic() + self._schedule.due_in(entries) < self._wakes_at:
                    self._changed.notify_all()
        if is_closed:
            return self.refuse("shutdown", len(items))
        self._tell()
        return Receipt(lambda span_patience: self._fate_of(entries, span_patience))

    def refuse(self, reason: DropReason, number: int) -> Receipt:
        """Count items that are not let in."""
        with self._changed:
            self._schedule.refuse(reason, number)
        self._tell()
        fate: Fate = "lost" if number and is_lost("dropped", reason) else "settled"
        return Receipt(lambda _: fate)

    def stats(self) -> DeliveryStats:
        with self._changed:
            return self._schedule.stats()

    def flush(self, timeout: float) -> bool:
        """Try everything at once; True if all that was put before is delivered or refused within `timeout` seconds."""
        ends_at = time.monotonic() + timeout
        with self._changed:
            last, dropped = self._schedule.last_number, self._schedule.dropped
            if self._schedule.is_past(last):
                return True
            self._schedule.hurry()
            self._changed.notify_all()
            has_thread = self._start()
        try:
            if not has_thread:
                self._work_until(ends_at, last)
            with self._changed:
                is_past = self._changed.wait_for(lambda: self._schedule.is_past(last), _left(ends_at))
                return is_past and self._schedule.dropped == dropped
        finally:
            with self._changed:
                self._schedule.hurry_no_more()

    def shutdown(self, timeout: float) -> None:
        """Take nothing any more, deliver what is left within `timeout` seconds, and drop the rest."""
        ends_at = time.monotonic() + timeout
        with self._changed:
            self._is_closed = True
        self.flush(timeout)
        with self._changed:
            self._schedule.abandon("shutdown")
            self._is_over = True
            self._changed.notify_all()
        self._tell()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_left(ends_at))
        if thread is None or not thread.is_alive():
            self._disconnect()

    def _fate_of(self, entries: Sequence[Waiting[_Item]], span_patience: float) -> Fate:
        with self._changed:
            return self._schedule.fate_of(entries, span_patience)

    def _start(self) -> bool:
        """See to it that there is a thread; False if none can be started."""
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return False
            self._thread = thread
        return True

    def _serve(self) -> None:
        with suppressed():
            while not self._is_over:
                self._round(math.inf)
        self._disconnect()

    def _work_until(self, ends_at: float, last: int) -> None:
        """Do the thread's work in this one."""
        if not self._writing.acquire(timeout=_left(ends_at)):
            return
        try:
            with suppressed():
                while not self._schedule.is_past(last) and _left(ends_at):
                    self._round(_left(ends_at))
        finally:
            self._writing.release()

    def _round(self, patience: float) -> None:
        """Write what is due; if nothing is, wait for it, `patience` seconds at most."""
        with self._changed:
            pause = self._schedule.wait()
            batch = self._schedule.begin() if pause == 0 else []
            if self._schedule.has_news:
                self._changed.notify_all()
            elif not batch and not self._is_over:
                self._sleep(min(patience, math.inf if pause is None else pause))
        if not batch:
            self._tell()
            return
        results = self._write(batch)
        with self._changed:
            self._schedule.settle(batch, results)
            self._changed.notify_all()
        self._tell(results if isinstance(results, BaseException) else None)

    def _sleep(self, seconds: float) -> None:
        self._wakes_at = time.monotonic() + seconds
        self._changed.wait(min(seconds, threading.TIMEOUT_MAX))
        self._wakes_at = -math.inf

    def _write(self, batch: Sequence[Waiting[_Item]]) -> object:
        """What the destination returned, or the exception that it raised."""
        try:
            if self._connection is None:
                self._connection = self._connect()
            return self._connection.write([entry.item for entry in batch])
        except BaseException as error:  # noqa: BLE001 - not our code; whatever it raises must not end the thread
            return error

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(Exception):  # there is nobody left whom it would matter to
                connection.close()

    def _tell(self, trouble: BaseException | None = None) -> None:
        with self._changed:
            news, waiting = self._schedule.news(), len(self._schedule)
        self._report.tell(news, trouble, waiting)


def _left(ends_at: float) -> float:
    return max(0.0, min(ends_at - time.monotonic(), threading.TIMEOUT_MAX))
