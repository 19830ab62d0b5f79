"""Takes captures on the request path and works on them in one thread: what the engine and sinks to a broker share.

The thread is a daemon with one event loop, started by the first submit. Everything in it runs in a context of its own: no span and no
variable of a request reaches a metric, and no handler captures what metrics and emitters do.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import platform
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from operator import index
from typing import ClassVar, TypeVar

from opentelemetry.metrics import MeterProvider

from ragspan.engine.process_end import is_multiprocessing_child, process_end, sigterm
from ragspan.engine.record_queue import Item, RecordQueue
from ragspan.engine.self_metrics import Figure, SelfMetrics
from ragspan.engine.stats import Dropped, EngineStats, ShutdownReport
from ragspan.engine.threads import DaemonThreads, Deadline, call_guarded, is_owned
from ragspan.engine.worker import ProcessorOptions, Work, WorkerLoop
from ragspan.outcomes import ScoredRecord
from ragspan.process import keep_inherited, watch_forks
from ragspan.records import Capture
from ragspan.telemetry import semconv
from ragspan.telemetry.otel_context import context_of_worker
from ragspan.throttled_log import ThrottledLog, log_line
from ragspan.turns import enable_turns

_IO_THREADS = 32
_TICK = 0.2  # seconds
_IDLE_TICKS = 50
_NO_THREAD = (
    "no thread can be started (%s), so nothing is scored: what is submitted waits, and is tried again; "
    "see the limits of threads (ulimit -u, pids.max) and of memory"
)
_RESTART_PAUSE = 1.0  # seconds from one start to the next, of loops that break and of threads that cannot be started
_GRACE = 0.04  # seconds for the worker to end, even if no time is left
_LONGEST_HOLD = 1.0  # seconds

_P = TypeVar("_P", bound="BackgroundProcessor")


class BackgroundProcessor(ABC):
    """A queue, and the thread that takes items out and has them worked on, `concurrency` at a time. A derived class makes the work.

    Nothing that a capture, a metric or an emitter raises ends the thread. If its event loop breaks nevertheless, the items that
    it had in work are dropped and counted, and the thread goes on with another loop.
    """

    _finished_as: ClassVar[str] = "scored"
    """What has become of finished records, in the metrics about ragspan itself."""

    def __init__(self, options: ProcessorOptions, *, is_enabled: bool, meter_provider: MeterProvider | None) -> None:
        self._is_enabled = is_enabled
        self._self_metrics = SelfMetrics(meter_provider)
        self._processor_options = options
        self._assemble()
        self._work: Work | None = self._make_work(self._log)
        watch_forks(self, BackgroundProcessor._start_afresh)
        if is_enabled:
            self._self_metrics.watch(self._figures, options.name)
            # SIGTERM ends at once the child of `multiprocessing` until that has work, and who waits for nothing.
            if options.exit_timeout and not is_multiprocessing_child():
                sigterm.look()

    @abstractmethod
    def _make_work(self, log: ThrottledLog) -> Work:
        """What is done with each item; it has done nothing yet."""

    def _assemble(self) -> None:
        """Make what is replaced in the child of a fork."""
        options = self._processor_options
        self._queue = RecordQueue(max_count=options.queue_size, max_bytes=options.queue_bytes, wake_worker=self._wake)
        self._log = ThrottledLog(count=self._queue.record_error)
        self._work = None
        """None in the child until it has work: what makes it calls code of the user's, which a hook of a fork must not."""
        self._context = context_of_worker()
        self._thread: threading.Thread | None = None
        self._loop: WorkerLoop | None = None
        self._tasks: dict[asyncio.Task[ScoredRecord | Dropped | None], Item] = {}
        self._pause: Deadline | None = None
        self._stopping = threading.Event()
        """What goes wrong from now on is of the end, and no failure."""
        self._logged_drops = self._queue.stats.dropped
        self._is_ticking = False
        self._held: Deadline | None = None
        """From `report_losses` on."""
        self._report: ShutdownReport | None = None
        """What the shutdown did; None until it has ended."""
        self._told = 0
        self._shutting_down = threading.RLock()
        if not self._is_enabled:
            self._queue.refuses = "not_running"
            self._report = ShutdownReport(finished=0, abandoned=0, seconds=0.0)

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

    def keep_queued(self, *, is_ending: bool) -> None:
        """Whether the process ends, so that nothing that comes pushes out what is there."""
        self._queue.is_ending = is_ending

    def report_losses(self) -> None:
        """Name in the log what the end of the process has cost. Who submits from now on waits a moment for that end, uncounted."""
        self._held = Deadline(_LONGEST_HOLD)
        time.sleep(_GRACE)  # for those who are in `submit`
        waited = f"exit_timeout (RAGSPAN_EXIT_TIMEOUT) is {self.exit_timeout:g} s; a larger one waits longer"
        self._tell_drops(f"answers that are not scored, because the process ended: %d ({waited})")
        if losses := self._queue.stats.losses:
            log_line(logging.WARNING, "captures dropped in all: %s", losses)

    def end(self, timeout: float) -> ShutdownReport:
        """Shut down, and leave it to `report_losses` to say what that has cost.

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
        options, stats = self._processor_options, self._queue.stats
        yield semconv.METRIC_QUEUE_SIZE, stats.queued, {}
        yield semconv.METRIC_QUEUE_BYTES, self._queue.bytes, {}
        yield semconv.METRIC_QUEUE_CAPACITY, options.queue_size, {}
        yield semconv.METRIC_QUEUE_CAPACITY_BYTES, options.queue_bytes, {}
        yield semconv.METRIC_RECORDS, stats.finished, {semconv.RESULT: self._finished_as}
        yield semconv.METRIC_RECORDS, stats.nothing_to_score, {semconv.RESULT: "nothing_to_score"}
        for reason, number in stats.dropped.items():
            yield semconv.METRIC_RECORDS, number, {semconv.RESULT: "dropped", semconv.REASON: reason}

    @property
    def _is_current_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def _wake(self) -> None:
        """Let the worker read the queue; start it if there is no thread."""
        if self._thread is not None:
            self._call_soon(self._read_queue)  # or it reads the queue when its next loop begins
            return
        is_started = False
        try:
            if not self._stopping.is_set() and (self._pause is None or not self._pause.remaining):
                self._pause = Deadline(_RESTART_PAUSE)
                process_end.watch(self)
                self._look_at_sigterm()
                target, threads = self._context.copy().run, DaemonThreads(_IO_THREADS, name="ragspan-io")
                name = f"{self._processor_options.name}-worker"
                self._thread = threading.Thread(target=target, args=(self._main, threads), name=name, daemon=True)
                self._thread.start()
                is_started = True
        except Exception as error:  # noqa: BLE001 - there is no thread, no memory, or the interpreter is at its end
            if not sys.is_finalizing() and "shutdown" not in str(error):
                self._log.report("no thread", _NO_THREAD, str(error) or type(error).__name__)
        finally:
            if not is_started:
                self._thread = None
                self._queue.worker_sleeps = True

    def _cancel(self, item: Item) -> None:
        """Drop an item that nobody awaits any more, and stop working on it."""
        self._queue.cancel(item)
        for task, its_item in list(self._tasks.items()):
            if its_item is item:
                self._call_soon(task.cancel)

    def _stop_worker(self, deadline: Deadline) -> None:
        """End the thread and cancel what it has in work; wait for that until the deadline."""
        if (loop := self._loop) is not None:
            self._call_soon(loop.stop)
        if self._thread is not None and not self._is_current_thread:
            self._thread.join(deadline.remaining)

    def _call_soon(self, call: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # closed in the meantime
                loop.call_soon_threadsafe(call, context=self._context)

    def _look_at_sigterm(self) -> None:
        if self.exit_timeout:
            sigterm.look(self._log)

    def _work_now(self) -> Work:
        self._work = self._work or self._make_work(self._log)
        return self._work

    def _main(self, threads: DaemonThreads) -> None:
        if "gevent.monkey" in sys.modules or "eventlet.patcher" in sys.modules:
            # Clients of providers would have Python start the program `uname`, by a fork of these libraries, which runs the
            # application's greenlets and the hooks of all others in the child.
            platform.uname().__dict__.setdefault("processor", platform.machine())
        enable_turns()
        while not self._stopping.is_set():
            loop, error = call_guarded(WorkerLoop, threads, self._note_error)
            if loop is not None:
                self._loop = loop
                loop.call_soon(self._read_queue, context=self._context)
                # A metric can stop the loop, and asyncio lets SystemExit and KeyboardInterrupt out of any task.
                while not self._stopping.is_set() and not isinstance(error, Exception):
                    _, error = call_guarded(loop.run_forever)
                    if error is not None:
                        self._note_error(error)
            self._loop, self._is_ticking = None, False
            self._tasks.clear()
            call_guarded(self._work_now().worker_ended)
            if loop is not None:
                loop.wind_down()
            self._queue.drop_left("worker_error", waiting=False)
            if loop is None and error is not None:
                self._note_error(error)
            self._stopping.wait(_RESTART_PAUSE)

    def _read_queue(self) -> None:
        loop = self._loop
        if loop is None:
            return
        if not self._is_ticking:
            self._tick(loop)
        try:
            while len(self._tasks) < self._processor_options.concurrency and (item := self._queue.take()) is not None:
                task = loop.create_task(self._work_now().process(item))
                self._tasks[task] = item
                task.add_done_callback(self._ended, context=self._context)
        except BaseException as error:  # noqa: BLE001 - out of memory, say
            self._queue.worker_sleeps = True
            self._note_error(error)
        if self._queue.stats.dropped is not self._logged_drops:  # `submit` may not log
            self._logged_drops = self._queue.stats.dropped
            if losses := self._queue.stats.losses:
                self._log.report("dropped", "captures dropped so far: %s", losses)

    def _tick(self, loop: WorkerLoop, idle: int = 0) -> None:
        """Look at SIGTERM as long as there is work, or was ten seconds ago: exporters may still hold it."""
        call_guarded(self._look_at_sigterm)
        idle = 0 if self._tasks else idle + 1
        self._is_ticking = idle < _IDLE_TICKS
        if self._is_ticking:
            loop.call_later(_TICK, self._tick, loop, idle)

    def _ended(self, task: asyncio.Task[ScoredRecord | Dropped | None]) -> None:
        item = self._tasks.pop(task, None)
        if item is None:
            return
        error = None if task.cancelled() else task.exception()  # cancelled by a metric, say
        failed = task.cancelled() or error is not None
        self._queue.end(item, Dropped(reason="worker_error") if failed else task.result())
        if error is not None:
            self._note_error(error)
        self._read_queue()

    def _note_error(self, error: BaseException) -> None:
        if self._stopping.is_set():
            return
        if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
            self._log.count("worker")
            self._log.report("no descriptor", "nothing is scored: %s; see ulimit -n", error.strerror)
        else:
            self._log.failed("worker", error, "the worker")
