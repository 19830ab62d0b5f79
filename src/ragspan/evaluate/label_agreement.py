"""What people say of the responses in a table: how well scores agree with it, and how many responses really fail.

A label says one thing, and has one rate. `measures_of` names the metrics that measure it, by the name of its column; the first of
them is *the* measure, by which the rate of the responses without a label is estimated.
"""

from __future__ import annotations

import math
import re
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

CLOSE: Final = 0.05
"""How near a figure should be known: its 95 % interval ends that far from it."""
_BINS: Final = 5
_FEW: Final = 10
"""Labels of the rarer kind, with which no resample differs much."""
_TAIL: Final = 0.025
"""At each end of a 95 % interval."""
_SUPPORTED: Final = ("context_adherence", "faithfulness", "faithfulness_hhem")
"""Adherence first: it is of the whole response, as a label is, and ranks responses better than the share of their claims."""
_MEASURES: Final = {
    r"complete|covera|thorough|everything": ("completeness",),
    r"(context|chunk|document|passage|retriev|source).*(relevan|useful)": (
        "context_relevance",
        "context_utilization",
    ),
    r"relevan|on.?topic|address|responsive|answers": ("answer_relevance",),
}
"""By a pattern for the label's name; any other label says whether a response is supported."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A figure with its 95 % interval."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.lower:.2f} to {self.upper:.2f})"


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """The labelled responses whose scores are in one fifth of the scale."""

    low: float
    high: float
    """Belongs to the next bin, but for the last one."""
    responses: int
    good: float
    """The share of them that the label calls good."""


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
    """About how many more labels make the balanced accuracy, else the AUROC, known to within `CLOSE`."""
    calibration: Sequence[Bin]


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


def measures_of(label: str) -> tuple[str, ...]:
    """The metrics that measure what a label of this name says, the best one first."""
    found = (metrics for pattern, metrics in _MEASURES.items() if re.search(pattern, label, re.IGNORECASE))
    return next(found, _SUPPORTED)


def agreement(evaluation: Evaluation, *, with_all: bool = False) -> LabelAgreement | None:
    """How well the metrics of the evaluation agree with its label; None where no row has both a label and a score.

    Each row counts as a source of its own: responses to one question should not be labelled many times over.

    Args:
        evaluation: of a table with labels.
        with_all: compare metrics that measure something else, too. They are compared in any case if no other is there.
    """
    if not evaluation.labels:
        return None
    measures = [metric for metric in measures_of(evaluation.label_name) if metric in evaluation.metrics]
    others = [metric for metric in evaluation.metrics if metric not in measures]
    compared = [*measures, *others] if with_all or not measures else measures
    scores: dict[str, list[tuple[int, Score]]] = {metric: [] for metric in compared}
    for row in evaluation.all_rows():
        for metric in compared:
            if isinstance(score := row.outcomes.get(metric), Score):
                scores[metric].append((row.row, replace(score, evidence=())))
    found = (_agreement(metric, scores[metric], evaluation.labels) for metric in compared)
    agreeing = [one for one in found if one.labels]
    if not agreeing:
        return None
    measure = agreeing[0].metric
    has_labels = evaluation.summary[measure].labelled > 0
    return LabelAgreement(
        label=evaluation.label_name,
        metrics=agreeing,
        measure=measure,
        failures=_failures(scores[measure], evaluation.labels) if has_labels else None,
    )


def _agreement(metric: str, scores: Sequence[tuple[int, Score]], labels: Mapping[int, bool]) -> MetricAgreement:
    labelled = [(labels[row], score) for row, score in scores if row in labels]
    values, good = [score.value for _, score in labelled], [label for label, _ in labelled]
    ranked = _figure(values, good, auroc(values, good), metric)
    # Only a score that passes or fails says what a label says.
    told = [(label, score.label == "pass") for label, score in labelled if score.label is not None]
    passes, truths = [float(is_passing) for _, is_passing in told], [label for label, _ in told]
    right = _figure(passes, truths, balanced_accuracy(passes, truths, 0.5), metric) if told else None
    best = right or ranked
    # An interval shrinks with the root of the number.
    times = 0.0 if best is None else ((best.upper - best.lower) / 2 / CLOSE) ** 2
    return MetricAgreement(
        metric=metric,
        labels=len(labelled),
        good=sum(good),
        told=len(told),
        auroc=ranked,
        balanced_accuracy=right,
        missing_labels=None if best is None else max(round(len(labelled) * (times - 1)), 0),
        calibration=_bins(values, good),
    )


def _figure(
    values: Sequence[float], good: Sequence[bool], figure: Callable[[Weights], float], seed: str
) -> Figure | None:
    """The figure with its interval; None if it is undefined, or if too little is known for an interval."""
    rarer = min(sum(good), len(good) - sum(good))
    estimate = Bootstrap([str(at) for at in range(len(values))], seed=seed).estimate(figure)
    if math.isnan(estimate.value):
        return None
    lower, upper = estimate.interval
    # Few labels of a kind resample alike: a share of them is bounded by the rule of three all the same.
    reach = 1 - _TAIL ** (1 / rarer)
    if lower == upper or rarer < _FEW:
        lower, upper = min(lower, estimate.value - reach), max(upper, estimate.value + reach)
    return Figure(value=estimate.value, lower=max(lower, 0.0), upper=min(upper, 1.0))


def _failures(scores: Iterable[tuple[int, Score]], labels: Mapping[int, bool]) -> RateEstimate | None:
    strata = {True: Stratum(), False: Stratum()}
    for row, score in scores:
        label = labels.get(row)
        strata[score.label == "fail"] += Stratum(answers=1, labels=label is not None, failing=label is False)
    return rate_by_labels(failing=strata[True], passing=strata[False])


def _bins(values: Sequence[float], good: Sequence[bool]) -> list[Bin]:
    members: dict[int, list[bool]] = {}
    for value, label in zip(values, good, strict=True):
        members.setdefault(min(int(value * _BINS), _BINS - 1), []).append(label)
    return [
        Bin(low=at / _BINS, high=(at + 1) / _BINS, responses=len(inside), good=sum(inside) / len(inside))
        for at, inside in sorted(members.items())
    ]


# Shown ----------------------------------------------------------------------------------------------------------------


def rate_in_words(found: LabelAgreement) -> str:
    """The share of responses that fail by the label, in a line."""
    rate = found.failures
    if rate is None:
        return f"How many responses fail by the label {found.label!r} cannot be said: it takes {LEAST_LABELS} labels at least"
    # Where all responses have a label the share is counted, and has no interval.
    interval = f" ({rate.lower:.1%} to {rate.upper:.1%})" if rate.labels < rate.answers else ""
    return (
        f"By the label {found.label!r} {rate.value:.1%} of the {rate.answers:,} responses fail{interval},"
        f" from {rate.labels:,} labels; {found.measure} alone fails {rate.by_metric:.1%}"
    )


def agreement_tables(label: LabelAgreement) -> Iterator[Any]:
    """What the command prints: texts, and tables of Rich."""
    found = label.metrics
    table = text_table("", "metric", "labels\n(good)", "AUROC", "balanced\naccuracy", "labels\nmissing")
    for one in found:
        figures = (one.auroc, one.balanced_accuracy, one.missing_labels)
        shown = (
            "-" if figure is None else f"{figure:,}" if isinstance(figure, int) else str(figure) for figure in figures
        )
        table.add_row(one.metric, f"{one.labels:,} ({one.good:,})", *shown)
    yield table
    for one in found:
        if one.told < one.labels:
            yield f"{one.metric} leaves {one.labels - one.told:,} of {one.labels:,} open: its balanced accuracy is of the others"
    yield f"In brackets: 95 % intervals. Labels missing: how many more narrow the interval to ±{CLOSE:.2f}.\n"
    for one in found:
        table = text_table(f"{one.metric}: how many responses are good, by score", "score", "responses", "good", "")
        for held in one.calibration:
            bar = "█" * round(20 * held.good)
            table.add_row(f"{held.low:.1f} to {held.high:.1f}", f"{held.responses:,}", f"{held.good:.0%}", bar)
        yield table
    yield rate_in_words(label)
