"""What people say of the responses in a table, and how well the metrics that measure it agree with them.

A label says one thing, and has one rate. `measures_of` names the metrics that measure it, by the name of its column; the first of
them is *the* measure, by which the rate of the responses without a label is estimated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ragspan.evaluate.agreement import Bootstrap, Estimate, auroc, balanced_accuracy
from ragspan.evaluate.evaluated import Evaluation, text_table
from ragspan.evaluate.rates import LEAST_LABELS, RateEstimate, Stratum, rate_by_labels
from ragspan.evaluate.results import ResultRow

CLOSE: Final = 0.05
"""How near a figure should be known: its 95 % interval ends that far from it."""
_BINS: Final = 5
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
        text = f"{self.value:.2f} ({self.lower:.2f} to {self.upper:.2f})"
        return text.replace("0.", ".").replace("1.00", "1")


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
    rows: dict[str, list[ResultRow]] = {metric: [] for metric in compared}
    for result in evaluation.results():
        if result.score is not None and result.metric in rows:
            rows[result.metric].append(result)
    found = (
        _agreement(metric, rows[metric], evaluation.labels, evaluation.summary[metric].threshold) for metric in compared
    )
    agreeing = [one for one in found if one.labels]
    if not agreeing:
        return None
    measure = agreeing[0].metric
    has_threshold = evaluation.summary[measure].threshold is not None
    return LabelAgreement(
        label=evaluation.label_name,
        metrics=agreeing,
        measure=measure,
        failures=_failures(rows[measure], evaluation.labels) if has_threshold else None,
    )


def _agreement(
    metric: str, results: Sequence[ResultRow], labels: Mapping[int, bool], threshold: float | None
) -> MetricAgreement:
    labelled = [result for result in results if result.row in labels]
    values = [result.score or 0.0 for result in labelled]
    good = [labels[result.row] for result in labelled]
    bootstrap = Bootstrap([str(result.row) for result in labelled], seed=metric)
    rarer = min(sum(good), len(good) - sum(good))
    ranked = _figure(bootstrap.estimate(auroc(values, good)), rarer)
    right = (
        None if threshold is None else _figure(bootstrap.estimate(balanced_accuracy(values, good, threshold)), rarer)
    )
    best = right or ranked
    # An interval shrinks with the root of the number.
    times = 0.0 if best is None else ((best.upper - best.lower) / 2 / CLOSE) ** 2
    return MetricAgreement(
        metric=metric,
        labels=len(labelled),
        good=sum(good),
        auroc=ranked,
        balanced_accuracy=right,
        missing_labels=None if best is None else max(round(len(labelled) * (times - 1)), 0),
        calibration=_bins(values, good),
    )


def _figure(estimate: Estimate, rarer: int) -> Figure | None:
    """The figure, unless it is undefined.

    Args:
        estimate: of the figure.
        rarer: labels of the rarer kind, good or bad.
    """
    value = estimate.value
    if math.isnan(value):
        return None
    lower, upper = estimate.interval
    if lower == upper:  # no resample differs, though there may be two labels: a share of them is bounded all the same
        reach = 1 - _TAIL ** (1 / rarer)
        lower, upper = max(value - reach, 0.0), min(value + reach, 1.0)
    return Figure(value=value, lower=lower, upper=upper)


def _failures(results: Iterable[ResultRow], labels: Mapping[int, bool]) -> RateEstimate | None:
    strata = {True: Stratum(), False: Stratum()}
    for result in results:
        label = labels.get(result.row)
        strata[result.label == "fail"] += Stratum(answers=1, labels=label is not None, failing=label is False)
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
    return (
        f"By the label {found.label!r} {rate.value:.1%} of the {rate.answers:,} responses fail ({rate.lower:.1%} to"
        f" {rate.upper:.1%}), from {rate.labels:,} labels; {found.measure} alone fails {rate.by_metric:.1%}"
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
    yield f"In brackets: 95 % intervals. Labels missing: how many more narrow the interval to ±{CLOSE:.2f}.\n"
    for one in found:
        table = text_table(f"{one.metric}: how many responses are good, by score", "score", "responses", "good", "")
        for held in one.calibration:
            bar = "█" * round(20 * held.good)
            table.add_row(f"{held.low:.1f} to {held.high:.1f}", f"{held.responses:,}", f"{held.good:.0%}", bar)
        yield table
    yield rate_in_words(label)
