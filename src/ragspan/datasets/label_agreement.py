"""What people say of the responses in a table, and how well the metrics agree with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ragspan.datasets.evaluated import Evaluation, text_table
from ragspan.datasets.results import ResultRow
from ragspan.metrics.agreement import Bootstrap, Estimate, auroc, balanced_accuracy
from ragspan.metrics.rates import RateEstimate, Stratum, rate_by_labels

CLOSE: Final = 0.05
"""How near a figure should be known: its 95 % interval ends that far from it."""
_BINS: Final = 5


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
    failures: RateEstimate | None
    """How many of all scored rows fail by the label's standard; None with few labels, or without threshold."""


def agreements(evaluation: Evaluation) -> list[MetricAgreement]:
    """How well each metric of the evaluation agrees with its labels; metrics without a labelled score are left out.

    Each row counts as a source of its own: responses to one question should not be labelled many times over.
    """
    if not evaluation.labels:
        return []
    rows: dict[str, list[ResultRow]] = {metric: [] for metric in evaluation.metrics}
    for result in evaluation.results():
        if result.score is not None:
            rows[result.metric].append(result)
    found = (
        _agreement(metric, rows[metric], evaluation.labels, evaluation.summary[metric].threshold) for metric in rows
    )
    return [one for one in found if one.labels]


def _agreement(
    metric: str, results: Sequence[ResultRow], labels: Mapping[int, bool], threshold: float | None
) -> MetricAgreement:
    labelled = [result for result in results if result.row in labels]
    values = [result.score or 0.0 for result in labelled]
    good = [labels[result.row] for result in labelled]
    bootstrap = Bootstrap([str(result.row) for result in labelled], seed=metric)
    ranked = _figure(bootstrap.estimate(auroc(values, good)))
    right = None if threshold is None else _figure(bootstrap.estimate(balanced_accuracy(values, good, threshold)))
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
        failures=None if threshold is None else _failures(results, labels),
    )


def _figure(estimate: Estimate) -> Figure | None:
    lower, upper = estimate.interval
    return None if math.isnan(estimate.value) else Figure(value=estimate.value, lower=lower, upper=upper)


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


def rate_in_words(metric: str, rate: RateEstimate) -> str:
    """The share of failing responses by metric and by labels, in a line."""
    return (
        f"{metric} fails {rate.by_metric:.1%} of the responses; corrected by {rate.labels:,} labels:"
        f" {rate.value:.1%} ({rate.lower:.1%} to {rate.upper:.1%})"
    )


def agreement_tables(found: Sequence[MetricAgreement]) -> Iterator[Any]:
    """What the command prints: texts, and tables of Rich."""
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
        if one.failures is not None:
            yield rate_in_words(one.metric, one.failures) + "\n"
