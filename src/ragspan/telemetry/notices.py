"""Warnings that would otherwise come once a record."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

_logger = logging.getLogger("ragspan")


class Notice:
    """A warning in the log of `ragspan`, at most once in `interval` seconds.

    Args:
        message: what is wrong and what to do about it.
        interval: seconds of silence after each warning.
        clock: monotonic, in seconds.
    """

    def __init__(self, message: str, *, interval: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._message = message
        self._interval = interval
        self._clock = clock
        self._silent_until = float("-inf")

    def give(self) -> None:
        now = self._clock()
        if now >= self._silent_until:
            self._silent_until = now + self._interval
            _logger.warning(self._message)
