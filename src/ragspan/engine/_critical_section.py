"""A critical section that its own thread may run into again.

A garbage collection or a signal can make Python run other code between any two steps of a function: a finaliser that
ends a half-read stream, say, and thereby submits. With a plain lock that thread would wait for itself; with a reentrant
one it would find the data half changed.

Guarantees:
- Steps run one at a time, over all threads.
- A step that is asked for while its own thread is inside another is put off until that one has ended, and then run
  before the section is left. It is never lost and never waits.
- What a step that was put off returns is let go of outside the lock, so that no finaliser of the user's runs under it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")


class ReentrantCriticalSection:
    """Runs steps one at a time. A step does no I/O and calls no code of the user's."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._busy = False
        self._postponed: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()

    @property
    def is_held_here(self) -> bool:
        """Whether this thread is inside: then all others wait for it, and it can wait for none of them."""
        return self._lock._is_owned()  # type: ignore[attr-defined, no-any-return]  # noqa: SLF001 - as `threading` does

    def run(self, step: Callable[..., _T], *args: Any) -> _T | None:
        """What `step(*args)` returns; None if it had to be put off."""
        done: list[object] = []
        with self._lock:
            if self._busy:
                self._postponed.append((step, args))
                return None
            result = self._alone(step, args)
            while self._postponed:
                done.append(self._postponed[0])
                later, its_args = self._postponed.popleft()
                done.append(self._alone(later, its_args))
            return result

    def _alone(self, step: Callable[..., _T], args: tuple[Any, ...]) -> _T:
        self._busy = True
        try:
            return step(*args)
        finally:
            self._busy = False
