"""What people say of the responses in a table: how well scores agree with it, and how many responses really fail."""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.summaries import (
    LEAST_LABELS,
    Figure,
    RateEstimate,
    Stratum,
    mean_of_shares,
    rate_by_labels,
    wilson_interval,
)
from ragspan.outcomes import Label

CLOSE: Final = 0.05
"""How near a figure should be known: its 95 % interval ends that far from it."""
_FEW: Final = 10
"""Labels of the rarer kind, with which their variance says little."""
MEASURES: Final = ("context_adherence", "faithfulness", "faithfulness_hhem")
"""What a label says, unless metrics are named. Adherence first: like a label it is of the whole response, and it ranks better."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricAgreement:
    """How well one metric agrees with the labels of a table. A figure is None where one of the two labels is missing."""

    metric: str
    labels: int
    """Rows with a label and a score."""
    good: int
    """Of these, the rows that the label calls good."""
    auroc: Figure | None
    """How probably a good response has a higher score than a bad one; .5 is chance."""
    balanced_accuracy: Figure | None
    """The mean of the shares that the metric's own threshold labels right, of good and of bad ones; None without threshold."""
    missing_labels: int | None
    """About how many more labels make the balanced accuracy, else the AUROC, known to within .05."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelAgreement:
    """How well the metrics that measure a label agree with it, and how many responses fail by it."""

    label: str
    """The name of its column."""
    metrics: Sequence[MetricAgreement]
    """The first is the measure by which the rate of responses without a label is estimated."""
    failures: RateEstimate | None
    """How many of all rows that the measure scored fail by the label; None with few labels, or where it has no threshold."""
    is_embedded: bool
    """Whether the scores are the embedded judge's, because another is asked about a share of the rows."""

    @property
    def rate_in_words(self) -> str:
        """The share of responses that fail by the label, in a line."""
        rate = self.failures
        if rate is None:
            needed = f"it takes {LEAST_LABELS} labels at least, and a metric by which responses pass or fail"
            return f"How many responses fail by the label {self.label!r} cannot be said: {needed}"
        # Where all responses have a label the share is counted, and has no interval.
        by = " by the embedded judge" if self.is_embedded else ""
        interval = f" ({rate.lower:.1%} to {rate.upper:.1%})" if rate.labels < rate.answers else ""
        return (
            f"By the label {self.label!r} {rate.value:.1%} of the {rate.answers:,} responses fail{interval},"
            f" from {rate.labels:,} labels; {self.metrics[0].metric}{by} alone fails {rate.by_metric:.1%}"
        )


def agreement(evaluation: Evaluation, *, with_all: bool = False) -> LabelAgreement | None:
    """How well the metrics that measure a label agree with it, or all; None where no row has both a label and a score."""
    measures = [metric for metric in MEASURES if metric in evaluation.metrics]
    others = [metric for metric in evaluation.metrics if metric not in measures]
    scores: dict[str, list[tuple[bool | None, float, Label | None]]] = {
        metric: [] for metric in (*measures, *(others if with_all or not measures else ()))
    }
    for row in evaluation.all_rows() if evaluation.labels else ():
        for metric, score in row.of_one_judge.items():
            if metric in scores:
                scores[metric].append((evaluation.labels.get(row.row), score.value, score.label))
    agreeing = [one for metric, found in scores.items() if (one := _agreement(metric, found)).labels]
    if not agreeing:
        return None
    strata = {True: Stratum(), False: Stratum()}
    for is_good, _, told in scores[agreeing[0].metric]:
        strata[told == "fail"] += Stratum(answers=1, labels=is_good is not None, failing=is_good is False)
    measure, name = evaluation.summary[agreeing[0].metric], evaluation.label_name
    rate = rate_by_labels(failing=strata[True], passing=strata[False]) if measure.labelled else None
    return LabelAgreement(label=name, metrics=agreeing, failures=rate, is_embedded=measure.asked is not None)


def _agreement(metric: str, scores: Sequence[tuple[bool | None, float, Label | None]]) -> MetricAgreement:
    good, bad = ([(value, told) for known, value, told in scores if known is wanted] for wanted in (True, False))
    ranked = auroc([value for value, _ in good], [value for value, _ in bad])
    # Only a score that passes or fails says what a label says.
    right = balanced_accuracy([told == "pass" for _, told in good if told], [told == "fail" for _, told in bad if told])
    best, labels = right or ranked, len(good) + len(bad)
    # An interval shrinks with the root of the number.
    times = 0.0 if best is None else ((best.upper - best.lower) / 2 / CLOSE) ** 2
    return MetricAgreement(
        metric=metric,
        labels=labels,
        good=len(good),
        auroc=ranked,
        balanced_accuracy=right,
        missing_labels=None if best is None else max(round(labels * (times - 1)), 0),
    )


def auroc(good: Sequence[float], bad: Sequence[float]) -> Figure | None:
    """The probability that a good answer has a higher value than a bad one, ties counted half; None if one of the kinds is missing.

    Its variance is that of E. R. DeLong and others (Biometrics, 1988); the interval is that of a share among as many answers as have
    such a variance, and at most as many as are of the rarer kind where there are few, or all pairs are in one order.
    """
    if not good or not bad:
        return None
    beaten, winners = sorted(bad), sorted(good)
    of_good = [(bisect_left(beaten, one) + bisect_right(beaten, one)) / 2 / len(bad) for one in good]
    of_bad = [1 - (bisect_left(winners, one) + bisect_right(winners, one)) / 2 / len(good) for one in bad]
    value, rarer = statistics.fmean(of_good), min(len(good), len(bad))
    number: float = rarer
    if rarer >= _FEW:
        variance = statistics.variance(of_good) / len(good) + statistics.variance(of_bad) / len(bad)
        number = value * (1 - value) / variance if variance > 0 else rarer
    return wilson_interval(value, number or rarer)


def balanced_accuracy(good: Sequence[bool], bad: Sequence[bool]) -> Figure | None:
    """The mean of the shares that are right among the good and among the bad ones; .5 is chance. None if one of the kinds is missing."""
    if not good or not bad:
        return None
    return mean_of_shares([(0.5, sum(kind) / len(kind), len(kind)) for kind in (good, bad)])
