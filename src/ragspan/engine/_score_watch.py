"""What scores say over time: evidence that they got worse, and how often a metric differs from its reference.

Anchors are records whose label is known. The engine's metrics score them again and again: where the scores come away from the
labels, it is the judge that changed, not the answers.

A metric `NAME_reference` judges a random share of the answers that `NAME` judges. The counts of both make the true rate of
failures (`ragspan.metrics.rates`, `docs/grafana`).

Guarantees of anchors:
- There is at most one round an hour, and one anchor in work. A round begins after an answer was scored, the first an hour after
  the first answer; without traffic there is none, and no answer waits for it.
- Anchors are not emitted, and are no records in the engine's counts. What they take counts as judging does, and comes out of
  the budget; where that is spent they are left out.
- A round ends with the worker's event loop.

All of it runs in the worker's thread.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from heapq import heappush, heapreplace
from typing import Final, TypeAlias

from opentelemetry.metrics import Meter
from opentelemetry.util.types import AttributeValue

from ragspan.engine._metric_run import MetricRunner
from ragspan.judges.session import JudgingSession
from ragspan.metrics.drift import DriftDetector
from ragspan.metrics.reference import REFERENCE
from ragspan.outcomes import Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry import semconv
from ragspan.telemetry.values import encodable, named

Anchor: TypeAlias = tuple[RagRecord, bool]
"""A record, and whether its response is good."""

_HOUR: Final = 3_600.0
_RECENT: Final = 1_000
"""Responses that are remembered: one that comes again says nothing new."""
_WORST: Final = 5
_MOST_WATCHED: Final = 100
"""Pairs of metric and judge: names that users make up must not grow without end."""
_WARNINGS: Final = {
    semconv.SOURCE_ANSWERS: "scores of %s by %s got worse: from %s to %s, against those before; the lowest of them are of the"
    " records %s",
    semconv.SOURCE_ANCHORS: "the judge changed: scores of the anchors for %s by %s agree less with their labels, from %s to %s,"
    " than before; those that agree least are of the records %s",
}
_SHOWN: Final = 600.0
"""Seconds for which the gauge keeps the evidence of an alarm: whoever reads it every minute must see it."""

_logger = logging.getLogger("ragspan")


@dataclass(slots=True)
class _Watched:
    """The scores of one metric by one judge."""

    warning: str
    attributes: Mapping[str, AttributeValue]
    detector: DriftDetector = field(default_factory=DriftDetector)
    shown_until: float = 0.0
    worst: list[tuple[float, float, str]] = field(default_factory=list)
    """The lowest since scores got worse: the negative value, its time, its record."""

    def note(self, value: float, now: float, record_id: str) -> None:
        since = self.detector.since
        self.worst = [one for one in self.worst if since is not None and one[1] >= since]
        if len(self.worst) < _WORST:
            heappush(self.worst, (-value, now, record_id))
        elif -value > self.worst[0][0]:
            heapreplace(self.worst, (-value, now, record_id))

    def warn(self, name: str, judge: str | None, now: float) -> None:
        """Log the alarm, and begin anew."""
        since, until = _clock_time(self.detector.since or now), _clock_time(now)
        ids = dict.fromkeys(record_id for _, _, record_id in sorted(self.worst, reverse=True))
        _logger.warning(self.warning, name, judge, since, until, ", ".join(ids))
        self.shown_until = now + _SHOWN
        self.detector.reset()
        self.worst.clear()


class ScoreWatch:
    """Watches the scores of one engine, and has its metrics score the anchors.

    Args:
        meter: for the gauge and the counter.
        runners: of the metrics.
        anchors: records whose label is known.
        clock: Unix seconds.
    """

    def __init__(
        self,
        meter: Meter,
        runners: Sequence[MetricRunner] = (),
        anchors: Sequence[Anchor] = (),
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._runners = [runner for runner in runners if not runner.name.endswith(REFERENCE)]
        self._anchors = anchors
        self._clock = clock
        self._due: float | None = None
        self._round: asyncio.Task[None] | None = None
        self._watched: dict[tuple[str, str, str | None], _Watched] = {}
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._evidence = meter.create_gauge(
            semconv.METRIC_DRIFT_EVIDENCE,
            unit="{evidence}",  # with "1" some exporters to Prometheus append `_ratio`, others do not
            description="Evidence that scores of answers got worse, or that those of anchors came away from their labels;"
            " unchanged scores come to 1 once a month at most.",
        )
        self._labels = meter.create_counter(
            semconv.METRIC_LABELS,
            unit="{answer}",
            description="Answers that a metric and its reference judged, by the labels of both.",
        )

    def take(self, scored: ScoredRecord, *, is_good: bool | None = None) -> None:
        """Take all outcomes of a record; of an anchor, with the label `is_good`, how far they agree with it."""
        scores = {name: outcome for name, outcome in scored.outcomes.items() if isinstance(outcome, Score)}
        source = semconv.SOURCE_ANCHORS
        if is_good is None:
            if self._anchors:
                self._begin_round_if_due()
            source = semconv.SOURCE_ANSWERS
            for name in [name for name in scores if name + REFERENCE in scores]:
                self._compare(name, scores[name], scores[name + REFERENCE])
            response = hash(scored.record.response)
            if response in self._recent:
                return
            self._recent.append(response)
        now = self._clock()
        for name, score in scores.items():
            watched = self._watched.get((source, name, score.judge)) or self._begin(source, name, score.judge)
            if watched is None:
                continue
            value = score.value if is_good is None else 1 - abs(score.value - is_good)
            evidence = watched.detector.add(value, now)
            if now >= watched.shown_until:
                self._evidence.set(evidence, watched.attributes)
            if evidence:
                watched.note(value, now, scored.record.record_id)
            if evidence >= 1:
                watched.warn(name, score.judge, now)

    def _begin_round_if_due(self) -> None:
        """Score the anchors in the running event loop, if an hour is over since the last time, or since the first answer.

        So programs that end soon pay for none.
        """
        now = self._clock()
        if not self._runners or (self._due is not None and now < self._due):
            return
        is_first, self._due = self._due is None, now + _HOUR
        if not is_first and (self._round is None or self._round.done()):
            self._round = asyncio.get_running_loop().create_task(self._score_anchors())

    async def _score_anchors(self) -> None:
        # In another order each time: a repeated series of bad ones would look like a change.
        for record, is_good in random.sample(self._anchors, len(self._anchors)):
            session = JudgingSession(record=record)
            runs = [runner.start(record, session, falls_back=False) for runner in self._runners]
            await asyncio.wait([run.ended for run in runs])
            outcomes = {run.runner.name: outcome for run in runs if (outcome := run.outcome) is not None}
            self.take(ScoredRecord(record=record, outcomes=outcomes), is_good=is_good)

    def _compare(self, name: str, score: Score, reference: Score) -> None:
        if score.label and reference.label and reference.fallback is None:
            labels = {semconv.GEN_AI_EVALUATION_SCORE_LABEL: score.label, semconv.REFERENCE_LABEL: reference.label}
            self._labels.add(1, encodable({semconv.GEN_AI_EVALUATION_NAME: named(name), **labels}))

    def _begin(self, source: str, name: str, judge: str | None) -> _Watched | None:
        """None where too much is watched already."""
        if len(self._watched) >= _MOST_WATCHED:
            return None
        about = {semconv.GEN_AI_EVALUATION_NAME: named(name), semconv.JUDGE: judge and named(judge)}
        attributes = encodable({**about, semconv.DRIFT_SOURCE: source})
        made = self._watched[source, name, judge] = _Watched(warning=_WARNINGS[source], attributes=attributes)
        return made


def _clock_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
