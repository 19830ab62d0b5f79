"""How long to wait before the next try."""

from __future__ import annotations

import random
from collections.abc import Callable


def backoff(
    tries: int, *, first: float = 1.0, longest: float = 30.0, draw: Callable[[], float] = random.random
) -> float:
    """Seconds to wait after this many tries, at least 1: twice the pause before, up to `longest`.

    Chance takes up to a half away, so that many processes do not come back to a service all at once.
    """
    return min(first * 2.0 ** min(tries - 1, 30), longest) * (1 - draw() / 2)
