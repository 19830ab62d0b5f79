"""How much of a timeout is left, by a clock that cannot be set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Deadline:
    """The end of a timeout that begins now. A negative timeout is over at once; `math.inf` never is."""

    def __init__(self, timeout: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._timeout = timeout

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return self._clock() - self._began

    @property
    def remaining(self) -> float:
        """Seconds left, from 0 to what Python's locks can wait for at most."""
        return max(0.0, min(self._timeout - self.elapsed, threading.TIMEOUT_MAX))
