"""Has the engine's metrics score anchors, records whose label is known, to see whether the judges change.

Guarantees:
- There is at most one round an hour, and one anchor in work. A round begins after an answer was scored, the first an hour after
  the first answer; without traffic there is none, and no answer waits for it.
- Anchors are not emitted, and are no records in the engine's counts. What they take counts as judging does, and comes out of
  the budget; where that is spent they are left out.
- A round ends with the worker's event loop.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ragspan.engine._metric_run import MetricRunner
from ragspan.engine._score_watch import ScoreWatch
from ragspan.judges.session import JudgingSession
from ragspan.metrics.reference import REFERENCE
from ragspan.outcomes import MetricFailure, ScoredRecord
from ragspan.records import RagRecord

Anchor: TypeAlias = tuple[RagRecord, bool]
"""A record, and whether its response is good."""

_HOUR: Final = 3_600.0


class AnchorRounds:
    """The anchors of one engine.

    Args:
        watch: told of each anchor that was scored.
        timeout: seconds that a metric may take.
        clock: seconds.
    """

    def __init__(
        self,
        anchors: Sequence[Anchor],
        runners: Sequence[MetricRunner],
        watch: ScoreWatch,
        *,
        timeout: float,
        clock: Callable[[], float],
    ) -> None:
        self._anchors = anchors
        self._runners = [runner for runner in runners if not runner.name.endswith(REFERENCE)]
        self._watch = watch
        self._timeout = timeout
        self._clock = clock
        self._due: float | None = None
        self._round: asyncio.Task[None] | None = None

    def begin_if_due(self) -> None:
        """Begin a round in the running event loop, if an hour is over since the last one, or since the first answer.

        So programs that end soon pay for none.
        """
        now = self._clock()
        if self._due is not None and now < self._due:
            return
        is_first, self._due = self._due is None, now + _HOUR
        if is_first or (self._round is not None and not self._round.done()):
            return
        self._round = asyncio.get_running_loop().create_task(self._score_all())

    async def _score_all(self) -> None:
        # In another order each time: the drift detector would take the same series of bad ones for news.
        for record, is_good in random.sample(self._anchors, len(self._anchors)):
            self._watch.take(await self._scored(record), is_good=is_good)

    async def _scored(self, record: RagRecord) -> ScoredRecord:
        session = JudgingSession(record=record)
        runs = [runner.start(record, session, is_anchor=True) for runner in self._runners]
        running = [run.task for run in runs if run.task is not None and run.outcome is None]
        if running:
            await asyncio.wait(running, timeout=self._timeout)
        for run in runs:
            run.cancel(MetricFailure(error_type="timeout", message=f"no outcome within {self._timeout:g} s"))
        outcomes = {run.name: run.outcome for run in runs if run.outcome is not None}
        return ScoredRecord(record=record, outcomes=outcomes)
