"""How much of a timeout is left, by a clock that cannot be set."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_RESERVE = 0.1
_MAX_RESERVE = 1.0  # seconds


class Deadline:
    """The end of a timeout that begins now. A negative timeout is over at once; `math.inf` never is."""

    def __init__(self, timeout: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._timeout = timeout

    def less_reserve(self) -> Deadline:
        """An earlier end, which leaves a tenth of the time, and a second at most, for sending what is there."""
        left = self.remaining
        return Deadline(left - min(left * _RESERVE, _MAX_RESERVE), clock=self._clock)

    @property
    def elapsed(self) -> float:
        """Seconds since it began."""
        return self._clock() - self._began

    @property
    def remaining(self) -> float:
        """Seconds left, from 0 to what Python's locks can wait for at most."""
        return max(0.0, min(self._timeout - self.elapsed, threading.TIMEOUT_MAX))
