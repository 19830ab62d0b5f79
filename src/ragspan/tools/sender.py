"""The queue and the daemon threads that send what is for one tool. Where none can be started, who flushes does their work.

`put` does no I/O, and `flush` returns when its time is up, whatever hangs. Spans go first: they are flushed before each try, once a
second at most. Every item ends in exactly one counted way; the child of a fork has nothing to send.
"""

from __future__ import annotations

import contextlib
import math
import random
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from heapq import nsmallest
from typing import Generic

from opentelemetry.metrics import MeterProvider, get_meter_provider

from ragspan.arguments import counted
from ragspan.backoff import backoff
from ragspan.process import watch_forks
from ragspan.telemetry import semconv
from ragspan.telemetry.otel_context import suppressed
from ragspan.telemetry.providers import flush_spans, meter_of
from ragspan.telemetry.values import encodable
from ragspan.throttled_log import ThrottledLog
from ragspan.tools.delivery import (
    BatchRejected,
    Delivered,
    DeliveryOptions,
    DeliveryStats,
    DeliveryStatus,
    DropReason,
    Ending,
    Entry,
    ExportError,
    Item,
    SpanNotFound,
    Unavailable,
    WriteResult,
)

_LONGEST_PAUSE = 10.0  # seconds between tries of a tool that is away, so that its return is noticed soon
_MAX_RETRY_AFTER = 300.0  # seconds that a tool may ask to be left alone
_HURRIED = 0.5  # seconds between tries of everything while a flush waits for it
_SPANS_APART = 1.0  # seconds between two flushes of the spans, at least
_SPAN_FLUSH = 5.0  # seconds that a try waits for one of them, at most


class Sender(Generic[Item]):
    """Items on their way to one tool.

    Args:
        options: how long they are retried, and how many may wait.
        write: sends a batch, which has at least one item, and returns what became of each, in order.
            It is called in the sender's threads, with instrumentation suppressed. It may take its time, but needs a time limit
            of its own. It may raise `Unavailable`, `BatchRejected`, or anything else for a batch that failed as a whole.
        write_last: the same for the last try of all; by default `write`.
        name: of the tool.
        item: what one of them is, for the log.
        threads: how many batches are sent at the same time; with 0 the caller uses `take` and `settle`.
        follows_spans: whether spans have to be there first.
        meter_provider: where `ragspan.deliveries` goes; None means the global one, whenever it is set.
    """

    def __init__(
        self,
        options: DeliveryOptions,
        *,
        write: Callable[[Sequence[Item]], Sequence[WriteResult]],
        write_last: Callable[[Sequence[Item]], Sequence[WriteResult]] | None = None,
        name: str,
        item: str = "score",
        threads: int = 1,
        follows_spans: bool = False,
        meter_provider: MeterProvider | None = None,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._options, self._name, self._item = options, name, item
        self._write, self._write_last = write, write_last or write
        self._most_threads, self._follows_spans = threads, follows_spans
        self._clock, self._draw = clock, draw
        self._log = ThrottledLog()
        self._deliveries = meter_of(meter_provider or get_meter_provider()).create_counter(
            semconv.METRIC_DELIVERIES,
            unit="{score}",
            description="Scores that are done with: delivered to the tool, rejected by it, or dropped.",
        )
        self._begin()
        watch_forks(self, Sender._begin)

    def _begin(self) -> None:
        self._changed = threading.Condition()
        # By number, the oldest first. (A plain dictionary is slow to find its first entry after many deletions.)
        self._entries: OrderedDict[int, Entry[Item]] = OrderedDict()
        self._bytes = self._last_number = self._failures = self._failures_in_a_row = 0
        self._paused_until = -math.inf
        self._totals: Counter[Ending] = Counter()
        self._told: Counter[Ending] = Counter()
        self._threads: list[threading.Thread] = []
        self._span_flush: threading.Thread | None = None
        self._spans_flushed_at = self._spans_awaited_until = -math.inf
        self._is_closed = self._is_last_try = self._is_over = False

    def put(self, items: Sequence[Item]) -> DeliveryStatus:
        """Take items in, to be sent later. The oldest are dropped if there are too many."""
        entries, options = [], self._options
        with self._changed:
            if self._is_closed:
                return self.drop(len(items), "shutdown")
            now = self._clock()
            for item in items:
                self._last_number += 1
                due, ends = now + options.linger, now + options.retry_window
                entry = Entry(item=item, number=self._last_number, due=due, ends=ends)
                self._entries[entry.number] = entry
                self._bytes += item.size
                entries.append(entry)
            while self._bytes > options.queue_bytes and (oldest := next(self._idle(), None)) is not None:
                self._end(oldest, ("dropped", "queue_bytes"))
            if entries:
                self._start()
                self._changed.notify_all()
        self._report()
        return DeliveryStatus(entries)

    def drop(self, number: int, reason: DropReason) -> DeliveryStatus:
        """Count items that are not taken in."""
        with self._changed:
            self._totals += Counter({("dropped", reason): number})
        self._report()
        return DeliveryStatus((), is_lost=number > 0 and reason != "no_span")

    def stats(self) -> DeliveryStats:
        """Where every item is."""
        with self._changed:
            return DeliveryStats(
                waiting=len(self._entries),
                delivered=self._totals["delivered", None],
                rejected={str(reason): n for (result, reason), n in self._totals.items() if result == "rejected"},
                dropped={str(reason): n for (result, reason), n in self._totals.items() if result == "dropped"},
            )

    def flush(self, timeout: float, *, until_refused: bool = False) -> bool:
        """Try everything at once; True if all that was put before is delivered or rejected within `timeout` seconds.

        With `until_refused` it ends with the first batch that fails as a whole.
        """
        ends_at = time.monotonic() + timeout
        with self._changed:
            last, ended, failures, waits = self._last_number, self._totals.copy(), self._failures, bool(self._entries)
        if waits:
            self._flush_spans(timeout / 2, is_due=True)

        def is_sent() -> bool:
            return next(iter(self._entries), math.inf) > last

        def is_done() -> bool:
            return is_sent() or (until_refused and self._failures > failures)

        while not self._hurry(is_done, min(ends_at, time.monotonic() + _HURRIED)):
            if not _left(ends_at):
                return False
        with self._changed:
            return is_sent() and not any(how == "dropped" for how, _ in self._totals - ended)

    def shutdown(self, timeout: float, *, more: float = 10.0) -> None:
        """Take nothing any more, send what is left within `timeout` seconds, and drop the rest.

        Args:
            timeout: seconds; when they are over, nothing is tried twice.
            more: seconds that a slow tool then gets at most, for the replies to what is under way and to one last try of all else.
        """
        with self._changed:
            self._is_closed = True
        self.flush(timeout)
        ends_at = time.monotonic() + more
        if self._entries:
            self._flush_spans(more / 2, is_due=True)
            self._is_last_try = True
            self._hurry(lambda: not self._entries, ends_at)
        with self._changed:
            self._is_last_try = self._is_over = True
            for entry in list(self._idle()):
                self._end(entry, ("dropped", "shutdown"))
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._entries, _left(ends_at))
            lost = self._totals["dropped", "shutdown"] + len(self._entries)
        self._report()
        if lost:  # in one line, whenever they were dropped; no reply came in time for those under way
            self._log.report("shutdown", "%s: %s not delivered: shutdown", self._name, counted(lost, self._item))
        for thread in self._threads:
            thread.join(_left(ends_at))

    def pop_due(self) -> list[Entry[Item]]:
        """Give up what is too old, and take what is due with what will be soon; it is in flight until it is settled."""
        now = self._clock()
        for entry in list(self._idle()):
            if entry.ends <= now:
                self._end(entry, ("dropped", entry.trouble))
        limit = self._options.batch_size if now >= self._paused_until else 0
        soon = [entry for entry in self._idle() if entry.due <= now + self._options.linger]
        batch: list[Entry[Item]] = []
        for entry in nsmallest(limit, soon, key=lambda entry: (entry.due, entry.number)):
            limit = min(limit, entry.max_batch_size)
            if len(batch) >= limit or (not batch and entry.due > now):
                break
            entry.in_flight = True
            batch.append(entry)
        return sorted(batch, key=lambda entry: entry.number)

    def apply_results(self, batch: Sequence[Entry[Item]], results: Sequence[WriteResult] | BaseException) -> None:
        """Settle what the tool returned for the batch, or the exception that it raised.

        Items that the tool names are tried again by themselves. If it takes nothing at the moment, everything waits. A batch that it
        rejects for good is halved until the item that is the reason is alone. If it fails for another reason, everything waits a
        little, the batch's items longer, and their next batch is half as large.
        """
        now, error = self._clock(), results if isinstance(results, BaseException) else None
        is_halved = isinstance(error, BatchRejected) and len(batch) > 1 and not self._is_over
        if error is None or isinstance(error, BatchRejected):
            self._failures_in_a_row = 0
        else:
            self._failures += 1
            self._failures_in_a_row += 1
            asked = error.retry_after if isinstance(error, Unavailable) else None
            pause = backoff(self._failures_in_a_row, longest=_LONGEST_PAUSE, draw=self._draw)
            if not self._is_last_try:
                self._paused_until = now + max(pause, min(asked or 0.0, _MAX_RETRY_AFTER))
        for place, entry in enumerate(batch):
            entry.in_flight = False
            if error is not None and not isinstance(error, Unavailable):
                entry.max_batch_size = max(1, len(batch) // 2)
            match results if isinstance(results, BaseException) else results[place]:
                case Delivered():
                    self._end(entry, ("delivered", None))
                case BatchRejected() as rejection if not is_halved:
                    self._end(entry, ("rejected", str(rejection)))
                case BatchRejected():
                    continue
                case Unavailable():
                    entry.trouble = "unavailable"
                case result:
                    entry.trouble = "span_not_found" if isinstance(result, SpanNotFound) else "failed"
                    entry.tries += 1
                    entry.due = min(now + backoff(entry.tries, draw=self._draw), entry.ends)
            if self._is_last_try and entry.ended is None:
                self._end(entry, ("dropped", "shutdown"))

    def next_due(self) -> float:
        """When there is something to send or to give up; never if nothing waits."""
        return max(min((entry.due for entry in self._idle()), default=math.inf), self._paused_until)

    def _end(self, entry: Entry[Item], ending: Ending) -> None:
        entry.ended = ending
        del self._entries[entry.number]
        self._bytes -= entry.item.size
        self._totals[ending] += 1

    def _idle(self) -> Iterator[Entry[Item]]:
        return (entry for entry in self._entries.values() if not entry.in_flight)

    def _hurry(self, is_done: Callable[[], bool], ends_at: float) -> bool:
        """Make everything due now, unless it is done, and wait for it; where there is no thread, do a thread's work."""
        with self._changed:
            if is_done():
                return True
            self._paused_until, now = -math.inf, self._clock()
            for entry in self._entries.values():
                entry.due = min(entry.due, now)
            self._changed.notify_all()
            if self._start():
                return self._changed.wait_for(is_done, _left(ends_at))
        self._work(lambda: is_done() or not _left(ends_at), ends_at)
        with self._changed:
            return is_done()

    def _start(self) -> bool:
        """Make sure that there is a thread, or another one where several send; False if there is none."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if len(self._threads) < min(self._most_threads, len(self._entries) or 1):
            work = (lambda: self._is_over, math.inf)
            thread = threading.Thread(target=self._work, args=work, name=f"ragspan-{self._name}", daemon=True)
            with contextlib.suppress(RuntimeError):
                thread.start()
                self._threads.append(thread)
        return bool(self._threads)

    def _work(self, is_done: Callable[[], bool], wait_until: float) -> None:
        """Send what is due, and wait for what will be, until it is done (which is asked under the lock)."""
        with suppressed():
            while True:
                with self._changed:
                    if is_done():
                        return
                    batch, write = self.pop_due(), self._write_last if self._is_last_try else self._write
                results: Sequence[WriteResult] | BaseException = ()
                if batch:
                    self._flush_spans(_SPAN_FLUSH)
                    try:
                        results = write([entry.item for entry in batch])
                        if len(results) != len(batch):
                            results = ValueError(f"{len(results)} results")
                    except BaseException as error:  # noqa: BLE001 - the tool's; whatever it raises must not end the thread
                        results = error
                    with self._changed:
                        self.apply_results(batch, results)
                has_news = self._report(results if isinstance(results, BaseException) else None)
                with self._changed:
                    if batch or has_news:  # a flush may wait for it; idle threads must not wake each other for ever
                        self._changed.notify_all()
                    if not batch and not self._is_over:
                        self._changed.wait(_left(min(wait_until, self.next_due())))

    def _flush_spans(self, seconds: float, *, is_due: bool = False) -> None:
        """Have the spans exported in a thread of its own: an exporter may hang. Whoever starts it says for how long all wait."""
        if not self._follows_spans:
            return
        with self._changed:
            now, thread = time.monotonic(), self._span_flush
            if thread is None or not thread.is_alive():
                if not is_due and now - self._spans_flushed_at < _SPANS_APART:
                    return
                self._spans_flushed_at, self._spans_awaited_until = now, now + seconds
                thread = threading.Thread(target=flush_spans, args=(seconds,), name="ragspan-spans", daemon=True)
                with contextlib.suppress(RuntimeError):
                    thread.start()
                self._span_flush = thread
        if thread.ident is None:  # the interpreter is at its end
            flush_spans(seconds)
        else:
            thread.join(min(seconds, _left(self._spans_awaited_until)))

    def _report(self, trouble: BaseException | None = None) -> bool:
        """Count what ended, and log what was lost and what went wrong; whether anything ended."""
        with self._changed:
            news, self._told = self._totals - self._told, self._totals.copy()
            waiting = len(self._entries)
        name, item = self._name, self._item
        for (result, reason), number in news.items():
            about = {semconv.DESTINATION: name, semconv.RESULT: result, semconv.REASON: reason}
            with contextlib.suppress(Exception):  # of a meter provider that is not the SDK's
                self._deliveries.add(number, encodable(about))
            if result != "delivered" and reason not in {"no_span", "shutdown"}:
                line, how = "%s: %s %s: %s", "not delivered" if result == "dropped" else result
                self._log.report(f"{result} {reason}", line, name, counted(number, item), how, reason)
        if trouble is not None and not isinstance(trouble, BatchRejected):  # that shows in what was rejected
            kind = str(trouble) if isinstance(trouble, (Unavailable, ExportError)) else type(trouble).__name__
            self._log.report("trouble", "%s took no %s: %s; %d to be tried again", name, item, kind, waiting)
        return bool(news)


def _left(ends_at: float) -> float:
    return max(0.0, min(ends_at - time.monotonic(), threading.TIMEOUT_MAX))
