"""Waiting for a judge that is away, or for the next minute of a budget: what a table can do and a request cannot.

A metric that failed because its judge is away is asked again, after pauses that grow, until the judge answers or has been away
for too long. Nobody else waits for that: the places of an engine fill with records that wait, and the judge's own circuit
breaker spares it most of the questions.

All of it is called in the engine's event loop; `away` may be read from any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ragspan.outcomes import MetricFailure, Outcome, Score

DEFAULT = 600.0
"""Seconds."""
BEFORE_FIRST = 90.0
"""Seconds, by default, before the judge has answered once: then it is more likely that its address is wrong."""
_LASTING = frozenset({401, 402, 403, 404, 407})
"""HTTP statuses that time does not change: the key, the money, the model's name."""
_TOO_MANY = 429
_LONGEST_PAUSE = 10.0
_NOTICEABLE = 2.0
"""Seconds without an answer before it is reported: below, a judge that answers too many at once is not away."""
_MOST_TRIES = 3
"""Of a metric on one record, while others are answered: then it is the record that the judge cannot take."""
_SUSPECT = 60.0
"""Seconds without an answer for which such a record is waited for."""


@dataclass(frozen=True, slots=True)
class Away:
    """A judge that is waited for."""

    metric: str
    seconds: float
    """Since its last answer."""
    patience: float
    """Seconds for which it is waited for."""
    failure: MetricFailure
    """The last."""


@dataclass(slots=True)
class _Judge:
    """What is known of the judge of one metric."""

    answered_at: float
    answers: int = 0
    failure: MetricFailure | None = None
    """Since its last answer."""


@dataclass(slots=True, eq=False)
class Tries:
    """The tries of one metric on one record."""

    failed_at: float | None = None
    """When the first of them failed."""
    pauses: int = 0
    answers_before: int = 0
    """Of the metric to other records, when the last try failed."""
    in_vain: int = 0
    """Tries that failed though others had been answered since the try before."""


class Patience:
    """How long the metrics of an engine wait for their judges, and which of them are waited for.

    Args:
        seconds: that a judge may be away, counted from its last answer; 0 waits for nothing. None is ten minutes, and a minute
            and a half before its first answer.
        clock: seconds that do not go backwards.
    """

    def __init__(self, seconds: float | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = DEFAULT if seconds is None else seconds
        self._before_first = min(BEFORE_FIRST, self._seconds) if seconds is None else self._seconds
        self._clock = clock
        self._judges: dict[str, _Judge] = {}

    @property
    def away(self) -> Away | None:
        """The judge that has been away for the longest, of those that are waited for."""
        now = self._clock()
        found = [
            Away(metric, now - judge.answered_at, self._limit(judge), judge.failure)
            for metric, judge in list(self._judges.items())
            if judge.failure is not None and _NOTICEABLE < now - judge.answered_at <= self._limit(judge)
        ]
        return max(found, key=lambda away: away.seconds, default=None)

    def begins(self, metric: str) -> None:
        """A try of the metric begins."""
        self._judges.setdefault(metric, _Judge(self._clock()))

    def pause(self, metric: str, tries: Tries, outcome: Outcome, *, is_paid: bool) -> float | None:
        """Seconds to wait before the next try; None if this is the outcome."""
        judge = self._judges[metric]
        if not isinstance(outcome, MetricFailure) or not _is_away(outcome, is_paid=is_paid):
            if isinstance(outcome, (Score, MetricFailure)):
                judge.answered_at, judge.failure = self._clock(), None
                judge.answers += 1
            return None
        now = self._clock()
        if tries.failed_at is None:
            tries.failed_at = now
        else:
            tries.in_vain += judge.answers > tries.answers_before
        tries.answers_before = judge.answers
        limit = self._limit(judge)
        if outcome.status != _TOO_MANY and tries.in_vain:
            limit = min(limit, _SUSPECT)
            if tries.in_vain >= (1 if _is_timeout(outcome) else _MOST_TRIES):
                return None
        if outcome.status in _LASTING or now - judge.answered_at > limit or now - tries.failed_at > self._seconds:
            return None
        judge.failure = outcome
        tries.pauses += 1
        return float(min(2 ** (tries.pauses - 1), _LONGEST_PAUSE))

    def _limit(self, judge: _Judge) -> float:
        return self._seconds if judge.answers else self._before_first


def _is_timeout(failure: MetricFailure) -> bool:
    return failure.error_type == "timeout"


def _is_away(failure: MetricFailure, *, is_paid: bool) -> bool:
    return failure.outage or (is_paid and _is_timeout(failure))
