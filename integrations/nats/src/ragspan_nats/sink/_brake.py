"""How long publishing rests while the stream takes nothing: longer each time, and the same for all that wait."""

from __future__ import annotations

import time
from collections.abc import Callable

_SHORTEST = 0.25  # seconds
_LONGEST = 10.0


class Brake:
    """A pause that grows with every refusal and ends with the first success."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause = 0.0
        self._until = 0.0

    @property
    def remaining(self) -> float:
        """Seconds left of the pause; 0 without one."""
        return max(0.0, self._until - self._clock()) if self._until else 0.0

    def press(self) -> None:
        """Something was refused. What is refused during a pause was sent before it, and makes it no longer."""
        now = self._clock()
        if now < self._until:
            return
        self._pause = min(max(_SHORTEST, 2 * self._pause), _LONGEST)
        self._until = now + self._pause

    def release(self) -> None:
        """Something was taken."""
        self._pause = self._until = 0.0
