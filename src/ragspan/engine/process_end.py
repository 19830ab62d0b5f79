"""The end of the process.

Guarantees:
- At its end the engines that had work get their `exit_timeout` to finish it, all at the same time and once in all: first
  when `threading` ends, with everything still working, and with what is left when the `atexit` handlers run. Other
  threads may serve, and submit, in between.
- What was submitted before the end begins, or before SIGTERM, is not pushed out by what comes after. When the time is up, engines are
  closed, and one line of the log says how many answers count as `shutdown`: nothing is lost without a word.
- Children that end by `os._exit` finish their work as well where their library has a hook of its own: multiprocessing,
  Celery. Neither is imported for that. What is left when the time is up is counted and logged.
- At SIGTERM, too: see `sigterm`.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import sys
import threading
import weakref
from typing import Protocol

from ragspan.engine.sigterm import SigtermWatch
from ragspan.engine.threads import Deadline, call_guarded
from ragspan.forks import watch_forks
from ragspan.throttled_log import ThrottledLog


class Drains(Protocol):
    """An engine or a sink, which can be asked to finish its work; see `BackgroundProcessor`."""

    is_ending: bool

    @property
    def exit_timeout(self) -> float: ...

    @property
    def can_wait(self) -> bool: ...

    def flush(self, timeout: float) -> bool: ...

    def end(self, timeout: float) -> object: ...

    def tell_end(self) -> None: ...


_FIRST = 1  # the first process of a container: it survives its own signals, and scores on

# A dictionary of which only single operations are used: no lock, which a fork could leave held.
_started: dict[weakref.ref[Drains], None] = {}


def watch_exit(engine: Drains) -> None:
    """Let the engine, which gets its first work in this process, finish its work at the end of it."""
    _started[weakref.ref(engine, lambda reference: _started.pop(reference, None))] = None
    _exit.register()


def is_over() -> bool:
    """Whether the process has ended as far as engines can tell: what is submitted now is not worked on."""
    return _exit.is_over


def watch_sigterm(log: ThrottledLog | None = None) -> None:
    """Let SIGTERM wait for engines that have work; called again whenever there is some, from any thread.

    Args:
        log: where to say that it will not wait.
    """
    _sigterm.look(log)


class _Exit:
    """The hooks at the end of the process, and the time that they share."""

    def __init__(self) -> None:
        self._is_registered = False
        self._spent = 0.0
        atexit.register(self._tell)
        self.is_over = False

    def register(self) -> None:
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
                threading._register_atexit(self.drain)  # type: ignore[attr-defined]  # noqa: SLF001
        signals = sys.modules.get("celery.signals")
        if signals is not None:  # the children of a Celery worker tell their end by this signal only
            with contextlib.suppress(AttributeError):  # still being imported, or another release
                signals.worker_process_shutdown.connect(self._finish_and_tell, weak=False, dispatch_uid="ragspan")

    def drain(self) -> None:
        """Where the end begins. A SIGTERM that comes now, or again, waits as well. Threads that are not daemons may go on for long."""
        if _engines():
            _sigterm.look()
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
        waited = Deadline(math.inf)
        engines = _engines()
        for engine in engines:
            engine.is_ending = True
        for engine in engines:
            call_guarded(engine.flush, engine.exit_timeout - waited.elapsed)
        for engine in engines:
            engine.is_ending = False
        self._spent = waited.elapsed

    def _finish(self) -> None:
        """Close the engines. What came during the flush is finished in the time that is left, and given up and counted then."""
        waited = Deadline(math.inf)
        for engine in _engines():
            engine.is_ending = True
        for engine in _engines():
            call_guarded(engine.end, engine.exit_timeout - self._spent - waited.elapsed)

    def _finish_and_tell(self, **_: object) -> None:
        self._finish()
        self._tell()

    def _tell(self) -> None:
        """The last that engines do."""
        self.is_over = True
        for engine in _engines():
            call_guarded(engine.tell_end)


def is_multiprocessing_child() -> bool:
    process = sys.modules.get("multiprocessing.process")
    return process is not None and process.parent_process() is not None


def _engines() -> list[Drains]:
    return [engine for reference in list(_started) if (engine := reference()) is not None]


def _begin_in_child(own: _Exit) -> None:
    _started.clear()
    own._spent = 0.0  # noqa: SLF001 - of this module
    own.is_over = False


_exit = _Exit()
watch_forks(_exit, _begin_in_child)
_sigterm = SigtermWatch(_exit.end_by_signal)
