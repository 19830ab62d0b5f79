"""Waiting for a judge that is away: what a table can do and a request cannot.

A metric that failed because its judge is away is asked again, after pauses that grow, until the judge answers or has been away
for too long. All of it is called in one event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ragspan.outcomes import MetricFailure, NotApplicable, Outcome
from ragspan.usage import Usage

_PATIENCE, _BEFORE_FIRST, _SUSPECT = 600.0, 90.0, 60.0
"""Seconds, by default; before the judge has answered once, for then its address may be wrong; for a row that it may not be able to take."""
_LASTING = frozenset({401, 402, 403, 404, 407})
"""HTTP statuses that time does not change: the key, the money, the model's name."""
_TOO_MANY = 429
_LONGEST_PAUSE = 10.0
_MOST_ATTEMPTS = 3
"""Of a metric on one row while others are answered: then it is the row that the judge cannot take."""


@dataclass(slots=True)
class _Judge:
    """What is known of the judge of one metric."""

    answered_at: float
    limit: float
    """Seconds that it may be away."""
    answers: int = 0
    failure: MetricFailure | None = None
    """Since its last answer."""


class OutageRetry:
    """Asks again where a judge is away, for so many seconds; None is the default."""

    def __init__(self, seconds: float | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._clock = seconds, clock
        self._judges: dict[str, _Judge] = {}

    @property
    def outage(self) -> str | None:
        """Which judge is waited for, and why, in words."""
        for metric, judge in self._judges.items():
            away = self._clock() - judge.answered_at
            if judge.failure is not None and 2 < away <= judge.limit:  # noqa: PLR2004 - below, a judge is only busy
                why = f"{judge.failure.error_type}: {judge.failure.message}"[:200]
                since = f"since {away:.0f} s, for {judge.limit - away:.0f} s more"
                return f"waiting for the judge of {metric} {since} ({why})"
        return None

    async def outcomes(
        self,
        metrics: Sequence[str],
        ask: Callable[[Sequence[str]], Awaitable[Mapping[str, Outcome] | None]],
        paid: Collection[str],
    ) -> dict[str, Outcome]:
        """The outcomes of one row's metrics, each with all that it has spent.

        Args:
            metrics: by name.
            ask: for the outcomes of some of them; None if the row is lost.
            paid: the metrics whose judges cost money, which may be away where they time out.
        """
        found: dict[str, Outcome] = {}
        spent: dict[str, Usage] = {}
        attempts: dict[str, list[int]] = {name: [] for name in metrics}
        """Of each metric, how many answers its judge had given at each failure."""
        for name in metrics:
            limit = _BEFORE_FIRST if self._seconds is None else self._seconds
            self._judges.setdefault(name, _Judge(self._clock(), limit))
        left = list(metrics)
        while left and (outcomes := await ask(left)) is not None:
            for name, outcome in outcomes.items():
                if outcome.usage is not None:
                    spent[name] = spent.get(name, Usage()) + outcome.usage
                found[name] = replace(outcome, usage=spent.get(name))
            left = [name for name in left if self._is_asked_again(name, found[name], attempts[name], name in paid)]
            if left:
                await asyncio.sleep(min(2 ** (max(len(attempts[name]) for name in left) - 1), _LONGEST_PAUSE))
        return found

    def _is_asked_again(self, metric: str, outcome: Outcome, attempts: list[int], is_paid: bool) -> bool:  # noqa: FBT001
        """Whether the metric is asked again; else this is its outcome. An attempt in vain is noted."""
        judge, now = self._judges[metric], self._clock()
        is_timeout = isinstance(outcome, MetricFailure) and outcome.error_type == "timeout"
        if not isinstance(outcome, MetricFailure) or not (outcome.outage or (is_paid and is_timeout)):
            if not isinstance(outcome, NotApplicable):
                judge.answered_at, judge.failure, judge.answers = now, None, judge.answers + 1
                judge.limit = _PATIENCE if self._seconds is None else self._seconds
            return False
        attempts.append(judge.answers)
        in_vain = 0 if outcome.status == _TOO_MANY else len(set(attempts)) - 1  # after each the judge answered others
        limit = min(judge.limit, _SUSPECT) if in_vain else judge.limit
        has_waited = len(attempts) > judge.limit / _LONGEST_PAUSE + 4  # the first pauses are shorter
        is_of_row = in_vain >= (1 if is_timeout else _MOST_ATTEMPTS) or has_waited
        if is_of_row or outcome.status in _LASTING or now - judge.answered_at > limit:
            return False
        judge.failure = outcome
        return True
