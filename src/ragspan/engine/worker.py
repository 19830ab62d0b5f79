"""The thread that scores: one daemon thread with one event loop, started by the first submit.

Guarantees:
- Nothing that a capture, a metric or an emitter raises ends the thread. If its event loop breaks nevertheless, the records that
  it had in work are dropped and counted, and the thread goes on with another loop.
- At most `concurrency` records are in work. The queue is read when one of them ends, and when `wake` is called.
- Everything runs in a context of the worker's own: no span and no variable of a request reaches a metric, and no handler captures what
  metrics and emitters do.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import platform
import sys
import threading
from collections.abc import Callable
from typing import Protocol

from ragspan.engine.record_queue import Item, RecordQueue
from ragspan.engine.stats import Dropped
from ragspan.engine.threads import DaemonThreads, Deadline, WorkerLoop, call_guarded
from ragspan.outcomes import ScoredRecord
from ragspan.telemetry.otel_context import context_of_worker
from ragspan.throttled_log import ThrottledLog
from ragspan.turns import enable_turns

_IO_THREADS = 32
_TICK = 0.2  # seconds
_IDLE_TICKS = 50
_NO_THREAD = (
    "no thread can be started (%s), so nothing is scored: what is submitted waits, and is tried again; "
    "see the limits of threads (ulimit -u, pids.max) and of memory"
)
_RESTART_PAUSE = 1.0  # seconds from one start to the next, of loops that break and of threads that cannot be started


class Work(Protocol):
    """What is done with each item: it is scored, or sent to where that is done."""

    async def process(self, item: Item) -> ScoredRecord | Dropped | None:
        """What becomes of the item; None if it was worked on and nobody asks for the result, or if it is out already."""
        ...

    def flush(self, deadline: Deadline) -> bool:
        """Send what is done; True if all of it was sent in time."""
        ...

    def stop(self, deadline: Deadline) -> None:
        """The processor is shut down: send what is done. What ends from here on does not count."""
        ...

    def worker_ended(self) -> None:
        """The event loop has stopped and will be closed. Its tasks are cancelled next, and their items counted."""
        ...


class Worker:
    """Takes items from a queue and has them worked on.

    Args:
        work: what is done with them; it is made in the worker's thread where it does not exist yet.
        on_start: called before the thread is started, by the thread that submits.
        on_work: called by that thread after `on_start`, and by the worker five times a second as long as there is work, or was
            ten seconds ago: exporters may still hold it.
    """

    def __init__(
        self,
        queue: RecordQueue,
        work: Callable[[], Work],
        *,
        concurrency: int,
        name: str,
        on_start: Callable[[], None],
        on_work: Callable[[], None],
        log: ThrottledLog,
    ) -> None:
        self._queue = queue
        self._work = work
        self._concurrency = concurrency
        self._name = name
        self._on_start = on_start
        self._on_work = on_work
        self._log = log
        self._context = context_of_worker()
        self.is_stopping = False
        """What goes wrong from now on is of the end, and no failure."""
        self._thread: threading.Thread | None = None
        self._loop: WorkerLoop | None = None
        self._tasks: dict[asyncio.Task[ScoredRecord | Dropped | None], Item] = {}
        self._pause: Deadline | None = None
        self._stopping = threading.Event()
        self._logged_drops = queue.stats.dropped
        self._is_ticking = False

    @property
    def is_current_thread(self) -> bool:
        return threading.current_thread() is self._thread

    def wake(self) -> None:
        """Let it read the queue; start it if there is no thread."""
        if self._thread is not None:
            self._call_soon(self._read_queue)  # or it reads the queue when its next loop begins
            return
        is_started = False
        try:
            if not self._stopping.is_set() and (self._pause is None or not self._pause.remaining):
                self._pause = Deadline(_RESTART_PAUSE)
                self._on_start()
                self._on_work()
                target, threads = self._context.copy().run, DaemonThreads(_IO_THREADS, name="ragspan-io")
                self._thread = threading.Thread(target=target, args=(self._main, threads), name=self._name, daemon=True)
                self._thread.start()
                is_started = True
        except Exception as error:  # noqa: BLE001 - there is no thread, no memory, or the interpreter is at its end
            if not sys.is_finalizing() and "shutdown" not in str(error):
                self._log.report("no thread", _NO_THREAD, str(error) or type(error).__name__)
        finally:
            if not is_started:
                self._thread = None
                self._queue.worker_sleeps = True

    def cancel(self, item: Item) -> None:
        """Stop working on an item that has been dropped."""
        task = next((task for task, its_item in list(self._tasks.items()) if its_item is item), None)
        self._call_soon(task.cancel if task is not None else None)

    def stop(self, deadline: Deadline) -> None:
        """End the thread and cancel what it has in work; wait for that until the deadline."""
        self._stopping.set()
        self._call_soon(self._loop.stop if self._loop is not None else None)
        if self._thread is not None and not self.is_current_thread:
            self._thread.join(deadline.remaining)

    def _call_soon(self, call: Callable[[], object] | None) -> None:
        loop = self._loop
        if loop is not None and call is not None:
            with contextlib.suppress(RuntimeError):  # closed in the meantime
                loop.call_soon_threadsafe(call, context=self._context)

    def _main(self, threads: DaemonThreads) -> None:
        _tell_processor()
        enable_turns()
        while not self._stopping.is_set():
            loop, error = call_guarded(lambda: WorkerLoop(threads=threads, on_error=self._note_error))
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
            call_guarded(self._work().worker_ended)
            if loop is not None:
                loop.wind_down()
            self._queue.drop_in_work()
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
            while len(self._tasks) < self._concurrency and (item := self._queue.take()) is not None:
                task = loop.create_task(self._work().process(item))
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
        """Call `on_work`, and again until it has been idle for some ticks."""
        call_guarded(self._on_work)
        idle = 0 if self._tasks else idle + 1
        self._is_ticking = idle < _IDLE_TICKS
        if self._is_ticking:
            loop.call_later(_TICK, self._tick, loop, idle, context=self._context)

    def _ended(self, task: asyncio.Task[ScoredRecord | Dropped | None]) -> None:
        item = self._tasks.pop(task, None)
        if item is None:
            return
        is_cancelled = task.cancelled()  # by a metric, say
        error = None if is_cancelled else task.exception()
        failed = is_cancelled or error is not None
        self._queue.end(item, Dropped(reason="worker_error") if failed else task.result())
        if error is not None:
            self._note_error(error)
        self._read_queue()

    def _note_error(self, error: BaseException) -> None:
        if self.is_stopping:
            return
        if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
            self._log.count("worker")
            self._log.report("no descriptor", "nothing is scored: %s; see ulimit -n", error.strerror)
        else:
            self._log.failed("worker", error, "the worker")


def _tell_processor() -> None:
    """Spare Python the program `uname` under gevent and eventlet, which clients of providers would have it start in the worker.

    It would be started by a fork of these libraries, which runs the application's greenlets and the hooks of all others in the child.
    """
    if "gevent.monkey" in sys.modules or "eventlet.patcher" in sys.modules:
        platform.uname().__dict__.setdefault("processor", platform.machine())
