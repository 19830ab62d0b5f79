"""What the engine is built of: guarded calls, deadlines, a critical section, daemon threads, and an event loop in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Concatenate, ParamSpec, TypeVar

from ragspan.turns import give_turn

_T = TypeVar("_T")
_P = ParamSpec("_P")
_Section = TypeVar("_Section", bound="ReentrantCriticalSection")

_RESERVE = 0.1
_MAX_RESERVE = 1.0  # seconds


def call_guarded(call: Callable[..., _T], *args: Any) -> tuple[_T, None] | tuple[None, BaseException]:
    """What the call returned, or what it raised; for code that is not ours.

    `SystemExit` and `KeyboardInterrupt` are caught as well. Python delivers a real Ctrl-C to the main thread only, so in the
    worker these come from the code that it called, and must not stop it.
    """
    try:
        return call(*args), None
    except BaseException as error:  # noqa: BLE001 - the caller counts it; nothing may spread into the worker
        return None, error


class Deadline:
    """The end of a timeout that begins now. A negative timeout is over at once; `math.inf` never is."""

    def __init__(self, timeout: float) -> None:
        self._began = time.monotonic()
        self._timeout = timeout

    def minus_reserve(self) -> Deadline:
        """An earlier end, which leaves a tenth of the time, and a second at most, for sending what is there."""
        left = self.remaining
        return Deadline(left - min(left * _RESERVE, _MAX_RESERVE))

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return time.monotonic() - self._began

    @property
    def remaining(self) -> float:
        """Seconds left, from 0 to what Python's locks can wait for at most."""
        return max(0.0, min(self._timeout - self.elapsed, threading.TIMEOUT_MAX))


is_owned: Callable[[threading.RLock], bool] = type(threading.RLock())._is_owned  # type: ignore[attr-defined]  # noqa: SLF001
"""Whether this thread holds the lock; `threading` itself asks so."""


class ReentrantCriticalSection:
    """A base for what is changed by steps, one at a time over all threads. A step does no I/O and calls no code of the user's.

    A garbage collection or a signal can make Python run other code between any two steps of a function, such as a finaliser
    that submits. With a plain lock that thread would wait for itself; with a reentrant one it would find the data half changed.
    So a step that is called while its own thread is inside another is put off, and runs before the section is left. What a step
    returns, and what it appends to `_later` to be called, is let go of or called outside the lock, by the thread that leaves.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._busy = False
        self._postponed: deque[Callable[[], object]] = deque()
        self._later: deque[Callable[[], object]] = deque()

    @property
    def is_held_here(self) -> bool:
        """Whether this thread is inside: then all others wait for it, and it can wait for none of them."""
        return is_owned(self._lock)


def step(method: Callable[Concatenate[_Section, _P], _T]) -> Callable[Concatenate[_Section, _P], _T | None]:
    """Make a method a step. It returns None if it had to be put off."""

    def run(self: _Section, /, *args: _P.args, **kwargs: _P.kwargs) -> _T | None:
        call: Callable[[], object] = functools.partial(method, self, *args, **kwargs)
        kept: list[Any] = []
        with self._lock:
            if self._busy:
                self._postponed.append(call)
                return None
            while True:
                self._busy = True
                try:
                    kept.append(call())
                finally:
                    self._busy = False
                if not self._postponed:
                    break
                kept.append(call := self._postponed.popleft())
        while self._later and not is_owned(self._lock):
            with contextlib.suppress(IndexError):  # another thread took it
                self._later.popleft()()
        return kept[0]  # type: ignore[no-any-return]

    functools.update_wrapper(run, method)
    return run


class DaemonThreads(ThreadPoolExecutor):
    """At most `limit` daemon threads, each started when a call finds none idle; they take calls for as long as Python runs.

    The interpreter's end waits for the pools of `concurrent.futures`, so one call that hangs in them keeps the process from
    ending. This is an executor by name only, because asyncio takes nothing else as a loop's default one.
    """

    def __init__(self, limit: int, *, name: str) -> None:
        super().__init__(max_workers=limit)
        self._limit = limit
        self.name = name
        self._changed = threading.Condition()
        self._calls: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._alive = self._idle = 0
        self._closed = False

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """The future of `fn(*args, **kwargs)`; it fails if this is shut down, or has no thread and can start none."""
        future: Future[_T] = Future()
        with self._changed:
            # What is cancelled leaves the queue, where it comes first: what hangs cannot make it grow with every later call.
            while self._calls and self._calls[0][0].cancelled():
                self._calls.popleft()
            if self._closed:
                future.set_exception(RuntimeError("these threads have been shut down"))
                return future
            self._calls.append((future, functools.partial(fn, *args, **kwargs)))
            needs_thread = len(self._calls) > self._idle and self._alive < self._limit
            self._alive += needs_thread
            self._changed.notify()
        if needs_thread:
            _, error = call_guarded(threading.Thread(target=self._serve, name=self.name, daemon=True).start)
            if error is not None:
                with self._changed:
                    self._alive -= 1
                    failed, self._calls = ([], self._calls) if self._alive else ([*self._calls], deque())
                for waiting, _ in failed:
                    if waiting.set_running_or_notify_cancel():
                        waiting.set_exception(RuntimeError("no thread can be started"))
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002 - the base's signature
        """Let idle threads end now and the others after the calls that wait. Never waits."""
        with self._changed:
            self._closed = True
            for future, _ in self._calls if cancel_futures else ():
                future.cancel()
            self._changed.notify_all()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                self._changed.wait_for(lambda: self._calls or self._closed)
                self._idle -= 1
                if not self._calls:
                    self._alive -= 1
                    return
                future, call = self._calls.popleft()
            give_turn()
            if future.set_running_or_notify_cancel():
                result, error = call_guarded(call)  # an exit that is raised here is the caller's, too
                if error is None:
                    future.set_result(result)
                else:
                    future.set_exception(error)
                del result, error
            del future, call  # a thread that waits for the next one keeps nothing of the last


def run_in_loop(call: Callable[..., Coroutine[Any, Any, _T]], *args: object) -> _T:
    """What the coroutine returns, run in an event loop of this thread's. What raises, Ctrl-C as well, ends all tasks there.

    The threads of gevent are one thread, in which the worker's loop runs, and Python has one loop at a time in a thread. What
    computes and waits for nothing needs none.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        loop = asyncio.SelectorEventLoop()
        try:
            return loop.run_until_complete(call(*args))
        except BaseException:  # Ctrl-C as well, which comes wherever the thread is
            for task in (left := asyncio.all_tasks(loop)):
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))
            raise
        finally:
            loop.close()
    coroutine = call(*args)
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # what it returns
    coroutine.close()
    raise RuntimeError("a metric that waits cannot be run in a thread of gevent: set RAGSPAN_JUDGING=helper")


def outside_loop(work: Callable[[], _T], stop: Callable[[], None] = lambda: None) -> _T:
    """Call what runs an event loop, in a thread of its own where one runs in this thread already; `stop` is called on Ctrl-C there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, "ragspan-evaluate") as pool:
        try:
            return pool.submit(contextvars.copy_context().run, work).result()
        except KeyboardInterrupt:
            stop()
            raise
