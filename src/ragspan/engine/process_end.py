"""The end of the process, by itself or by SIGTERM: what was answered is scored and exported before it.

At its end the engines that had work get their `exit_timeout`, all at the same time and once in all: first when `threading` ends,
with everything still working, and with what is left when the `atexit` handlers run. docs/environments.md has all cases.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import math
import os
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ragspan.engine.threads import Deadline, call_guarded
from ragspan.process import watch_forks
from ragspan.throttled_log import ThrottledLog

_FIRST = 1  # the first process of a container: it survives its own signals, and scores on
_PATIENCE = 2.0  # seconds for the main thread to run Python code
_MISSED = 0.2  # seconds for it to begin the handler


# Of `BackgroundProcessor`s. Only single operations of the dictionary are used: no lock, which a fork could leave held.
_started: dict[weakref.ref[Any], None] = {}


def is_multiprocessing_child() -> bool:
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _engines() -> list[Any]:
    return [engine for reference in list(_started) if (engine := reference()) is not None]


class _Exit:
    """The hooks at the end of the process, and the time that they share."""

    def __init__(self) -> None:
        self._is_registered = False
        self._spent = 0.0
        atexit.register(self._tell)
        self.is_over = False
        """Whether the process has ended as far as engines can tell: what is submitted now is not worked on."""

    def watch(self, engine: object) -> None:
        """Let the engine, which gets its first work in this process, finish its work at the end of it."""
        _started[weakref.ref(engine, lambda reference: _started.pop(reference, None))] = None
        # Handlers run in reverse order. A TracerProvider that was made in the meantime has registered one of its own,
        # which must come after ours: move ours to the end again.
        atexit.unregister(self._finish)
        atexit.register(self._finish)
        if not self._is_registered:
            self._is_registered = True
            # Private, but the only hook that comes before pools and threads are closed, and the only one at all in the
            # children of multiprocessing; where it is missing, or too late, `atexit` has to do.
            # These hooks run in reverse order as well, and that of `concurrent.futures` closes all pools: be after it.
            import concurrent.futures.thread  # noqa: F401

            with contextlib.suppress(AttributeError, RuntimeError):
                threading._register_atexit(self._drain)  # type: ignore[attr-defined]  # noqa: SLF001
        signals = sys.modules.get("celery.signals")
        if signals is not None:  # the children of a Celery worker tell their end by this signal only
            with contextlib.suppress(AttributeError):  # still being imported, or another release
                signals.worker_process_shutdown.connect(self._finish_and_tell, weak=False, dispatch_uid="ragspan")

    def _drain(self) -> None:
        """Where the end begins. A SIGTERM that comes now, or again, waits as well. Threads that are not daemons may go on for long."""
        if _engines():
            sigterm.look()
            self._flush()
            if sys.version_info < (3, 13) and is_multiprocessing_child():  # which runs no `atexit`
                self._finish_and_tell()

    def end_by_signal(self) -> bool:
        """False, and nothing is done, if the signal interrupted what this would have to wait for."""
        if not all(engine.can_wait for engine in _engines()):
            return False
        self._flush() if os.getpid() == _FIRST else self._finish_and_tell()
        return True

    def _flush(self) -> None:
        """What was submitted before this is finished, and nothing that comes meanwhile pushes it out."""
        waited, engines = Deadline(math.inf), _engines()
        for engine in engines:
            engine.keep_queued(is_ending=True)
        for engine in engines:
            call_guarded(engine.flush, engine.exit_timeout - waited.elapsed)
        for engine in engines:
            engine.keep_queued(is_ending=False)
        self._spent = waited.elapsed

    def _finish(self) -> None:
        """Close the engines. What came during the flush is finished in the time that is left, and given up and counted then."""
        waited = Deadline(math.inf)
        for engine in _engines():
            engine.keep_queued(is_ending=True)
        for engine in _engines():
            call_guarded(engine.end, engine.exit_timeout - self._spent - waited.elapsed)

    def _finish_and_tell(self, **_: object) -> None:
        self._finish()
        self._tell()

    def _tell(self) -> None:
        """The last that engines do."""
        self.is_over = True
        for engine in _engines():
            call_guarded(engine.report_losses)

    def begin_in_child(self) -> None:
        """Of a fork: the engines are the parent's until they have work."""
        _started.clear()
        self._spent = 0.0
        self.is_over = False


class _Sigterm:
    """Where nobody handles SIGTERM, it waits for the engines, and the process then ends by it, as it would without ragspan.

    Handlers of the application and of servers stay and decide. They come and go: a server resets them in the child of a fork, a
    loop that closes takes its own along. So engines look again for as long as they have work. Nothing is changed where the
    signal is ignored, or handled by something that is not Python.
    """

    def __init__(self) -> None:
        self._has_begun = self._is_draining = False
        self._wakeup: tuple[socket.socket, socket.socket] | None = None
        self._waking: threading.Thread | None = None
        self._asked_at: float | None = None
        self._ask_main_thread = _main_thread_call(self._take_over)
        self._raise_again = _main_thread_call(lambda: signal.raise_signal(signal.SIGTERM))
        watch_forks(self, _Sigterm._forget)

    def look(self, log: ThrottledLog | None = None) -> None:
        """See that the signal waits for scores; from any thread. The log is that of an engine that has work.

        Python lets the main thread alone set a handler: that is asked to, and does so as soon as it runs Python code.
        """
        handler = _handler()
        if handler == self._end and log is not None and self._wakeup is not None and self._waking is None:
            self._waking = threading.Thread(
                target=self._wake, args=self._wakeup[:1], name="ragspan-sigterm", daemon=True
            )
            with contextlib.suppress(RuntimeError):  # no thread can be started
                self._waking.start()
        if not _ends_at_once(handler):
            return
        if threading.current_thread() is threading.main_thread():
            self._take_over()
        elif self._asked_at is None:
            self._asked_at = time.monotonic()
            self._ask_main_thread()
        elif log is not None and time.monotonic() - self._asked_at > _PATIENCE:
            log.report(
                "sigterm",
                "SIGTERM will end this process without its last scores: the main thread waits in a call that runs no Python "
                "code. Call ragspan.configure(), or make the engine, in the main thread before that",
            )

    def _take_over(self) -> None:
        """Set the handler; and have Python write each signal to a socket, unless others hear of them, or threads are greenlets."""
        self._asked_at = None
        handler = _handler()
        if handler is not signal.SIG_DFL:
            if _ends_at_once(handler):
                server = handler.__self__
                server._captured_signals = _RaisedAgain(server._captured_signals, self._take_over)  # noqa: SLF001
            return
        with contextlib.suppress(ValueError):  # another interpreter of this process may set none
            signal.signal(signal.SIGTERM, self._end)
            if self._wakeup is not None or "gevent.monkey" in sys.modules or "eventlet.patcher" in sys.modules:
                return
            others = signal.set_wakeup_fd(-1)
            if others >= 0:
                signal.set_wakeup_fd(others)
                return
            self._wakeup = socket.socketpair()
            self._wakeup[1].settimeout(0)
            signal.set_wakeup_fd(self._wakeup[1].fileno(), warn_on_full_buffer=False)

    def _wake(self, reader: socket.socket) -> None:
        """Send the signal again to the main thread until the handler has begun.

        Where it comes between two steps of a wait, such as that of a worker of `multiprocessing.Pool` for a lock that `terminate()`
        keeps, Python runs no handler before the wait ends.
        """
        while signal.SIGTERM not in reader.recv(64):
            pass
        time.sleep(_MISSED)
        while not self._has_begun and _handler() == self._end:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            time.sleep(_MISSED)

    def _end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a signal handler's
        self._has_begun = True
        if self._is_draining:  # the signal has come again, and the first one ends the process
            return
        self._is_draining = True
        try:
            is_drained = process_end.end_by_signal()
        finally:
            self._is_draining = False
        if not is_drained and self._raise_again():  # what it interrupted goes on first
            return
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        signal.signal(number, self._end)  # the first process of a container survives its own signals

    def _forget(self) -> None:
        """In the child of a fork, which ends at once, as it would without ragspan, until it has work of its own."""
        self._asked_at = None
        self._has_begun = self._is_draining = False
        if _handler() == self._end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if self._wakeup is not None:
            signal.set_wakeup_fd(-1)
            self._wakeup = self._waking = None


class _RaisedAgain(list[int]):
    """The signals that came to a uvicorn server, which reads them, last first, when it has restored the handlers from before.

    It raises them then: if the handler is the system's, which would end the process at once, ours is set first.
    """

    def __init__(self, signals: list[int], before: Callable[[], None]) -> None:
        super().__init__(signals)
        self._before = before

    def __reversed__(self) -> Iterator[int]:
        self._before()
        return super().__reversed__()


def _handler() -> Any:
    """Of SIGTERM; None where it is not Python's."""
    return signal.getsignal(signal.SIGTERM) if os.name == "posix" else None


def _ends_at_once(handler: Any) -> bool:
    """Whether nothing would wait for scores: the signal goes to the system, now or when uvicorn has ended."""
    if handler is signal.SIG_DFL:
        return True
    server = getattr(sys.modules.get("uvicorn.server"), "Server", None)
    if server is None or not isinstance(owner := getattr(handler, "__self__", None), server):
        return False
    signals = getattr(owner, "_captured_signals", None)  # from 0.29 on; before that none was raised again
    return isinstance(signals, list) and not isinstance(signals, _RaisedAgain)


def _main_thread_call(call: Callable[[], None]) -> Callable[[], bool]:
    """What has the main thread make the call as soon as it runs Python code; it returns False where Python cannot be asked."""

    def run(_: object) -> int:
        with contextlib.suppress(Exception):
            call()
        return 0

    try:
        callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(run)
        add = ctypes.pythonapi.Py_AddPendingCall
    except (AttributeError, OSError, MemoryError):  # PyPy; a system that lets nobody make code
        return lambda: False
    return lambda: bool(add(callback, None) == 0)


process_end = _Exit()
watch_forks(process_end, _Exit.begin_in_child)
sigterm = _Sigterm()
