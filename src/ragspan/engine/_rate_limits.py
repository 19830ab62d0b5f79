"""Limits by the second, the minute and the day.

Neither is safe for threads by itself: their steps belong inside a critical section.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_WINDOW = 24 * 60 * 60.0  # seconds


class TokenBucket:
    """Lets through a rate on average, and a capacity at once. Starts full.

    - Over any time T no more than capacity + rate * T is taken, less what is given back; what `settle` charges beyond what
      was taken is owed, and nothing is let through until time has paid it.
    - Each moment is credited once. A clock that goes backwards credits nothing until it is where it was before.

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


class DailySum:
    """An amount that may be spent in each window of 24 hours, the first of which begins with the first spending.

    Not a bucket: one that starts full and is filled again by time would let twice the amount through on the first day.

    - What is taken in a window never exceeds the amount; what is used may, by as much as `settle` adds to it.
    - A clock that goes backwards begins no window. What was taken in one window and is settled in a later one can make that
      one poorer, never richer.

    Args:
        limit: the amount, more than 0.
        clock: seconds that do not go backwards.
    """

    def __init__(self, limit: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._spent = 0.0
        self._window = 0
        self._began: float | None = None

    @property
    def is_spent(self) -> bool:
        self._end_window_in_time()
        return self._spent >= self._limit

    def take(self, amount: float) -> int | None:
        """Take all of the amount, and return the window's number; None if there is not as much left."""
        self._end_window_in_time()
        if self._spent + amount > self._limit:
            return None
        self._spend(amount)
        return self._window

    def settle(self, window: int, taken: float, used: float) -> None:
        """Correct what was taken in that window to what turned out to be used."""
        self._end_window_in_time()
        if window == self._window or used > taken:
            self._spend(used - taken)

    def _spend(self, amount: float) -> None:
        if self._began is None:
            self._began = self._clock()
        self._spent = max(0.0, self._spent + amount)

    def _end_window_in_time(self) -> None:
        if self._began is not None and self._clock() - self._began >= _WINDOW:
            self._window += 1
            self._spent = 0.0
            self._began = None
