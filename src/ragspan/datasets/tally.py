"""Counts outcomes while they stream by, and sums them up at the end."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from ragspan.datasets.results import MetricSummary, ResultRow


class Tally:
    """The scores of each metric, eight bytes each, and the reasons where there is none."""

    def __init__(self, metrics: Iterable[str]) -> None:
        self._metrics = {metric: _OfMetric() for metric in metrics}

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(self._metrics)

    @property
    def scores(self) -> Mapping[str, array[float]]:
        """By metric, in the order in which they were added."""
        return {metric: counted.scores for metric, counted in self._metrics.items()}

    def add(self, result: ResultRow, threshold: float | None = None) -> None:
        """Count one outcome. A metric that was not named before is a new one."""
        counted = self._metrics.setdefault(result.metric, _OfMetric())
        if result.score is None:
            counted.not_scored[result.reason or "unknown"] += 1
            counted.failed += result.outcome == "failure"
            return
        counted.scores.append(result.score)
        counted.total += result.score
        counted.passed += result.label == "pass"
        if counted.threshold is None:
            counted.threshold = threshold

    def means(self) -> dict[str, float | None]:
        """So far; what rounding adds up to in a running sum is left to the summary."""
        return {
            metric: counted.total / len(counted.scores) if counted.scores else None
            for metric, counted in self._metrics.items()
        }

    def summary(self) -> dict[str, MetricSummary]:
        return {metric: counted.summary(metric) for metric, counted in self._metrics.items()}


class _OfMetric:
    def __init__(self) -> None:
        self.scores = array("d")
        self.total = 0.0
        self.passed = 0
        self.threshold: float | None = None
        self.not_scored: Counter[str] = Counter()
        self.failed = 0

    def summary(self, metric: str) -> MetricSummary:
        not_scored = dict(sorted(self.not_scored.items(), key=lambda item: (-item[1], item[0])))
        if not self.scores:
            return MetricSummary(metric=metric, not_scored=not_scored, failed=self.failed)
        mean = _mean(self.scores)
        in_order = sorted(self.scores)
        return MetricSummary(
            metric=metric,
            scored=len(in_order),
            passed=self.passed,
            not_scored=not_scored,
            failed=self.failed,
            mean=mean,
            median=_median(in_order),
            minimum=in_order[0],
            maximum=in_order[-1],
            standard_deviation=_standard_deviation(self.scores, mean),
            threshold=self.threshold,
        )


def _mean(values: Sequence[float]) -> float:
    # Rounded sums of equal values can lie outside of them by a bit.
    return min(max(math.fsum(values) / len(values), min(values)), max(values))


def _median(in_order: Sequence[float]) -> float:
    middle = len(in_order) // 2
    return in_order[middle] if len(in_order) % 2 else (in_order[middle - 1] + in_order[middle]) / 2


def _standard_deviation(values: Sequence[float], mean: float) -> float | None:
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return None
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
