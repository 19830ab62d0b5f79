"""The true share of failing answers, where only some answers have a label that is trusted.

A metric that fails 44 % of the answers says little of how many are wrong: it has false alarms and misses. Where a person, or a
better judge, labels a random part of the same answers, the labels say how the metric errs there, and the metric says what the
others are like. That is prediction-powered inference: Angelopoulos, Bates, Fannjiang, Jordan and Zrnic, "Prediction-powered
inference" (Science, 2023), and Angelopoulos, Duchi and Zrnic, "PPI++: efficient prediction-powered inference" (2023). With a
label and a prediction of two values, its tuned weight gives the regression estimator of survey sampling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

LEAST_LABELS: Final = 20
"""With fewer there is no estimate."""
_Z: Final = 1.959964
"""Of a normal distribution, 95 % are within this many standard deviations."""
_HALF_ANSWER: Final = 0.5
_MOST_WORTH: Final = 20.0
"""The number of plain labels that one label is taken for at most, however well the metric agrees."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelCounts:
    """Answers, by what the metric and the label say of them. Counts of several processes or days add up.

    The labelled answers are a random part of all: each has the same chance, whatever the metric says.
    """

    both: int
    """Labelled answers that fail by metric and label."""
    metric_only: int
    """Labelled answers that fail by the metric only: its false alarms."""
    label_only: int
    """Labelled answers that fail by the label only: what the metric misses."""
    neither: int
    """Labelled answers that pass by both."""
    failing: int
    """Answers without a label that fail by the metric."""
    passing: int
    """Answers without a label that pass by the metric."""

    @property
    def labels(self) -> int:
        return self.both + self.metric_only + self.label_only + self.neither

    def __add__(self, other: LabelCounts) -> LabelCounts:
        return LabelCounts(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


@dataclass(frozen=True, kw_only=True, slots=True)
class RateEstimate:
    """A share of failing answers, as the labels would have it, with its 95 % interval. All from 0 to 1."""

    value: float
    lower: float
    upper: float
    by_metric: float
    """The share by the metric alone."""
    labels: int
    worth: float
    """How many labels the interval would take without the metric."""


def estimate_rate(counts: LabelCounts) -> RateEstimate | None:
    """How many answers fail by the label's standard; None with fewer than `LEAST_LABELS` labels.

    The value is the labels' share of failures, corrected by how the metric's share differs between all answers and the
    labelled ones, times a weight. The weight is the one with the smallest variance (PPI++), within 0 and 1 and smaller for few
    failures: a metric that knows nothing then changes nothing. The interval is Wilson's, for as many labels as the estimate is
    worth: near 0 and 1 a normal distribution would promise too much (Franco, Little, Louis and Slud, "Comparative study of
    confidence intervals for proportions in complex sample surveys", 2019, compare such intervals).
    """
    labels, others = counts.labels, counts.failing + counts.passing
    if labels < LEAST_LABELS:
        return None
    wrong, flagged = (counts.both + counts.label_only) / labels, (counts.both + counts.metric_only) / labels
    by_metric = (counts.both + counts.metric_only + counts.failing) / (labels + others)
    weight, ratio = _weight_and_ratio(counts)
    value = wrong + weight * (counts.failing / others - flagged) if others else wrong
    value = min(max(value, 0.0), 1.0)
    worth = labels / min(max(ratio, 1 / _MOST_WORTH), 1.0)
    lower, upper = wilson_interval(value, worth)
    return RateEstimate(value=value, lower=lower, upper=upper, by_metric=by_metric, labels=labels, worth=worth)


def _weight_and_ratio(counts: LabelCounts) -> tuple[float, float]:
    """The metric's weight, and the estimate's variance as a part of the labels' own.

    Half an answer more is counted on each side where metric and label differ: among few labels they may agree by chance.
    """
    labels, others = counts.labels, counts.failing + counts.passing
    if not others:
        return 0.0, 1.0
    total = labels + 2 * _HALF_ANSWER
    wrong = (counts.both + counts.label_only + _HALF_ANSWER) / total
    flagged = (counts.both + counts.metric_only + _HALF_ANSWER) / total
    covariance = counts.both / total - wrong * flagged
    spread, flagged_spread = wrong * (1 - wrong), flagged * (1 - flagged)
    share = 1 + labels / others
    weight = min(max(covariance / (flagged_spread + 1 / labels), 0.0), 1.0) / share
    return weight, (spread - 2 * weight * covariance + weight**2 * flagged_spread * share) / spread


def wilson_interval(share: float, number: float) -> tuple[float, float]:
    """The 95 % interval of a share among so many, which need not be a whole number."""
    square = _Z**2 / number
    middle = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * math.sqrt(share * (1 - share) / number + square / number / 4)
    return max(middle - half, 0.0), min(middle + half, 1.0)
