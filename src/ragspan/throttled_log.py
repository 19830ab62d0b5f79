"""Log lines about trouble, one a minute at most for each kind.

No line holds text of users or documents: trouble is named by its kind and by the type of an error.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable

_INTERVAL = 60.0  # seconds


class ThrottledLog:
    """For trouble that may come with every record.

    Not for `submit`: the application's log handlers do I/O.
    """

    def __init__(self, name: str = "ragspan", *, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logging.getLogger(name)
        self._clock = clock
        self._last: dict[str, float] = {}
        self._suppressed: dict[str, int] = {}

    def trouble(self, kind: str, message: str, *args: object) -> None:
        """Log the line, or count it and tell the count with the next line of this kind."""
        now = self._clock()
        last = self._last.get(kind)
        # Two threads that come here at once may both write: a line too many is no harm, a lock could be.
        if last is not None and now - last < _INTERVAL:
            self._suppressed[kind] = self._suppressed.get(kind, 0) + 1
            return
        self._last[kind] = now
        suppressed = self._suppressed.pop(kind, 0)
        if suppressed:
            message, args = f"{message} (and %d more since the last such line)", (*args, suppressed)
        with contextlib.suppress(Exception):  # a handler of the application's
            self._logger.warning(message, *args)
