"""What scores say over time: evidence that they got worse, and how often a metric differs from its reference.

A metric `NAME_reference` judges a random share of the answers that `NAME` judges. The counts of both make the true rate of
failures (`ragspan.metrics.rates`, `docs/grafana`).

Used by the engine's worker alone.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from heapq import heappush, heapreplace
from typing import Final

from opentelemetry.metrics import Meter
from opentelemetry.util.types import AttributeValue

from ragspan.metrics.drift import DriftDetector
from ragspan.metrics.reference import REFERENCE
from ragspan.outcomes import Score, ScoredRecord
from ragspan.telemetry import semconv
from ragspan.telemetry.values import encodable, named

_RECENT: Final = 1_000
"""Responses that are remembered: one that comes again says nothing new."""
_WORST: Final = 5
_MOST_WATCHED: Final = 100
"""Pairs of metric and judge: names that users make up must not grow without end."""

_logger = logging.getLogger("ragspan")


@dataclass(slots=True)
class _Watched:
    """The scores of one metric by one judge."""

    attributes: Mapping[str, AttributeValue]
    detector: DriftDetector = field(default_factory=DriftDetector)
    worst: list[tuple[float, float, str]] = field(default_factory=list)
    """Of the time since scores got worse, the lowest: each less than 0, its time, its record."""

    def note(self, value: float, now: float, record_id: str) -> None:
        since = self.detector.since
        self.worst = [one for one in self.worst if since is not None and one[1] >= since]
        if len(self.worst) < _WORST:
            heappush(self.worst, (-value, now, record_id))
        elif -value > self.worst[0][0]:
            heapreplace(self.worst, (-value, now, record_id))


class ScoreWatch:
    """Watches the scores of one engine.

    Args:
        meter: for the gauge and the counter.
        clock: Unix seconds.
    """

    def __init__(self, meter: Meter, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._watched: dict[tuple[str, str | None], _Watched] = {}
        self._recent: deque[int] = deque(maxlen=_RECENT)
        self._evidence = meter.create_gauge(
            semconv.METRIC_DRIFT_EVIDENCE,
            unit="1",
            description="Evidence that scores got worse; unchanged scores come to 1 once a month at most.",
        )
        self._labels = meter.create_counter(
            semconv.METRIC_LABELS,
            unit="{answer}",
            description="Answers that a metric and its reference judged, by the labels of both.",
        )

    def take(self, scored: ScoredRecord) -> None:
        """Take all outcomes of a record."""
        scores = {name: outcome for name, outcome in scored.outcomes.items() if isinstance(outcome, Score)}
        for name, score in scores.items():
            reference = scores.get(name + REFERENCE)
            if reference is not None and score.label and reference.label and reference.fallback is None:
                labels = {semconv.GEN_AI_EVALUATION_SCORE_LABEL: score.label, semconv.REFERENCE_LABEL: reference.label}
                self._labels.add(1, encodable({semconv.GEN_AI_EVALUATION_NAME: named(name), **labels}))
        response = hash(scored.record.response)
        if response in self._recent:
            return
        self._recent.append(response)
        for name, score in scores.items():
            self._watch(name, score, scored.record.record_id)

    def _watch(self, name: str, score: Score, record_id: str) -> None:
        key = (name, score.judge)
        if key not in self._watched and len(self._watched) >= _MOST_WATCHED:
            return
        watched = self._watched.get(key)
        if watched is None:
            about = {semconv.GEN_AI_EVALUATION_NAME: named(name), semconv.JUDGE: score.judge and named(score.judge)}
            watched = self._watched[key] = _Watched(attributes=encodable(about))
        now = self._clock()
        evidence = watched.detector.add(score.value, now)
        self._evidence.set(evidence, watched.attributes)
        if evidence:
            watched.note(score.value, now, record_id)
        if evidence >= 1:
            self._warn(name, score.judge, watched, now)
            watched.detector.reset()
            watched.worst.clear()

    def _warn(self, name: str, judge: str | None, watched: _Watched, now: float) -> None:
        _logger.warning(
            "scores of %s by %s got worse: from %s to %s, against those before; the lowest of them are of the records %s",
            name,
            judge,
            _clock_time(watched.detector.since or now),
            _clock_time(now),
            ", ".join(record_id for _, _, record_id in sorted(watched.worst, reverse=True)),
        )


def _clock_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
