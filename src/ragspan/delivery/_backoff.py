"""How long to wait before the next try."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Backoff:
    """Twice the pause of the try before, up to a limit, with jitter.

    The jitter takes up to a half away, so that many processes do not come back to a backend all at once.
    """

    first: float = 1.0
    """Seconds before the second try."""
    limit: float = 30.0
    """Seconds at most."""
    draw: Callable[[], float] = random.random
    """A number from 0 to 1."""

    def after(self, tries: int, *, limit: float | None = None) -> float:
        """Seconds to wait after this many tries, at least 1; at most `limit`, if that is shorter than usual."""
        longest = self.limit if limit is None else min(limit, self.limit)
        pause = min(self.first * 2.0 ** min(tries - 1, 30), longest)
        return pause * (1 - self.draw() / 2)
