"""A sum for each window of 24 hours, the first of which begins with the first spending.

Not a bucket: one that starts full and is filled again by time would let twice the sum through on the first day.

Guarantees:
- What is taken in a window never exceeds the sum; what is used may, by as much as `settle` adds to it.
- A clock that goes backwards begins no window. What was taken in one window and is settled in a later one can make that
  one poorer, never richer.

It is not safe for threads by itself: its steps belong inside a critical section.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_WINDOW = 24 * 60 * 60.0  # seconds


class DailySum:
    """An amount that may be spent in each window.

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
