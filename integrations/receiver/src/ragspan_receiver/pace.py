"""How long one answer takes from its trace to the sink, so that no more is taken than can be handed on when the process ends.

Guarantees:
- It is careful: what was slow counts at once, what was fast little by little, and what was measured some time ago not at all.
- Only time in which there always was something to do counts, and only if it was long enough to say something.

One thread notes; any thread may read.
"""

from __future__ import annotations

from collections.abc import Callable

_FIRST = 0.004  # seconds, where nothing was measured lately; one takes a millisecond, or four where this process has a quarter of a core
_SOME = 100  # answers that are measured at a time; a process that has been idle gets more of the machine for a moment
_NEWEST = 0.2  # the weight of what was measured last, if it was fast
_FRESH = 10.0  # seconds


class Pace:
    """Seconds that an answer takes.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._measured = _FIRST
        self._measured_at = clock()
        self._begin: tuple[int, float] | None = None
        """How many were done when this measurement began, and when that was."""

    @property
    def seconds(self) -> float:
        """For one answer; more than 0."""
        return self._measured if self._clock() - self._measured_at <= _FRESH else _FIRST

    def note(self, done: int, *, is_busy: bool) -> None:
        """Note how many answers are done by now, and whether there is more to do."""
        now = self._clock()
        if not is_busy:
            self._begin = None
        elif self._begin is None:
            self._begin = done, now
        elif (number := done - self._begin[0]) >= _SOME:
            latest, usual = (now - self._begin[1]) / number, self.seconds
            self._measured = max(latest, usual + (latest - usual) * _NEWEST)
            self._measured_at, self._begin = now, (done, now)
