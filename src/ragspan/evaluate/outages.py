"""Waiting for a judge that is away: what a table can do and a request cannot.

A metric that failed because its judge is away is asked again, after pauses that grow, until the judge answers or has been away
for too long. All of it is called in one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ragspan.outcomes import MetricFailure, Outcome, Score
from ragspan.usage import Usage

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
_MOST_ATTEMPTS = 3
"""Of a metric on one row, while others are answered: then it is the row that the judge cannot take."""
_SUSPECT = 60.0
"""Seconds without an answer for which such a row is waited for."""


@dataclass(frozen=True, slots=True)
class JudgeOutage:
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


@dataclass(slots=True)
class Attempts:
    """The attempts of one metric at one row."""

    failed_at: float | None = None
    """When the first of them failed."""
    pauses: int = 0
    answers_before: int = 0
    """Of the metric to other rows, when the last attempt failed."""
    in_vain: int = 0
    """Attempts that failed though others had been answered since the one before."""


class OutageRetry:
    """How long metrics wait for their judges, and which judge is waited for.

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
    def outage(self) -> JudgeOutage | None:
        """Of the judge that has been away for the longest, of those that are waited for."""
        now = self._clock()
        found = [
            JudgeOutage(metric, now - judge.answered_at, self._limit(judge), judge.failure)
            for metric, judge in self._judges.items()
            if judge.failure is not None and _NOTICEABLE < now - judge.answered_at <= self._limit(judge)
        ]
        return max(found, key=lambda outage: outage.seconds, default=None)

    async def outcomes(
        self,
        metrics: Sequence[str],
        ask: Callable[[Sequence[str]], Awaitable[Mapping[str, Outcome] | None]],
        paid: Collection[str],
    ) -> dict[str, Outcome]:
        """The outcomes of one row's metrics, asked again as long as their judges are away; each with all that it has spent.

        Args:
            metrics: by name.
            ask: for the outcomes of some of them; None if the row is lost.
            paid: the metrics whose judges cost money, which may be away where they time out.
        """
        found: dict[str, Outcome] = {}
        spent: dict[str, Usage] = {}
        attempts = {name: Attempts() for name in metrics}
        left = list(metrics)
        while left:
            for name in left:
                self.begin(name)
            if (outcomes := await ask(left)) is None:
                return found
            for name, outcome in outcomes.items():
                if outcome.usage is not None:
                    spent[name] = spent.get(name, Usage()) + outcome.usage
                found[name] = replace(outcome, usage=spent.get(name))
            pauses = {
                name: pause
                for name in left
                if (pause := self.pause(name, attempts[name], found[name], is_paid=name in paid)) is not None
            }
            left = list(pauses)
            if left:
                await asyncio.sleep(max(pauses.values()))
        return found

    def begin(self, metric: str) -> None:
        """An attempt of the metric begins."""
        self._judges.setdefault(metric, _Judge(self._clock()))

    def pause(self, metric: str, attempts: Attempts, outcome: Outcome, *, is_paid: bool) -> float | None:
        """Seconds to wait before the next attempt; None if this is the outcome."""
        judge, now = self._judges[metric], self._clock()
        is_timeout = isinstance(outcome, MetricFailure) and outcome.error_type == "timeout"
        if not isinstance(outcome, MetricFailure) or not (outcome.outage or (is_paid and is_timeout)):
            if isinstance(outcome, (Score, MetricFailure)):
                judge.answered_at, judge.failure = now, None
                judge.answers += 1
            return None
        if attempts.failed_at is None:
            attempts.failed_at = now
        else:
            attempts.in_vain += judge.answers > attempts.answers_before
        attempts.answers_before = judge.answers
        limit = self._limit(judge)
        if outcome.status != _TOO_MANY and attempts.in_vain:
            limit = min(limit, _SUSPECT)
            if attempts.in_vain >= (1 if is_timeout else _MOST_ATTEMPTS):
                return None
        if outcome.status in _LASTING or now - judge.answered_at > limit or now - attempts.failed_at > self._seconds:
            return None
        judge.failure = outcome
        attempts.pauses += 1
        return float(min(2 ** (attempts.pauses - 1), _LONGEST_PAUSE))

    def _limit(self, judge: _Judge) -> float:
        return self._seconds if judge.answers else self._before_first
