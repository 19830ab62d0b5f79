"""Takes captures on the request path and has them worked on off it: what the engine and sinks to a broker have in common.

Guarantees of `shutdown`:
- It takes no longer than its timeout (and a grace of a tenth of a second), whatever hangs. Most of the time is for working on
  what is left, the last of it for sending what is done.
- A later call returns the first one's report. A call that comes while another thread is at it waits for that report; one
  from a signal handler that interrupted it cannot wait, and says what is left at that moment.
- A call from a signal handler that interrupted a step of the queue's, which the worker waits for, cannot wait either: it takes
  nothing any more, says what is left at that moment, and the shutdown follows as soon as the handler has returned.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from ragspan.arguments import AMOUNT, SECONDS, TEXT, WHOLE, choice
from ragspan.config import DropPolicy
from ragspan.engine._lifecycle import watch_exit
from ragspan.engine._record_queue import Item, RecordQueue
from ragspan.engine._threads import Deadline, call_guarded
from ragspan.engine._worker import Work, Worker
from ragspan.engine.budget import TokenBucket
from ragspan.engine.stats import EngineStats, ShutdownReport
from ragspan.forks import keep_inherited, watch_forks
from ragspan.records import Capture
from ragspan.throttled_log import ThrottledLog

if TYPE_CHECKING:  # what this loads is needed where an engine is made, not where ragspan is imported
    from opentelemetry.metrics import MeterProvider

_STACK = 12  # calls: more than letting a capture in takes
_GRACE = 0.04  # seconds for the worker to end, even if no time is left: emitters should not be shut down under it

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
    thread_name: str
    max_records_per_second: float | None = None
    finished_as: str = "scored"
    """What has become of finished records, in the metrics about ragspan itself."""

    def __post_init__(self) -> None:
        WHOLE.check_fields(self, "queue_size", "queue_bytes", "concurrency")
        choice("oldest", "newest").check_fields(self, "drop")
        SECONDS.check_fields(self, "exit_timeout")
        AMOUNT.or_none().check_fields(self, "max_records_per_second")
        TEXT.check_fields(self, "name")


class BackgroundProcessor(ABC):
    """A queue, one worker thread, and what it does with each capture.

    A derived class makes the work. `submit` is inherited rather than called: where there is hardly any stack left, one call
    more would be one too many.
    """

    def __init__(self, options: ProcessorOptions, *, is_enabled: bool, meter_provider: MeterProvider | None) -> None:
        from ragspan.telemetry.self_metrics import SelfMetrics

        self._processor_options = options
        self._is_enabled = is_enabled
        self._self_metrics = SelfMetrics(meter_provider)
        self._assemble()
        watch_forks(self, BackgroundProcessor._start_afresh)
        if is_enabled:
            self._self_metrics.watch(
                self._counts,
                self._bytes_waiting,
                options.name,
                max_records=options.queue_size,
                max_bytes=options.queue_bytes,
                finished_as=options.finished_as,
            )

    @abstractmethod
    def _make_work(self, queue: RecordQueue, log: ThrottledLog) -> Work:
        """What is done with each item; it has done nothing yet."""

    @property
    def exit_timeout(self) -> float:
        """Seconds that the end of the process may wait for what was submitted."""
        return self._processor_options.exit_timeout

    def submit(self, capture: Capture) -> None:
        """Take a capture, to be worked on later. Never raises, whatever the capture does."""
        queue = self._parts.queue
        try:
            size = max(0, index(capture.size_hint))
            _require_stack(_STACK)  # what is needed has to be there before anything is changed
        except Exception:  # noqa: BLE001 - the capture's code
            try:
                queue.refuse("capture_error")
            except Exception:  # noqa: BLE001 - no room on the stack
                queue.uncounted += 1  # takes no call, for which there may be no room
        else:
            queue.submit(Item(capture, size))

    def count_error(self, place: str) -> None:
        """Count something that went wrong on the way to `submit`, by a name of few; it shows in `stats().errors`.

        Never raises, and may be called from wherever `submit` may.
        """
        call_guarded(self._parts.queue.record_error, place)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything that was submitted before is out, and sent by those who send it.

        Args:
            timeout: seconds; 0 asks without waiting.

        Returns:
            False if something may be left; also in the worker itself, where waiting would be waiting for oneself.
        """
        parts = self._parts
        deadline = Deadline(timeout)
        if parts.report is not None or not self._is_enabled:
            return True
        if parts.worker.is_current_thread:
            return False
        all_out = parts.queue.wait_until_out(deadline.less_reserve())
        return parts.work.flush(deadline) and all_out

    def shutdown(self, timeout: float = 10.0) -> ShutdownReport:
        """Take nothing any more, work on what is left within `timeout` seconds, and let go of everything.

        What is not done by then is abandoned and counted as dropped. A second call returns the same report.
        """
        if not self._is_enabled:
            return ShutdownReport(finished=0, abandoned=0, seconds=0.0)
        return self._parts.shutdown(timeout)

    def __enter__(self: _P) -> _P:  # noqa: PYI019 - Python 3.10 has no Self
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()

    def _assemble(self) -> None:
        options, log = self._processor_options, ThrottledLog()
        rate = options.max_records_per_second
        queue = RecordQueue(
            max_count=options.queue_size,
            max_bytes=options.queue_bytes,
            drop=options.drop,
            wake_worker=lambda: worker.wake(),  # noqa: PLW0108 - the two need each other
            rate_limit=None if rate is None else TokenBucket(rate, max(1.0, rate)),
        )
        work = self._make_work(queue, log)
        worker = Worker(
            queue,
            work,
            concurrency=options.concurrency,
            name=options.thread_name,
            on_start=lambda: watch_exit(self),
            log=log,
        )
        self._parts = _Parts(queue=queue, work=work, worker=worker, log=log)
        if not self._is_enabled:
            queue.close("not_running")

    def _start_afresh(self) -> None:
        """In the child of a fork: locks may be held by threads that are not there, and the work is the parent's."""
        inherited = self._parts
        keep_inherited(inherited)
        self._assemble()
        if inherited.queue.is_closed:
            self._parts.queue.close("shutdown")

    def _counts(self) -> EngineStats:
        return self._parts.queue.counts.stats()

    def _bytes_waiting(self) -> int:
        return self._parts.queue.bytes


@dataclass(kw_only=True, slots=True, eq=False)
class _Parts:
    """All that a fork replaces. They are shut down once, whoever asks for it and how often."""

    queue: RecordQueue
    work: Work
    worker: Worker
    log: ThrottledLog
    report: ShutdownReport | None = None
    """What the shutdown has done; None until it has ended."""
    _mutex: threading.RLock = field(default_factory=threading.RLock)
    """The one who may not wait for himself has to get in, to see that."""
    _is_under_way: bool = False

    def shutdown(self, timeout: float) -> ShutdownReport:
        deadline = Deadline(timeout)
        if self.report is not None:
            return self.report
        if self.queue.is_held_here:
            self.queue.close("shutdown")
            self.queue.put_off(lambda: self._follow(timeout))
            return self._so_far(deadline)
        if not self._mutex.acquire(timeout=deadline.remaining):
            return self._so_far(deadline)
        try:
            if self._is_under_way:
                return self._so_far(deadline)
            self._is_under_way = True
            try:
                if self.report is None:
                    self.report = self._end(deadline)
            finally:
                self._is_under_way = False
            return self.report
        finally:
            self._mutex.release()

    def _follow(self, timeout: float) -> None:
        """The interrupted step is over. If the worker was the first to see that, it must not wait for itself."""
        if self.worker.is_current_thread:
            threading.Thread(target=self.shutdown, args=(timeout,), name="ragspan-shutdown", daemon=True).start()
        else:
            self.shutdown(timeout)

    def _end(self, deadline: Deadline) -> ShutdownReport:
        queue = self.queue
        finished_before = queue.counts.finished
        queue.close("shutdown")
        if not self.worker.is_current_thread:
            queue.wait_until_out(deadline.less_reserve())
        abandoned = len(queue.abandon() or ())
        self.work.stop(deadline)
        self.worker.stop(Deadline(max(deadline.remaining / 2, _GRACE)))
        self.work.shutdown(deadline)
        if abandoned:
            self.log.trouble("shutdown", "%d records were abandoned: the time for their scores was up", abandoned)
        finished = queue.counts.finished - finished_before
        return ShutdownReport(finished=finished, abandoned=abandoned, seconds=deadline.elapsed)

    def _so_far(self, deadline: Deadline) -> ShutdownReport:
        counts = self.queue.counts
        return ShutdownReport(finished=0, abandoned=counts.queued + counts.in_flight, seconds=deadline.elapsed)


def _require_stack(calls: int) -> None:
    """Raise `RecursionError` unless there is room on the stack for so many calls, one inside the other."""
    if calls:
        _require_stack(calls - 1)
