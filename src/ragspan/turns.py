"""Turns for other threads where ragspan computes in a process that answers requests.

Python lets a thread compute for five milliseconds before another one gets its turn. A server with little time left would
wait that long at each of its reads and writes: short stretches let requests come first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import TypeVar

_T = TypeVar("_T")

_PAUSE = 0.0001
"""Seconds that a turn takes at least: after a shorter one this thread often goes on before another has woken."""
_LONGEST = 0.0002
"""Seconds of computing after which others get a turn, at the next place where one may be given."""
_process = SimpleNamespace(has_worker=False)  # no lock, which a fork could leave held
_own = threading.local()
"""What each thread had computed when its last turn ended, and when it can have computed enough for the next one."""


def enable_turns() -> None:
    """From now on others get turns in this process: an engine's worker runs in it."""
    _process.has_worker = True


def with_turns(things: Iterable[_T]) -> Iterable[_T]:
    """The same things; others may get a turn before each."""
    return _with_turns(things) if _process.has_worker else things


def _with_turns(things: Iterable[_T]) -> Iterator[_T]:
    for thing in things:
        give_turn()
        yield thing


def give_turn() -> None:
    """A place where others may get a turn; nothing happens in a process without a worker."""
    if not _process.has_worker or time.perf_counter() < getattr(_own, "earliest", 0.0):
        return
    left = _LONGEST - time.thread_time() + getattr(_own, "computed", 0.0)
    if left < 0:
        time.sleep(_PAUSE)
        _own.computed, left = time.thread_time(), _LONGEST
    _own.earliest = time.perf_counter() + left
