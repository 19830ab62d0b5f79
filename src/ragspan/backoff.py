"""How long to wait before the next try, and how long to leave a service alone that refuses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable


def backoff(
    tries: int, *, first: float = 1.0, longest: float = 30.0, draw: Callable[[], float] = random.random
) -> float:
    """Seconds to wait after this many tries, at least 1: twice the pause before, up to `longest`.

    Chance takes up to a half away, so that many processes do not come back to a service all at once.
    """
    return min(first * 2.0 ** min(tries - 1, 30), longest) * (1 - draw() / 2)


class Backoff:
    """The pauses of what asks a service again and again: longer after each refusal, none after a success.

    Args:
        first: seconds of the first pause; chance takes up to a half away.
        longest: seconds of the longest.
        clock: seconds, monotonic.
        draw: chance, from 0 to 1.
    """

    def __init__(
        self,
        *,
        first: float,
        longest: float,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._first, self._longest = first, longest
        self._clock, self._draw = clock, draw
        self.refusals = 0
        """Pauses since the last success."""
        self._until = 0.0

    @property
    def remaining(self) -> float:
        """Seconds that are left of the pause; 0 without one."""
        return max(0.0, self._until - self._clock()) if self.refusals else 0.0

    def refused(self) -> None:
        """The service refused. What it refuses during a pause was asked before it, and makes it no longer."""
        if not self.remaining:
            self.refusals += 1
            pause = backoff(self.refusals, first=self._first, longest=self._longest, draw=self._draw)
            self._until = self._clock() + pause

    def succeeded(self) -> None:
        """The service is there."""
        self.refusals = 0
