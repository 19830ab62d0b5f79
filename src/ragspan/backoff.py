"""Pauses between tries of a service that refuses."""

from __future__ import annotations

import random
import time
from collections.abc import Callable


def backoff(
    tries: int, *, first: float = 1.0, longest: float = 30.0, draw: Callable[[], float] = random.random
) -> float:
    """Seconds to wait after this many tries (at least 1): twice the previous pause, up to `longest`.

    A random part, up to half, is taken off, so that many processes do not return to a service at the same time.
    """
    return min(first * 2.0 ** min(tries - 1, 30), longest) * (1 - draw() / 2)


class Backoff:
    """The pauses between requests to a service, in seconds: longer after each refusal, none after a success."""

    def __init__(self, *, first: float, longest: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._first, self._longest, self._clock = first, longest, clock
        self.refusals = 0
        """Pauses since the last success."""
        self._until = 0.0

    @property
    def remaining(self) -> float:
        """Seconds until the end of the pause; 0 if there is none."""
        return max(0.0, self._until - self._clock()) if self.refusals else 0.0

    def refused(self) -> None:
        """The service refused. During a pause this has no effect, because the request was sent before it."""
        if not self.remaining:
            self.refusals += 1
            self._until = self._clock() + backoff(self.refusals, first=self._first, longest=self._longest)

    def succeeded(self) -> None:
        self.refusals = 0
