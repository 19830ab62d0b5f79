"""A token bucket: lets through a rate on average, and a capacity at once.

Guarantees:
- Over any time T no more than capacity + rate * T is taken, less what is given back; what `settle` charges beyond what
  was taken is owed, and nothing is let through until time has paid it.
- Each moment is credited once. A clock that goes backwards credits nothing until it is where it was before, so that no
  moment counts twice.

It is not safe for threads by itself: its steps belong inside a critical section.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class TokenBucket:
    """Starts full.

    Args:
        rate_per_second: what time adds, more than 0.
        capacity: what fits in, more than 0.
        clock: seconds that do not go backwards.
    """

    __slots__ = ("_capacity", "_clock", "_credited_until", "_level", "_rate")

    def __init__(self, rate_per_second: float, capacity: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate_per_second
        self._capacity = capacity
        self._clock = clock
        self._level = capacity
        self._credited_until = clock()

    @property
    def level(self) -> float:
        """What can be taken now; negative while something is owed."""
        now = self._clock()
        passed = now - self._credited_until
        if passed > 0:
            self._level = min(self._capacity, self._level + passed * self._rate)
            self._credited_until = now
        return self._level

    def take(self, amount: float = 1.0) -> bool:
        """Take all of the amount, 0 or more, or nothing."""
        if amount > self.level:
            return False
        self._level -= amount
        return True

    def give_back(self, amount: float) -> None:
        """Put back what was taken and not used; what does not fit in is lost."""
        self._level = min(self._capacity, self.level + amount)

    def settle(self, taken: float, used: float) -> None:
        """Correct what was taken to what turned out to be used, down into debt if need be."""
        self.give_back(taken - used)
