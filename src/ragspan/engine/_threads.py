"""A few daemon threads for calls that may hang, and the event loop of the worker, which uses them.

The pools of `concurrent.futures` are joined when the interpreter ends, so one call that hangs in them keeps the process
from ending, and from `threading`'s exit hooks on they take no calls.

Guarantees:
- The process never waits for these threads, and they take calls for as long as Python runs.
- There are at most `limit` of them, each started when a call finds none idle.
- A call that is cancelled while it waits leaves the line: what hangs cannot make the line grow with every later call.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from ragspan.engine._boundary import attempt

_T = TypeVar("_T")

_CLEAN_UP = 0.5  # seconds that cancelled tasks have to let go of what they hold

_STARTS_NO_THREADS_AT_EXIT = (3, 12, 0) <= sys.version_info[:3] <= (3, 12, 1)
"""Mended in Python 3.12.2 (CPython issue 113964); versions before 3.12 were not affected."""


class DaemonThreads(ThreadPoolExecutor):
    """An executor by name only, because asyncio takes nothing else as a loop's default one; all behaviour is its own."""

    def __init__(self, limit: int, *, name: str) -> None:
        super().__init__(max_workers=limit)
        self._limit = limit
        self._name = name
        self._changed = threading.Condition()
        self._line: deque[_Call] = deque()
        self._alive = 0
        self._idle = 0
        self._closed = False

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """The future of `fn(*args, **kwargs)`.

        Raises:
            RuntimeError: it is shut down, or has no thread and can start none.
        """
        call = _Call(fn, args, kwargs)
        with self._changed:
            if self._closed:
                raise RuntimeError("these threads have been shut down")
            self._line = deque(waiting for waiting in self._line if not waiting.future.cancelled())
            self._line.append(call)
            if len(self._line) <= self._idle:
                self._changed.notify()
            elif self._alive < self._limit and not self._start_thread() and not self._alive:
                self._line.remove(call)
                raise RuntimeError("no thread can be started")
        return call.future

    def prepare_for_exit(self) -> None:
        """Start the first thread before its first call, where Python starts none once the end of the process begins."""
        if not _STARTS_NO_THREADS_AT_EXIT:
            return
        with self._changed:
            if not self._alive and not self._closed:
                self._start_thread()

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - the base's signature
        """Let idle threads end now and the others after the calls in line. Never waits."""
        with self._changed:
            self._closed = True
            while cancel_futures and self._line:
                self._line.popleft().future.cancel()
            self._changed.notify_all()

    def _start_thread(self) -> bool:
        thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # a limit of the system, or the end of the interpreter
            return False
        self._alive += 1
        return True

    def _serve(self) -> None:
        while (call := self._next()) is not None:
            call.run()
            del call  # a thread that waits for the next one keeps nothing of the last

    def _next(self) -> _Call | None:
        with self._changed:
            self._idle += 1
            while not self._line and not self._closed:
                self._changed.wait()
            self._idle -= 1
            if self._line:
                return self._line.popleft()
            self._alive -= 1
            return None


class _Call:
    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.future: Future[Any] = Future()
        self._call = (fn, args, kwargs)

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        fn, args, kwargs = self._call
        del self._call
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - it is the caller's, and an exit raised here must not end the thread
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class WorkerLoop(asyncio.SelectorEventLoop):
    """An event loop that reports trouble itself: the log lines of asyncio show arguments and messages.

    It is always of this kind, whatever the application's event loop policy would make.

    Args:
        threads: for what judges do in threads, such as resolving host names.
        on_error: told of errors in callbacks, and of tasks whose error nobody asked for.
    """

    def __init__(self, *, threads: DaemonThreads, on_error: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._on_error = on_error
        self.set_exception_handler(self._report)
        self.set_default_executor(threads)

    def wind_down(self) -> None:
        """Cancel what is left, give it a moment to end, and close the loop, come what may."""
        left = asyncio.all_tasks(self)

        def ended(task: asyncio.Task[Any]) -> None:
            left.discard(task)
            if not left:
                self.stop()

        for task in tuple(left):
            task.add_done_callback(ended)
            task.cancel()
        # Judges keep their connections in asynchronous generators, which are closed by this and by nothing else.
        closing = self.create_task(self.shutdown_asyncgens())
        left.add(closing)
        closing.add_done_callback(ended)
        self.call_later(_CLEAN_UP, self.stop)
        attempt(self.run_forever)
        attempt(self.close)

    def _report(self, _: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self._on_error(error)
