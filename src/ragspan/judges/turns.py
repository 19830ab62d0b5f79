"""Turns for the application's other threads, where a judge computes in one of them (`RAGSPAN_JUDGING=thread`).

Python takes the interpreter from a thread that computes only every five milliseconds, and requests wait for that many times each.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Iterator

_STRETCH = 0.0005  # seconds that a judge computes without a pause
_PAUSE = 0.00001  # long enough that another thread that waits gets the interpreter


class _Own(threading.local):
    until = math.inf


_own = _Own()


@contextlib.contextmanager
def giving_turns() -> Iterator[None]:
    """Let `give_turn` pause in this thread."""
    _own.until = time.perf_counter() + _STRETCH
    try:
        yield
    finally:
        _own.until = math.inf


def give_turn() -> None:
    """Let other threads run, if this one has computed for half a millisecond. A judge that computes calls it in its loops."""
    if _own.until < time.perf_counter():
        time.sleep(_PAUSE)
        _own.until = time.perf_counter() + _STRETCH
