"""What people say of the responses in a table: how well scores agree with it, and how many responses really fail.

A label says one thing, and has one rate. The first of the metrics that are compared with it is *the* measure, by which the rate of
the responses without a label is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ragspan.evaluate.estimates import (
    LEAST_LABELS,
    Bootstrap,
    RateEstimate,
    Stratum,
    Weights,
    auroc,
    balanced_accuracy,
    rate_by_labels,
)
from ragspan.evaluate.evaluated import Evaluation, text_table
from ragspan.outcomes import Score

_CLOSE: Final = 0.05
"""How near a figure should be known: its 95 % interval ends that far from it."""
_FEW: Final = 10
"""Labels of the rarer kind, with which no resample differs much."""
_TAIL: Final = 0.025
"""At each end of a 95 % interval."""
MEASURES: Final = ("context_adherence", "faithfulness", "faithfulness_hhem")
"""What a label says, unless metrics are named. Adherence first: it is of the whole response, as a label is, and ranks responses better
than the share of their claims."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A figure with its 95 % interval."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.lower:.2f} to {self.upper:.2f})"


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricAgreement:
    """How well one metric agrees with the labels of a table. A figure is None where one of the two labels is missing."""

    metric: str
    labels: int
    """Rows with a label and a score."""
    good: int
    """Of these, the rows that the label calls good."""
    told: int
    """Of the rows, those that the metric passes or fails, and does not leave open."""
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
    """*The* measure first, and others for comparison."""
    measure: str
    """The name of that metric."""
    failures: RateEstimate | None
    """How many of all rows that the measure scored fail by the label; None with few labels, or where it has no threshold."""

    @property
    def rate_in_words(self) -> str:
        """The share of responses that fail by the label, in a line."""
        rate = self.failures
        if rate is None:
            return f"How many responses fail by the label {self.label!r} cannot be said: it takes {LEAST_LABELS} labels at least"
        # Where all responses have a label the share is counted, and has no interval.
        interval = f" ({rate.lower:.1%} to {rate.upper:.1%})" if rate.labels < rate.answers else ""
        return (
            f"By the label {self.label!r} {rate.value:.1%} of the {rate.answers:,} responses fail{interval},"
            f" from {rate.labels:,} labels; {self.measure} alone fails {rate.by_metric:.1%}"
        )


def agreement(evaluation: Evaluation, *, with_all: bool = False) -> LabelAgreement | None:
    """How well the metrics of the evaluation agree with its label; None where no row has both a label and a score.

    Each row counts as a source of its own: responses to one question should not be labelled many times over.

    Args:
        evaluation: of a table with labels.
        with_all: compare metrics that measure something else, too. They are compared in any case if no other is there.
    """
    labels = evaluation.labels
    if not labels:
        return None
    measures = [metric for metric in MEASURES if metric in evaluation.metrics]
    others = [metric for metric in evaluation.metrics if metric not in measures]
    compared = [*measures, *others] if with_all or not measures else measures
    scores: dict[str, list[tuple[int, Score]]] = {metric: [] for metric in compared}
    for row in evaluation.all_rows():
        for metric in compared:
            if isinstance(score := row.outcomes.get(metric), Score):
                scores[metric].append((row.row, replace(score, evidence=())))
    agreeing = [one for metric in compared if (one := _agreement(metric, scores[metric], labels)).labels]
    if not agreeing:
        return None
    measure = agreeing[0].metric
    strata = {True: Stratum(), False: Stratum()}
    for at, score in scores[measure]:
        label = labels.get(at)
        strata[score.label == "fail"] += Stratum(answers=1, labels=label is not None, failing=label is False)
    has_labels = evaluation.summary[measure].labelled > 0
    rate = rate_by_labels(failing=strata[True], passing=strata[False]) if has_labels else None
    return LabelAgreement(label=evaluation.label_name, metrics=agreeing, measure=measure, failures=rate)


def _agreement(metric: str, scores: Iterable[tuple[int, Score]], labels: Mapping[int, bool]) -> MetricAgreement:
    labelled = [(labels[row], score) for row, score in scores if row in labels]
    values, good = [score.value for _, score in labelled], [label for label, _ in labelled]
    ranked = _figure(good, auroc(values, good), metric)
    # Only a score that passes or fails says what a label says.
    told = [(label, score.label == "pass") for label, score in labelled if score.label is not None]
    passes, truths = [float(is_passing) for _, is_passing in told], [label for label, _ in told]
    right = _figure(truths, balanced_accuracy(passes, truths, 0.5), metric) if told else None
    best = right or ranked
    # An interval shrinks with the root of the number.
    times = 0.0 if best is None else ((best.upper - best.lower) / 2 / _CLOSE) ** 2
    return MetricAgreement(
        metric=metric,
        labels=len(labelled),
        good=sum(good),
        told=len(told),
        auroc=ranked,
        balanced_accuracy=right,
        missing_labels=None if best is None else max(round(len(labelled) * (times - 1)), 0),
    )


def _figure(good: Sequence[bool], figure: Callable[[Weights], float], seed: str) -> Figure | None:
    """The figure with its interval; None if it is undefined."""
    estimate = Bootstrap([str(at) for at in range(len(good))], seed=seed).estimate(figure)
    if math.isnan(estimate.value):
        return None
    lower, upper = estimate.interval
    # Few labels of a kind resample alike: a share of them is bounded by the rule of three all the same.
    rarer = min(sum(good), len(good) - sum(good))
    if lower == upper or rarer < _FEW:
        reach = 1 - _TAIL ** (1 / rarer)
        lower, upper = min(lower, estimate.value - reach), max(upper, estimate.value + reach)
    return Figure(value=estimate.value, lower=max(lower, 0.0), upper=min(upper, 1.0))


def agreement_parts(label: LabelAgreement) -> Iterator[Any]:
    """What the command prints: texts, and a table of Rich."""
    table = text_table("metric", "labels\n(good)", "AUROC", "balanced\naccuracy", "labels\nmissing")
    for one in label.metrics:
        figures = (one.auroc, one.balanced_accuracy, one.missing_labels)
        table.add_row(
            one.metric, f"{one.labels:,} ({one.good:,})", *("-" if known is None else str(known) for known in figures)
        )
    yield table
    for one in label.metrics:
        if one.told < one.labels:
            yield f"{one.metric} leaves {one.labels - one.told:,} of {one.labels:,} open: its balanced accuracy is of the others"
    yield f"In brackets: 95 % intervals. Labels missing: how many more narrow the interval to ±{_CLOSE:.2f}.\n"
    yield label.rate_in_words
