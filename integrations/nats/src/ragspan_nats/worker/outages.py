"""How a worker takes records up while the judge's service is away: one at a time, and ever more rarely.

A record that is taken up then uses up a delivery for nothing. So what fails together counts as one failure, after which nothing
is taken up for a while; then a single record shows whether the service is back. As soon as one is scored, all is as usual.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ragspan_nats.worker.delivery import Verdict

_PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)  # seconds, by how many failures came one after another


class Outages:
    """Knows of the outage that there is.

    Args:
        clock: seconds that do not go backwards.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._until = 0.0

    def note(self, verdict: Verdict) -> None:
        """A delivery has ended so."""
        if verdict.ending == "acknowledge":
            self._failures, self._until = 0, 0.0
        elif verdict.reason == "judge_outage" and self._clock() >= self._until:
            self._until = self._clock() + _PAUSES[min(self._failures, len(_PAUSES) - 1)]
            self._failures += 1

    def limit(self, concurrency: int) -> int:
        """Records that may be scored at a time: usually `concurrency`."""
        if self._clock() < self._until:
            return 0
        return 1 if self._failures else concurrency
