"""Turns for other threads, where a judge computes in a thread of the application.

Python lets a thread compute for five milliseconds before another one gets its turn, which a server's slowest responses show.
"""

from __future__ import annotations

import time

_PAUSE = 0.00001
"""Seconds that a turn takes at least: a pause of none lets this thread go on before another has woken."""
_LONGEST = 0.0002
"""Seconds after which others get a turn, at the next place where one may be given."""
_last: list[float] = []
"""When the last turn ended; empty until turns are given in this process."""


def give_turns() -> None:
    """From now on others get turns in this process."""
    _last[:] = [0.0]


def turn() -> None:
    """A place where others may get a turn; it costs nothing in a process of its own."""
    if _last and time.monotonic() - _last[0] > _LONGEST:
        time.sleep(_PAUSE)
        _last[0] = time.monotonic()
