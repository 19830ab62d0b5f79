"""The thread that scores: one daemon thread with one event loop, started by the first submit.

Everything runs in a context of the worker's own: no span and no variable of a request reaches a metric, and no handler captures
what metrics and emitters do.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import platform
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ragspan.arguments import SECONDS, TEXT, WHOLE
from ragspan.engine.process_end import process_end, sigterm
from ragspan.engine.record_queue import Item, RecordQueue
from ragspan.engine.stats import Dropped
from ragspan.engine.threads import DaemonThreads, Deadline, call_guarded
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
_CLEAN_UP = 0.5  # seconds that cancelled tasks have to let go of what they hold


class Work(Protocol):
    """What is done with each item: it is scored, or sent to where that is done.

    `process` returns what becomes of an item; None if it was worked on and nobody asks for the result, or if it is out already.
    `flush` sends what is done, and returns True if all of it was sent in time; `stop` does so at the shutdown, and what ends
    from there on does not count. `worker_ended` is called when the event loop has stopped: its tasks are cancelled next.
    """

    async def process(self, item: Item) -> ScoredRecord | Dropped | None: ...
    def flush(self, deadline: Deadline) -> bool: ...
    def stop(self, deadline: Deadline) -> None: ...
    def worker_ended(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessorOptions:
    """How much a processor takes, and what it is called. A `ConfigurationError` names a wrong argument."""

    queue_size: int
    queue_bytes: int
    concurrency: int
    exit_timeout: float
    name: str

    def __post_init__(self) -> None:
        WHOLE.check_fields(self, "queue_size", "queue_bytes", "concurrency")
        SECONDS.check_fields(self, "exit_timeout")
        TEXT.check_fields(self, "name")


class QueueWorker(ABC):
    """A queue, and the thread that takes items out and has them worked on, `concurrency` at a time.

    Nothing that a capture, a metric or an emitter raises ends the thread. If its event loop breaks nevertheless, the items that
    it had in work are dropped and counted, and the thread goes on with another loop.
    """

    def __init__(self, options: ProcessorOptions) -> None:
        self._processor_options = options
        self._assemble()

    @abstractmethod
    def _make_work(self, log: ThrottledLog) -> Work:
        """What is done with each item; it has done nothing yet."""

    @property
    def exit_timeout(self) -> float:
        """Seconds that the end of the process may wait for what was submitted."""
        return self._processor_options.exit_timeout

    def _assemble(self) -> None:
        """Make what is replaced in the child of a fork."""
        options = self._processor_options
        self._queue = RecordQueue(max_count=options.queue_size, max_bytes=options.queue_bytes, wake_worker=self._wake)
        self._log = ThrottledLog(count=self._queue.record_error)
        self._work: Work | None = None
        """None in the child until it has work: what makes it calls code of the user's, which a hook of a fork must not."""
        self._context = context_of_worker()
        self._thread: threading.Thread | None = None
        self._loop: _Loop | None = None
        self._tasks: dict[asyncio.Task[ScoredRecord | Dropped | None], Item] = {}
        self._pause: Deadline | None = None
        self._stopping = threading.Event()
        """What goes wrong from now on is of the end, and no failure."""
        self._logged_drops = self._queue.stats.dropped
        self._is_ticking = False

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
        self._stopping.set()
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
            loop, error = call_guarded(_Loop, threads, self._note_error)
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

    def _tick(self, loop: _Loop, idle: int = 0) -> None:
        """Look at SIGTERM as long as there is work, or was ten seconds ago: exporters may still hold it."""
        call_guarded(self._look_at_sigterm)
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
        if self._stopping.is_set():
            return
        if isinstance(error, OSError) and error.errno in {errno.EMFILE, errno.ENFILE}:
            self._log.count("worker")
            self._log.report("no descriptor", "nothing is scored: %s; see ulimit -n", error.strerror)
        else:
            self._log.failed("worker", error, "the worker")


class _Loop(asyncio.SelectorEventLoop):
    """An event loop that reports trouble to `on_error`: the log lines of asyncio show arguments and messages.

    It is always of this kind, whatever the application's policy would make. What judges do in threads is done in `threads`.
    """

    def __init__(self, threads: DaemonThreads, on_error: Callable[[BaseException], None]) -> None:
        try:
            super().__init__()
        except BaseException:  # no descriptors are left, say: what is half made would print a traceback when it goes
            self._closed = True
            raise

        def report(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
            error = context.get("exception")
            if isinstance(error, BaseException):
                on_error(error)

        self.set_exception_handler(report)
        self.set_default_executor(threads)

    def wind_down(self) -> None:
        """Cancel what is left, give it a moment to end, and close the loop, come what may."""
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        # Judges keep their connections in asynchronous generators, which are closed by this and by nothing else.
        tasks.add(self.create_task(self.shutdown_asyncgens()))
        call_guarded(self.run_until_complete, self.create_task(asyncio.wait(tasks, timeout=_CLEAN_UP)))
        call_guarded(self.close)
