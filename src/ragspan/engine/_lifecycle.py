"""Forks and the end of the process.

Guarantees:
- The hooks last as long as the process, and hold engines weakly: they keep none alive.
- At its end the engines that had work get their `exit_timeout` to finish it, all at the same time and once in all: first
  when `threading` ends, with everything still working, and with what is left when the `atexit` handlers run. Other
  threads may serve, and submit, in between.
- Children that end by `os._exit` finish their work as well where their library has a hook of its own: multiprocessing,
  billiard, Celery. None of them is imported for that. What is left when the time is up is counted, and said in the log.
- The child of a fork starts with fresh engines, and leaves alone what it inherits of the parent's work.
"""

from __future__ import annotations

import atexit
import contextlib
import math
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ragspan.engine._boundary import attempt
from ragspan.engine._deadline import Deadline
from ragspan.engine._termination import watch_termination

_T = TypeVar("_T")


class EndsWithProcess(Protocol):
    """What the end of the process asks of an engine."""

    @property
    def exit_timeout(self) -> float: ...

    def flush(self, timeout: float) -> bool: ...

    def shutdown(self, timeout: float) -> object: ...


# Dictionaries of which only single operations are used: no lock, which a fork could leave held.
_started: dict[weakref.ref[EndsWithProcess], None] = {}
_forking: dict[weakref.ref[Any], Callable[[Any], None]] = {}
_inherited: list[object] = []


def watch_forks(engine: _T, start_afresh: Callable[[_T], None]) -> None:
    """Call `start_afresh(engine)` in every child of a fork, for as long as the engine lives."""
    _forking[weakref.ref(engine, lambda reference: _forking.pop(reference, None))] = start_afresh


def keep_inherited(work: object) -> None:
    """Keep what a fork left of the parent's work for good.

    Letting go of it would end the parent's unfinished calls here, on connections that both processes share; and closing
    its event loop would make the parent's deaf, for they share a selector, too.
    """
    _inherited.append(work)


def watch_exit(engine: EndsWithProcess) -> None:
    """Let the engine, which gets its first work in this process, finish its work at the end of it."""
    _started[weakref.ref(engine, lambda reference: _started.pop(reference, None))] = None
    _exit.register()


def watch_sigterm() -> None:
    """Let engines that have work finish it before SIGTERM ends this process."""
    watch_termination(_exit.drain)


class _Exit:
    """The hooks at the end of the process, and the time that they share."""

    def __init__(self) -> None:
        self._is_registered = False
        self._billiard_hook: object = None
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
        self._register_with_celery()

    def _register_with_celery(self) -> None:
        """The children of a Celery worker tell their end by a signal only, other processes of billiard run its finalizers."""
        signals, billiard = sys.modules.get("celery.signals"), sys.modules.get("billiard.util")
        with contextlib.suppress(AttributeError):  # still being imported, or another release
            if signals is not None:
                signals.worker_process_shutdown.connect(lambda **_: self.finish(), weak=False, dispatch_uid="ragspan")
            if billiard is not None and self._billiard_hook is None:
                self._billiard_hook = billiard.Finalize(None, self.finish, exitpriority=0)

    def begin_anew_in_child(self) -> None:
        self._billiard_hook = None  # which is for one process only

    def drain(self) -> None:
        waited = Deadline(math.inf)
        for engine in _engines():
            is_out, _ = attempt(engine.flush, engine.exit_timeout - waited.elapsed)
            if not is_out and _ends_without_atexit():
                attempt(engine.shutdown, engine.exit_timeout - waited.elapsed)
        self._spent = waited.elapsed

    def finish(self) -> None:
        waited = Deadline(math.inf)
        for engine in _engines():
            attempt(engine.shutdown, engine.exit_timeout - self._spent - waited.elapsed)


def _ends_without_atexit() -> bool:
    """True in the children of multiprocessing, before Python 3.13."""
    process = sys.modules.get("multiprocessing.process")
    return sys.version_info < (3, 13) and process is not None and process.parent_process() is not None


def _engines() -> list[EndsWithProcess]:
    return [engine for reference in list(_started) if (engine := reference()) is not None]


def _start_afresh_in_child() -> None:
    _started.clear()
    _exit.begin_anew_in_child()
    for reference, start_afresh in list(_forking.items()):
        engine = reference()
        if engine is not None:
            attempt(start_afresh, engine)  # the others have to start afresh whatever becomes of this one


_exit = _Exit()

if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(after_in_child=_start_afresh_in_child)
