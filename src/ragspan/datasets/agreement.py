"""What people say of the responses in a table, and how well the metrics agree with them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from ragspan.datasets.results import Evaluation, ResultRow
from ragspan.metrics.agreement import Bootstrap, Estimate, auroc, balanced_accuracy
from ragspan.metrics.rates import LabelCounts, RateEstimate, estimate_rate, wilson_interval

CLOSE: Final = 0.05
"""How near a figure should be known: its 95 % interval ends that far from it."""
_BINS: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Bin:
    """The labelled responses whose scores are in one fifth of the scale."""

    low: float
    high: float
    """Belongs to the next bin, but for the last one."""
    responses: int
    good: float
    """The share of them that the label calls good."""
    interval: tuple[float, float]
    """Of that share, 95 %."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricAgreement:
    """How well one metric agrees with the labels of a table."""

    metric: str
    labels: int
    """Rows with a label and a score."""
    good: int
    """Of these, the rows that the label calls good."""
    auroc: Estimate
    """How probably a good response has a higher score than a bad one; .5 is chance."""
    balanced_accuracy: Estimate | None
    """The mean of the shares that the metric's own threshold labels right, of good and of bad ones; None without threshold."""
    bins: Sequence[Bin]
    rate: RateEstimate | None
    """How many of all scored rows fail by the label's standard; None with few labels, or without threshold."""
    missing: int | None
    """About how many more labels make the balanced accuracy, else the AUROC, known to within `CLOSE`; None if it is undefined."""


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
    ranked = bootstrap.estimate(auroc(values, good))
    right = None if threshold is None else bootstrap.estimate(balanced_accuracy(values, good, threshold))
    return MetricAgreement(
        metric=metric,
        labels=len(labelled),
        good=sum(good),
        auroc=ranked,
        balanced_accuracy=right,
        bins=_bins(values, good),
        rate=None if threshold is None else estimate_rate(_counts(results, labels)),
        missing=_missing(right or ranked, len(labelled)),
    )


def _counts(results: Iterable[ResultRow], labels: Mapping[int, bool]) -> LabelCounts:
    kinds = [(result.label == "fail", labels.get(result.row)) for result in results]
    return LabelCounts(
        both=kinds.count((True, False)),
        metric_only=kinds.count((True, True)),
        label_only=kinds.count((False, False)),
        neither=kinds.count((False, True)),
        failing=kinds.count((True, None)),
        passing=kinds.count((False, None)),
    )


def _bins(values: Sequence[float], good: Sequence[bool]) -> list[Bin]:
    members: dict[int, list[bool]] = {}
    for value, label in zip(values, good, strict=True):
        members.setdefault(min(int(value * _BINS), _BINS - 1), []).append(label)
    return [
        Bin(
            low=number / _BINS,
            high=(number + 1) / _BINS,
            responses=len(inside),
            good=sum(inside) / len(inside),
            interval=wilson_interval(sum(inside) / len(inside), len(inside)),
        )
        for number, inside in sorted(members.items())
    ]


def _missing(figure: Estimate, labels: int) -> int | None:
    """An interval shrinks with the root of the number."""
    low, high = figure.interval
    half = (high - low) / 2
    if math.isnan(half):
        return None
    return max(round(labels * ((half / CLOSE) ** 2 - 1)), 0)


# Shown ----------------------------------------------------------------------------------------------------------------


def rate_in_words(metric: str, rate: RateEstimate) -> str:
    """The share of failing responses by metric and by labels, in a line."""
    return (
        f"{metric} fails {rate.by_metric:.1%} of the responses; corrected by {rate.labels:,} labels:"
        f" {rate.value:.1%} ({rate.lower:.1%} to {rate.upper:.1%})"
    )


def as_plain(agreement: MetricAgreement) -> dict[str, Any]:
    """The figures as JSON has them."""
    rate = agreement.rate
    return {
        "metric": agreement.metric,
        "labels": agreement.labels,
        "good": agreement.good,
        "auroc": _plain(agreement.auroc),
        "balanced_accuracy": _plain(agreement.balanced_accuracy),
        "missing_labels": agreement.missing,
        "calibration": [asdict(one) for one in agreement.bins],
        "failures": None
        if rate is None
        else {"by_metric": rate.by_metric, "estimate": rate.value, "lower": rate.lower, "upper": rate.upper},
    }


def _plain(estimate: Estimate | None) -> Mapping[str, float] | None:
    if estimate is None or math.isnan(estimate.value):
        return None
    low, high = estimate.interval
    return {"value": estimate.value, "lower": low, "upper": high}


def agreement_tables(found: Sequence[MetricAgreement]) -> Iterator[Any]:
    """What the command prints: texts, and tables of Rich."""
    table = text_table("", "metric", "labels\n(good)", "AUROC", "balanced\naccuracy", "labels\nmissing")
    for one in found:
        missing = "-" if one.missing is None else f"{one.missing:,}"
        labels = f"{one.labels:,} ({one.good:,})"
        table.add_row(one.metric, labels, _cell(one.auroc), _cell(one.balanced_accuracy), missing)
    yield table
    yield f"In brackets: 95 % intervals. Labels missing: so many more would narrow the interval to ±{CLOSE:.2f}.\n"
    for one in found:
        table = text_table(f"{one.metric}: how many responses are good, by score", "score", "responses", "good", "")
        for held in one.bins:
            low, high = held.interval
            share = f"{held.good:.0%} ({low:.0%} to {high:.0%})"
            table.add_row(
                f"{held.low:.1f} to {held.high:.1f}", f"{held.responses:,}", share, "█" * round(20 * held.good)
            )
        yield table
        if one.rate is not None:
            yield rate_in_words(one.metric, one.rate) + "\n"


def text_table(title: str, *headings: str) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in {"", "metric"} else "right", no_wrap=True)
    return table


def _cell(estimate: Estimate | None) -> str:
    if estimate is None or math.isnan(estimate.value):
        return "-"
    low, high = estimate.interval
    return f"{estimate.value:.2f} ({low:.2f} to {high:.2f})".replace("0.", ".").replace("1.00", "1")
