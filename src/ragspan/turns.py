"""Turns for other threads, where ragspan computes in a process that answers requests.

Python lets a thread compute for five milliseconds before another one gets its turn. A server with little time left would
wait that long at each of its reads and writes: short stretches let requests come first.
"""

from __future__ import annotations

import time

_PAUSE = 0.00001
"""Seconds that a turn takes at least: a pause of none lets this thread go on before another has woken."""
_LONGEST = 0.0002
"""Seconds after which others get a turn, at the next place where one may be given."""
_last: list[float] = []
"""When the last turn ended; empty until turns are given in this process."""


def enable_turns() -> None:
    """From now on others get turns in this process: an engine's worker runs in it."""
    _last[:] = [0.0]


def give_turn() -> None:
    """A place where others may get a turn; nothing happens in a process without a worker."""
    if _last and time.monotonic() - _last[0] > _LONGEST:
        time.sleep(_PAUSE)
        _last[0] = time.monotonic()
