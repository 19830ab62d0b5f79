"""Takes captures on the request path and works on them in one thread: what the engine and sinks to a broker share."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from operator import index
from typing import TYPE_CHECKING, ClassVar, TypeVar

from ragspan.engine.process_end import is_multiprocessing_child, process_end, sigterm
from ragspan.engine.record_queue import Item
from ragspan.engine.stats import EngineStats, ShutdownReport
from ragspan.engine.threads import Deadline, call_guarded, is_owned
from ragspan.engine.worker import ProcessorOptions, QueueWorker
from ragspan.process import keep_inherited, watch_forks
from ragspan.records import Capture
from ragspan.throttled_log import log_line

if TYPE_CHECKING:  # what this loads is needed where an engine is made, not where ragspan is imported
    from opentelemetry.metrics import MeterProvider

    from ragspan.telemetry.self_metrics import Figure

_GRACE = 0.04  # seconds for the worker to end, even if no time is left
_LONGEST_HOLD = 1.0  # seconds

_P = TypeVar("_P", bound="BackgroundProcessor")


class BackgroundProcessor(QueueWorker):
    """A queue, one worker thread, and what it does with each capture. A derived class makes the work."""

    _finished_as: ClassVar[str] = "scored"
    """What has become of finished records, in the metrics about ragspan itself."""

    def __init__(self, options: ProcessorOptions, *, is_enabled: bool, meter_provider: MeterProvider | None) -> None:
        from ragspan.telemetry.self_metrics import SelfMetrics

        self._is_enabled = is_enabled
        self._self_metrics = SelfMetrics(meter_provider)
        super().__init__(options)
        self._work = self._make_work(self._log)
        watch_forks(self, BackgroundProcessor._start_afresh)
        if is_enabled:
            self._self_metrics.watch(self._figures, options.name)
            # SIGTERM ends at once the child of `multiprocessing` until that has work, and who waits for nothing.
            if options.exit_timeout and not is_multiprocessing_child():
                sigterm.look()

    def _assemble(self) -> None:
        super()._assemble()
        self._held: Deadline | None = None
        """From `tell_end` on."""
        self._report: ShutdownReport | None = None
        """What the shutdown did; None until it has ended."""
        self._told = 0
        self._shutting_down = threading.RLock()
        if not self._is_enabled:
            self._queue.refuses = "not_running"
            self._report = ShutdownReport(finished=0, abandoned=0, seconds=0.0)

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

    def stats(self) -> EngineStats:
        """Where every submitted capture is; `finished` are those that are scored, or that the stream of a sink has. Takes no lock."""
        return self._queue.stats

    def has_room(self, size: int) -> bool:
        """Whether a capture of this size can be submitted now and pushes out no other, for callers that can wait. Takes no lock."""
        return self._queue.has_room(size)

    def count_error(self, place: str) -> None:
        """Count what went wrong before `submit`, by one of few names, for `stats().errors`. May be called from wherever `submit` may."""
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
        if self._is_current_thread:
            return False
        all_out = self._queue.wait_until_out(deadline.minus_reserve())
        return (self._work is None or self._work.flush(deadline)) and all_out

    def shutdown(self, timeout: float = 10.0) -> ShutdownReport:
        """Take nothing any more, work on what is left within `timeout` seconds, and let go of everything.

        What is not done by then is abandoned and counted as dropped. It takes no longer than the timeout and a tenth of a second,
        whatever hangs. A second call returns the same report; from another thread it waits for that.
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
        waited = f"RAGSPAN_EXIT_TIMEOUT is {self.exit_timeout:g} s; a larger one waits longer"
        self._tell_drops(f"answers that are not scored, because the process ended: %d ({waited})")
        if losses := self._queue.stats.losses:
            log_line(logging.WARNING, "captures dropped in all: %s", losses)

    def end(self, timeout: float) -> ShutdownReport:
        """Shut down, and leave it to `tell_end` to say what that has cost.

        A call from a signal handler that interrupted a `submit` or a `shutdown` cannot wait: what it would wait for needs its
        thread. It closes the queue and reports what is left. The next call, at the end of the process at the latest, does the rest.
        """
        deadline, queue = Deadline(timeout), self._queue
        queue.refuses = queue.refuses or "shutdown"
        if self._report is not None:
            return self._report
        if not self.can_wait or not self._shutting_down.acquire(timeout=deadline.remaining):
            left = queue.stats.queued + queue.stats.in_flight
            return ShutdownReport(finished=0, abandoned=left, seconds=deadline.elapsed)
        try:
            if self._report is None:
                finished_before = queue.stats.done
                if not self._is_current_thread:
                    queue.wait_until_out(deadline.minus_reserve())
                abandoned = len(queue.drop_left("shutdown", waiting=True) or ())
                self._stopping.set()
                if self._work is not None:
                    self._work.stop(deadline)
                self._stop_worker(Deadline(max(deadline.remaining, _GRACE)))
                finished = queue.stats.done - finished_before
                self._report = ShutdownReport(finished=finished, abandoned=abandoned, seconds=deadline.elapsed)
            return self._report
        finally:
            self._shutting_down.release()

    def __enter__(self: _P) -> _P:  # noqa: PYI019 - Python 3.10 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    def _start_afresh(self) -> None:
        """In the child of a fork: threads that the child does not have may hold the locks, and the work is the parent's."""
        keep_inherited(vars(self).copy())
        refuses = self._queue.refuses
        self._assemble()
        self._queue.refuses = refuses

    def _tell_drops(self, message: str) -> None:
        dropped = self._queue.stats.dropped.get("shutdown", 0)
        if dropped > self._told:
            log_line(logging.WARNING, message, dropped - self._told)
            self._told = dropped

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
