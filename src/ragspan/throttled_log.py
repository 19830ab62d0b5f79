"""The log, of which no line contains text of users or documents."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

_INTERVAL = 60.0  # seconds


def log_line(level: int, message: str, *args: object) -> None:
    """Log a line. Handlers and filters are the application's: what they raise stops nobody here."""
    with contextlib.suppress(Exception):
        logger = logging.getLogger("ragspan")
        # Where the application has no handler, Python prints the message alone.
        logger.log(level, message if logger.hasHandlers() else f"ragspan: {message}", *args)


class ThrottledLog:
    """For warnings that every record may cause.

    Do not use it in `submit`: the application's log handlers do I/O.

    Args:
        count: counts the errors, by their place.
    """

    def __init__(self, *, count: Callable[[str], object] = str, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = count
        self._clock = clock
        self._last: dict[str, tuple[float, int]] = {}
        """By kind: when its last line was logged, and how many were not since."""

    def failed(self, place: str, error: object, who: str | None = None) -> None:
        """Count an error by its place, and log its type and who it happened to, or the place."""
        self.count(place)
        self.report(place, "%s failed with %s", who or place, type(error).__name__)

    def report(self, kind: str, message: str, *args: object) -> None:
        """Log the line, or count it, and log the count with the next line of this kind."""
        now = self._clock()
        last, suppressed = self._last.get(kind, (None, 0))
        # There is no lock, so two threads may both log a line at the same time. That does no harm.
        if last is not None and now - last < _INTERVAL:
            self._last[kind] = last, suppressed + 1
            return
        self._last[kind] = now, 0
        if suppressed:
            message, args = f"{message} (and %d more since the last such line)", (*args, suppressed)
        log_line(logging.WARNING, message, *args)
