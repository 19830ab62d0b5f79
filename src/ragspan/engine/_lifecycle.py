"""The end of the process.

Guarantees:
- The hooks last as long as the process, and hold engines weakly: they keep none alive.
- At its end the engines that had work get their `exit_timeout` to finish it, all at the same time and once in all: first
  when `threading` ends, with everything still working, and with what is left when the `atexit` handlers run. Other
  threads may serve, and submit, in between.
- Children that end by `os._exit` finish their work as well where their library has a hook of its own: multiprocessing,
  Celery. Neither is imported for that. What is left when the time is up is counted and logged.

At SIGTERM finished answers are scored and exported before the process ends:
- A handler that the application has set is called first and decides what happens, as it would without ragspan.
- Where there is none the process ends by the signal, as it would without ragspan, when the engines are done or their
  `exit_timeout` is over.
- uvicorn handles the signal, and at its end raises it again for the system, which runs no exit hook. In that thread the
  signal is then held back, so that the interpreter ends normally and its exit hooks run.
- Only the main thread can set a handler: an engine that is made elsewhere leaves the signal alone.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from ragspan.engine._threads import Deadline, call_guarded
from ragspan.forks import watch_forks

if TYPE_CHECKING:
    from ragspan.engine._background import BackgroundProcessor

_RAISES_AGAIN = "uvicorn"

# A dictionary of which only single operations are used: no lock, which a fork could leave held.
_started: dict[weakref.ref[BackgroundProcessor], None] = {}


def watch_exit(engine: BackgroundProcessor) -> None:
    """Let the engine, which gets its first work in this process, finish its work at the end of it."""
    _started[weakref.ref(engine, lambda reference: _started.pop(reference, None))] = None
    _exit.register()


class _Exit:
    """The hooks at the end of the process, and the time that they share."""

    def __init__(self) -> None:
        self._is_registered = False
        self._spent = 0.0

    def register(self) -> None:
        # Handlers run in reverse order. A TracerProvider that was made in the meantime has registered one of its own,
        # which must come after ours: move ours to the end again.
        atexit.unregister(self.finish)
        atexit.register(self.finish)
        if not self._is_registered:
            self._is_registered = True
            # Private, but the only hook that comes before pools and threads are closed, and the only one at all in the
            # children of multiprocessing; where it is missing, or too late, `atexit` has to do.
            # These hooks run in reverse order as well, and that of `concurrent.futures` closes all pools: be after it.
            import concurrent.futures.thread  # noqa: F401

            with contextlib.suppress(AttributeError, RuntimeError):
                threading._register_atexit(self.drain)  # type: ignore[attr-defined]  # noqa: SLF001
        signals = sys.modules.get("celery.signals")
        if signals is not None:  # the children of a Celery worker tell their end by this signal only
            with contextlib.suppress(AttributeError):  # still being imported, or another release
                signals.worker_process_shutdown.connect(lambda **_: self.finish(), weak=False, dispatch_uid="ragspan")

    def drain(self) -> None:
        waited = Deadline(math.inf)
        for engine in _engines():
            is_out, _ = call_guarded(engine.flush, engine.exit_timeout - waited.elapsed)
            if not is_out and _ends_without_atexit():
                call_guarded(engine.shutdown, engine.exit_timeout - waited.elapsed)
        self._spent = waited.elapsed

    def finish(self) -> None:
        waited = Deadline(math.inf)
        for engine in _engines():
            call_guarded(engine.shutdown, engine.exit_timeout - self._spent - waited.elapsed)


def _ends_without_atexit() -> bool:
    """True in the children of multiprocessing, before Python 3.13."""
    process = sys.modules.get("multiprocessing.process")
    return sys.version_info < (3, 13) and process is not None and process.parent_process() is not None


def _engines() -> list[BackgroundProcessor]:
    return [engine for reference in list(_started) if (engine := reference()) is not None]


_exit = _Exit()
watch_forks(_exit, lambda _: _started.clear())

_handler_before: Callable[[int, FrameType | None], Any] | int | None = None
"""Of SIGTERM, once ours is set; the child of a fork inherits both."""


def watch_sigterm() -> None:
    """Let engines that have work finish it, within their own time, before SIGTERM ends this process.

    Does nothing where the signal is ignored, or handled by something that is not Python.
    """
    global _handler_before  # noqa: PLW0603 - a process has one handler
    is_main_thread = threading.current_thread() is threading.main_thread()
    if os.name != "posix" or _handler_before is not None or not is_main_thread:
        return
    before = signal.getsignal(signal.SIGTERM)
    if before is not None and before is not signal.SIG_IGN:
        _handler_before = before
        signal.signal(signal.SIGTERM, _handle_sigterm)


def _handle_sigterm(number: int, frame: FrameType | None) -> None:
    if callable(_handler_before):
        _handler_before(number, frame)
        if type(getattr(_handler_before, "__self__", None)).__module__.startswith(_RAISES_AGAIN):
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    else:
        _exit.drain()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
        signal.signal(number, _handle_sigterm)  # the first process of a container survives its own signals
