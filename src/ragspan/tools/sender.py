"""The queue and the threads that send what is for one tool.

Guarantees:
- `put` does no I/O: it holds the lock for bookkeeping only. What waits is bounded by number and by bytes.
- Daemon threads send: the first starts with the first item, further ones where the tool takes one item a request. Where no thread
  can be started (at the end of the interpreter, or at a limit of the system) the thread that flushes does their work.
- Spans go first: they are flushed before each try, once a second at most.
- `flush` returns when its time is up, whatever hangs. A slow reply counts: at the end of `shutdown` what is under way, and
  one last try of all else, get some seconds more, and count by their reply.
- Every item ends in exactly one counted way: delivered, rejected, or dropped with a reason.
- The child of a fork starts with nothing to send: what is left is the parent's.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from opentelemetry import metrics

from ragspan.counted import counted
from ragspan.forks import watch_forks
from ragspan.telemetry import semconv
from ragspan.telemetry.otel_context import suppressed
from ragspan.telemetry.providers import flush_spans, meter_of
from ragspan.telemetry.values import encodable
from ragspan.throttled_log import ThrottledLog
from ragspan.tools.queue import (
    BatchRejected,
    Deliverable,
    DeliveryOptions,
    DeliveryStats,
    DeliveryStatus,
    DropReason,
    Entry,
    ExportError,
    SendQueue,
    Unavailable,
    WriteResult,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

LAST_SECONDS = 10.0
"""What a slow tool gets at the end of a shutdown for its replies, beyond the timeout."""
_HURRIED = 0.5  # seconds between tries of everything while a flush waits for it
_SPANS_APART = 1.0  # seconds between two flushes of the spans, at least
_SPAN_FLUSH = 5.0  # seconds that a try waits for one of them, at most

_Item = TypeVar("_Item", bound=Deliverable)


class Sender(Generic[_Item]):
    """Items on their way to one tool.

    Args:
        options: how long they are retried, and how many may wait.
        write: sends a batch, which has at least one item and no two of one key, and returns what became of each, in order.
            It is called in the sender's threads, with instrumentation suppressed. It may take its time, but needs a time limit
            of its own. It may raise `Unavailable`, `BatchRejected`, or anything else for a batch that failed as a whole.
        write_last: the same for the last try of all; by default `write`.
        name: of the tool.
        item: what one of them is, for the log.
        threads: how many batches are sent at the same time.
        follows_spans: whether spans have to be there first.
        meter_provider: where `ragspan.deliveries` goes; None means the global one, whenever it is set.
    """

    def __init__(
        self,
        options: DeliveryOptions,
        *,
        write: Callable[[Sequence[_Item]], Sequence[WriteResult]],
        write_last: Callable[[Sequence[_Item]], Sequence[WriteResult]] | None = None,
        name: str,
        item: str = "score",
        threads: int = 1,
        follows_spans: bool = False,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._options = options
        self._write = write
        self._write_last = write_last or write
        self._name = name
        self._item = item
        self._most_threads = threads
        self._follows_spans = follows_spans
        self._log = ThrottledLog()
        self._deliveries = meter_of(meter_provider or metrics.get_meter_provider()).create_counter(
            semconv.METRIC_DELIVERIES,
            unit="{score}",
            description="Scores that are done with: delivered to the tool, rejected by it, or dropped.",
        )
        self._begin()
        watch_forks(self, Sender._begin)

    def _begin(self) -> None:
        self._queue: SendQueue[_Item] = SendQueue(self._options)
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._flushes_spans = False
        self._spans_flushed_at = self._spans_awaited_until = -math.inf
        self._is_closed = False
        self._is_over = False

    def put(self, items: Sequence[_Item]) -> DeliveryStatus:
        """Take items in, to be sent later."""
        with self._changed:
            entries = None if self._is_closed else self._queue.put(items)
            if entries:
                self._start()
                self._changed.notify_all()
        if entries is None:
            return self.drop(len(items), "shutdown")
        self._report()
        return DeliveryStatus(entries)

    def drop(self, number: int, reason: DropReason) -> DeliveryStatus:
        """Count items that are not taken in."""
        with self._changed:
            self._queue.drop(number, reason)
        self._report()
        return DeliveryStatus((), is_lost=number > 0 and reason != "no_span")

    def stats(self) -> DeliveryStats:
        """Where every item is."""
        with self._changed:
            return self._queue.stats()

    def flush(self, timeout: float) -> bool:
        """Try everything at once; True if all that was put before is delivered or rejected within `timeout` seconds."""
        ends_at = time.monotonic() + timeout
        with self._changed:
            last, lost, waiting = self._queue.last_number, self._queue.lost(), self._queue.stats().waiting
        if waiting:
            self._flush_spans(_left(ends_at) / 2, is_due=True)
        while not self._wait_until(
            lambda: self._queue.is_past(last), min(ends_at, time.monotonic() + _HURRIED), self._queue.make_all_due
        ):
            if not _left(ends_at):
                return False
        with self._changed:
            return self._queue.lost() == lost

    def shutdown(self, timeout: float, *, more: float = LAST_SECONDS) -> None:
        """Take nothing any more, send what is left within `timeout` seconds, and drop the rest.

        Args:
            timeout: seconds; when they are over, nothing is tried twice.
            more: seconds that a slow tool then gets at most, for the replies to what is under way and to one last try of all else.
        """
        with self._changed:
            self._is_closed = True
        self.flush(timeout)
        ends_at = time.monotonic() + more
        if self.stats().waiting:
            self._flush_spans(more / 2, is_due=True)
            self._wait_until(lambda: not self._queue.stats().waiting, ends_at, self._queue.close)
        with self._changed:
            self._queue.give_up()
            self._is_over = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._queue.in_flight, _left(ends_at))
            under_way = self._queue.in_flight
        self._report()
        if under_way:
            under_way_items = counted(under_way, self._item)
            self._log.report("under_way", "%s: no reply came in time for %s", self._name, under_way_items)
            return
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_left(ends_at))

    def _wait_until(self, is_done: Callable[[], bool], ends_at: float, hurry: Callable[[], None]) -> bool:
        """Have the queue hurry, unless it is done, and wait for it; where there is no thread, do a thread's work."""

        def is_locked_done() -> bool:
            with self._changed:
                return is_done()

        with self._changed:
            if is_done():
                return True
            hurry()
            self._changed.notify_all()
            if self._start():
                return self._changed.wait_for(is_done, _left(ends_at))
        self._work(lambda: is_locked_done() or not _left(ends_at), ends_at)
        return is_locked_done()

    def _start(self) -> bool:
        """Make sure that there is a thread, or another one where several send; False if there is none."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) < min(self._most_threads, self._queue.stats().waiting or 1):
            work = (lambda: self._is_over, math.inf)
            thread = threading.Thread(target=self._work, args=work, name=f"ragspan-{self._name}", daemon=True)
            with contextlib.suppress(RuntimeError):
                thread.start()
                self._threads.append(thread)
        return bool(self._threads)

    def _work(self, is_done: Callable[[], bool], wait_until: float) -> None:
        """Send what is due, and wait for what will be, until it is done."""
        with suppressed():
            while not is_done():
                results: Sequence[WriteResult] | BaseException = ()
                with self._changed:
                    batch, write = self._queue.take(), self._write_last if self._queue.is_closed else self._write
                if batch:
                    self._flush_spans(_SPAN_FLUSH)
                    results = _results_of(write, batch)
                    with self._changed:
                        self._queue.settle(batch, results)
                has_news = self._report(results if isinstance(results, BaseException) else None)
                with self._changed:
                    if batch or has_news:  # a flush may wait for it; idle threads must not wake each other for ever
                        self._changed.notify_all()
                    if not batch and not self._is_over:
                        self._changed.wait(_left(min(wait_until, self._queue.next_due() or math.inf)))

    def _flush_spans(self, seconds: float, *, is_due: bool = False) -> None:
        """Have the spans exported that the items are for, in a thread of its own: an exporter may hang.

        Who is due says for how long all wait.
        """
        if not self._follows_spans:
            return
        with self._changed:
            now = time.monotonic()
            starts = not self._flushes_spans
            if starts and now - self._spans_flushed_at < _SPANS_APART and not is_due:
                return
            if starts:
                self._spans_flushed_at, self._flushes_spans = now, True
            if starts or is_due:
                self._spans_awaited_until = now + seconds
                self._changed.notify_all()
            if starts:
                thread = threading.Thread(target=self._export_spans, args=(seconds,), name="ragspan-spans", daemon=True)
                with contextlib.suppress(RuntimeError):  # the interpreter is at its end
                    thread.start()
                    starts = False
            while not starts and self._flushes_spans and (left := _left(self._spans_awaited_until)):
                self._changed.wait(left)
        if starts:
            self._export_spans(seconds)

    def _export_spans(self, seconds: float) -> None:
        flush_spans(seconds)
        with self._changed:
            self._flushes_spans = False
            self._changed.notify_all()

    def _report(self, trouble: BaseException | None = None) -> bool:
        """Count what ended; log what was lost and what went wrong, a line a minute at most for each kind.

        Returns whether anything ended.

        Of an exception only the type is logged, and the text only of `Unavailable` and `ExportError`, which is a reason.
        """
        with self._changed:
            news = self._queue.news()
        name, item = self._name, self._item
        for (result, reason), number in news.items():
            about = {
                semconv.DESTINATION: name,
                semconv.RESULT: result,
                semconv.REASON: reason,
            }
            with contextlib.suppress(Exception):  # of a meter provider that is not the SDK's
                self._deliveries.add(number, encodable(about))
            if result != "delivered" and reason not in {"no_span", "replaced"}:
                line = "%s: %s %s: %s"
                self._log.report(f"{result} {reason}", line, name, counted(number, item), result, reason)
        if trouble is not None and not isinstance(trouble, BatchRejected):  # that shows in what was rejected
            kind = str(trouble) if isinstance(trouble, (Unavailable, ExportError)) else type(trouble).__name__
            waiting = self.stats().waiting
            self._log.report("trouble", "%s took no %s: %s; %d to be tried again", name, item, kind, waiting)
        return bool(news)


def _results_of(
    write: Callable[[Sequence[_Item]], Sequence[WriteResult]], batch: Sequence[Entry[_Item]]
) -> Sequence[WriteResult] | BaseException:
    """What the tool returned, or the exception that it raised."""
    try:
        results = write([entry.item for entry in batch])
        return results if len(results) == len(batch) else ValueError(f"{len(results)} results")
    except BaseException as error:  # noqa: BLE001 - not our code; whatever it raises must not end the thread
        return error


def _left(ends_at: float) -> float:
    return max(0.0, min(ends_at - time.monotonic(), threading.TIMEOUT_MAX))
