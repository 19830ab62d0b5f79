"""Takes captures on the request path and works on them in one thread: what the engine and sinks to a broker share.

A shutdown has five steps: the queue takes nothing any more; what is left is worked on for most of the time; what is left
then is dropped; the work sends what is done; the worker's thread ends.

Guarantees of `shutdown`:
- It takes no longer than its timeout (and a grace of a tenth of a second), whatever hangs.
- A later call returns the first one's report. A call from another thread waits for that report.
- At the end of the process `submitted = finished + nothing to score + dropped`, and what was dropped because of it is one line of the
  log. What was submitted before the end began is not pushed out by what comes later.
- A call from a signal handler that interrupted a `submit` or a `shutdown` cannot wait: what it would wait for needs its
  thread (see `can_wait`). It closes the queue and reports what is left. The next call, at the end of the process at the latest,
  does the rest.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, ClassVar, TypeVar

from ragspan.arguments import AMOUNT, SECONDS, TEXT, WHOLE, choice
from ragspan.config import DropPolicy
from ragspan.engine.budget import Limit
from ragspan.engine.process_end import is_multiprocessing_child, process_end, sigterm
from ragspan.engine.record_queue import Item, RecordQueue
from ragspan.engine.stats import ShutdownReport
from ragspan.engine.threads import Deadline, call_guarded, is_owned
from ragspan.engine.worker import Work, Worker
from ragspan.forks import keep_inherited, watch_forks
from ragspan.records import Capture
from ragspan.throttled_log import ThrottledLog, log_line

if TYPE_CHECKING:  # what this loads is needed where an engine is made, not where ragspan is imported
    from opentelemetry.metrics import MeterProvider

    from ragspan.telemetry.self_metrics import Figure

_GRACE = 0.04  # seconds for the worker to end, even if no time is left
_LONGEST_HOLD = 1.0  # seconds

_P = TypeVar("_P", bound="BackgroundProcessor")


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorOptions:
    """How much a processor takes, and what it is called.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    queue_size: int
    queue_bytes: int
    drop: DropPolicy
    concurrency: int
    exit_timeout: float
    name: str
    max_records_per_second: float | None = None

    def __post_init__(self) -> None:
        WHOLE.check_fields(self, "queue_size", "queue_bytes", "concurrency")
        choice("oldest", "newest").check_fields(self, "drop")
        SECONDS.check_fields(self, "exit_timeout")
        AMOUNT.or_none().check_fields(self, "max_records_per_second")
        TEXT.check_fields(self, "name")


class BackgroundProcessor(ABC):
    """A queue, one worker thread, and what it does with each capture. A derived class makes the work."""

    _finished_as: ClassVar[str] = "scored"
    """What has become of finished records, in the metrics about ragspan itself."""
    # What follows is replaced in the child of a fork.
    _queue: RecordQueue
    _worker: Worker
    _log: ThrottledLog
    _work: Work | None
    """None in the child of a fork until it has work: what makes it calls code of the user's, which a hook of a fork must not."""
    _held: Deadline | None
    """From `tell_end` on."""
    _report: ShutdownReport | None
    """What the shutdown did; None until it has ended."""
    _shutting_down: threading.RLock

    def __init__(self, options: ProcessorOptions, *, is_enabled: bool, meter_provider: MeterProvider | None) -> None:
        from ragspan.telemetry.self_metrics import SelfMetrics

        self._processor_options = options
        self._is_enabled = is_enabled
        self._self_metrics = SelfMetrics(meter_provider)
        self._assemble()
        self._work = self._make_work(self._log)
        watch_forks(self, BackgroundProcessor._start_afresh)
        if is_enabled:
            self._self_metrics.watch(self._figures, options.name)
            # SIGTERM ends at once the child of `multiprocessing` until that has work, and who waits for nothing.
            if options.exit_timeout and not is_multiprocessing_child():
                sigterm.look()

    @abstractmethod
    def _make_work(self, log: ThrottledLog) -> Work:
        """What is done with each item; it has done nothing yet."""

    @property
    def exit_timeout(self) -> float:
        """Seconds that the end of the process may wait for what was submitted."""
        return self._processor_options.exit_timeout

    @property
    def can_wait(self) -> bool:
        """Whether this thread can wait in `flush` and `shutdown`. A signal handler cannot that interrupted `submit` or `shutdown`."""
        return not self._queue.is_held_here and not is_owned(self._shutting_down)

    def submit(self, capture: Capture) -> None:
        """Take a capture, to be worked on later. Never raises, whatever the capture does."""
        try:
            if self._held is not None:
                time.sleep(self._held.remaining)
            try:
                item = Item(capture, max(0, index(capture.size_hint)))
            except Exception:  # noqa: BLE001 - the capture's code
                self._queue.refuse("capture_error")
            else:
                self._queue.submit(item)
            if self._report is not None and process_end.is_over:  # no request waits for the log any more
                self._log.report("is over", "an answer came after the end of the process had begun, and is not scored")
        except RecursionError:  # there is no room on the stack, not even to count it
            self._queue.worker_sleeps = True  # perhaps nobody woke it; this takes no call

    def has_room(self, size: int) -> bool:
        """Whether a capture of this size can be submitted now and pushes out no other, for callers that can wait. Takes no lock."""
        return self._queue.has_room(size)

    def count_error(self, place: str) -> None:
        """Count something that went wrong before `submit`; `place` is one of few names, and shows in `stats().errors`.

        Never raises, and may be called from wherever `submit` may.
        """
        call_guarded(self._queue.record_error, place)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything that was submitted before is out, and sent by those who send it.

        Args:
            timeout: seconds; 0 asks without waiting.

        Returns:
            False if something may be left; also in the worker's own thread, which must not wait for itself.
        """
        deadline = Deadline(timeout)
        if self._report is not None:
            return True
        if self._worker.is_current_thread:
            return False
        all_out = self._queue.wait_until_out(deadline.minus_reserve())
        return (self._work is None or self._work.flush(deadline)) and all_out

    def shutdown(self, timeout: float = 10.0) -> ShutdownReport:
        """Take nothing any more, work on what is left within `timeout` seconds, and let go of everything.

        What is not done by then is abandoned and counted as dropped. A second call returns the same report.
        """
        report = self.end(timeout)
        if report.abandoned and report is self._report:
            self._tell_drops("records dropped at shutdown, because the time for them was up: %d")
        return report

    def keep_places(self, *, is_ending: bool) -> None:
        """Whether the process ends, so that nothing that comes pushes out what is there."""
        self._queue.is_ending = is_ending

    def tell_end(self) -> None:
        """Name in the log what the end of the process has cost. Who submits from now on waits a moment for that end, uncounted."""
        self._held = Deadline(_LONGEST_HOLD)
        time.sleep(_GRACE)  # for those who are in `submit`
        waited = f"RAGSPAN_EXIT_TIMEOUT is {self.exit_timeout:g} s"
        self._tell_drops(f"answers that are not scored, because the process ended: %d ({waited})")
        if losses := self._queue.stats.losses:
            log_line(logging.WARNING, "captures dropped in all: %s", losses)

    def end(self, timeout: float) -> ShutdownReport:
        """Shut down, and leave it to `tell_end` to say what that has cost."""
        deadline = Deadline(timeout)
        self._queue.close("shutdown")
        if self._report is not None:
            return self._report
        if not self.can_wait or not self._shutting_down.acquire(timeout=deadline.remaining):
            stats = self._queue.stats
            return ShutdownReport(finished=0, abandoned=stats.queued + stats.in_flight, seconds=deadline.elapsed)
        try:
            if self._report is None:
                queue, finished_before = self._queue, self._queue.stats.done
                if not self._worker.is_current_thread:
                    queue.wait_until_out(deadline.minus_reserve())
                abandoned = len([*(queue.abandon() or ()), *(queue.drop_in_work("shutdown") or ())])
                self._worker.is_stopping = True
                if self._work is not None:
                    self._work.stop(deadline)
                self._worker.stop(Deadline(max(deadline.remaining, _GRACE)))
                finished = queue.stats.done - finished_before
                self._report = ShutdownReport(finished=finished, abandoned=abandoned, seconds=deadline.elapsed)
            return self._report
        finally:
            self._shutting_down.release()

    def __enter__(self: _P) -> _P:  # noqa: PYI019 - Python 3.10 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _assemble(self) -> None:
        options = self._processor_options
        rate = options.max_records_per_second
        self._report = self._held = self._work = None
        self._told = 0
        self._shutting_down = threading.RLock()
        self._queue = RecordQueue(
            max_count=options.queue_size,
            max_bytes=options.queue_bytes,
            drop=options.drop,
            wake_worker=lambda: self._worker.wake(),  # noqa: PLW0108 - the two need each other
            rate_limit=None if rate is None else Limit(max(1.0, rate), rate=rate),
        )
        self._log = ThrottledLog(count=self._queue.record_error)
        self._worker = Worker(
            self._queue,
            self._work_now,
            concurrency=options.concurrency,
            name=f"{options.name}-worker",
            on_start=lambda: process_end.watch(self),
            on_work=lambda: sigterm.look(self._log) if options.exit_timeout else None,
            log=self._log,
        )
        if not self._is_enabled:
            self._queue.close("not_running")
            self._report = ShutdownReport(finished=0, abandoned=0, seconds=0.0)

    def _work_now(self) -> Work:
        self._work = self._work or self._make_work(self._log)
        return self._work

    def _tell_drops(self, message: str) -> None:
        dropped = self._queue.stats.dropped.get("shutdown", 0)
        if dropped > self._told:
            log_line(logging.WARNING, message, dropped - self._told)
            self._told = dropped

    def _start_afresh(self) -> None:
        """In the child of a fork: threads that the child does not have may hold the locks, and the work is the parent's."""
        keep_inherited(vars(self).copy())
        refuses = self._queue.refuses
        self._assemble()
        if refuses is not None:
            self._queue.close(refuses)

    def _figures(self) -> Iterator[Figure]:
        """Of the queue, for the metrics about ragspan itself."""
        from ragspan.telemetry import semconv

        options, stats = self._processor_options, self._queue.stats
        yield semconv.METRIC_QUEUE_SIZE, stats.queued, {}
        yield semconv.METRIC_QUEUE_BYTES, self._queue.bytes, {}
        yield semconv.METRIC_QUEUE_CAPACITY, options.queue_size, {}
        yield semconv.METRIC_QUEUE_CAPACITY_BYTES, options.queue_bytes, {}
        yield semconv.METRIC_RECORDS, stats.finished, {semconv.RESULT: self._finished_as}
        yield semconv.METRIC_RECORDS, stats.nothing_to_score, {semconv.RESULT: semconv.RESULT_NOTHING_TO_SCORE}
        for reason, number in stats.dropped.items():
            yield semconv.METRIC_RECORDS, number, {semconv.RESULT: semconv.RESULT_DROPPED, semconv.REASON: reason}
