"""What a report opens with: how many answers fail, whether the gates held, who judged, and what to do first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ragspan.evaluate.evaluated import Evaluation
from ragspan.evaluate.label_agreement import MetricAgreement, agreement
from ragspan.evaluate.report.risk_signs import CAUSES
from ragspan.evaluate.summaries import MetricSummary
from ragspan.metrics.metric_catalogue import guide_of

_SMALLEST_GROUP = 5
"""Scored answers of a group, below which its share says little."""
_CLEARLY_WORSE = 0.1
"""By how much more of a group's answers fail than of all."""


class NotScored(NamedTuple):
    """A reason why answers have no score."""

    reason: str
    answers: int
    """By the metric that has most of them."""
    metrics: Sequence[str]


class Advice(NamedTuple):
    """One thing to do, with the figures that say why."""

    title: str
    figures: str
    what: str | None = None
    """To look at."""


def trust(evaluation: Evaluation) -> list[str]:
    """How far the judge can be trusted, in sentences."""
    found = agreement(evaluation)
    lines = [_agreement(one) for one in found.metrics if one.balanced_accuracy is not None] if found is not None else []
    if lines:
        return lines
    if not evaluation.judged:
        return []
    words = ""
    if any(judge.startswith("overlap") for judge in evaluation.judged):
        words = "The embedded judge (overlap) compares words and numbers, and understands no text: read some failing answers first. "
    return [
        f"{words}How well the judge agrees with people on your answers is not known: label some, and run ragspan agree."
    ]


def _agreement(one: MetricAgreement) -> str:
    return (
        f"{one.metric} agrees with your labels with a balanced accuracy of {one.balanced_accuracy}, over {one.labels:,} labels;"
        " .5 is chance, 1 is always."
    )


def first_steps(evaluation: Evaluation) -> list[Advice]:
    """What to do first: about the metric that most answers fail, its commonest cause, and the worst group."""
    return [*_worst_metric(evaluation), *_commonest_cause(evaluation), *_worst_group(evaluation)]


def _worst_metric(evaluation: Evaluation) -> Iterator[Advice]:
    rated = [(summary.failing or 0, summary) for summary in evaluation.summary.values()]
    count, summary = max(rated, key=lambda pair: pair[0], default=(0, MetricSummary(metric="")))
    if count:
        guide = guide_of(summary.metric)
        yield Advice(
            f"Begin with {summary.metric}",
            f"{count:,} of {summary.labelled:,} answers fail it{_by(summary)} ({count / summary.labelled:.0%}{_open(summary)}); no metric fails more.",
            guide.when_low if guide else None,
        )


def _commonest_cause(evaluation: Evaluation) -> Iterator[Advice]:
    known_by = max(evaluation.summary.values(), key=lambda one: sum(one.causes.values()), default=None)
    causes = Counter(known_by.causes if known_by is not None else {})
    for cause, count in causes.most_common(1):
        known = sum(causes.values())
        yield Advice(
            f"The commonest cause: {cause.replace('_', ' ')}",
            f"{count:,} of the {known:,} failing answers whose cause is known: {CAUSES[cause]}.",
        )


def _worst_group(evaluation: Evaluation) -> Iterator[Advice]:
    """Of all groups by a dimension, the one with the largest share of failing answers, if it is clearly larger."""
    groups = [
        ((one.failing or 0) / one.labelled, sum(_shares(summaries)), name, value, one)
        for name, values in evaluation.by_dimension.items()
        for value, summaries in values.items()
        for one in summaries.values()
        if one.labelled >= _SMALLEST_GROUP
    ]
    if not groups:
        return
    share, _, name, value, one = max(groups, key=lambda group: group[:2])
    overall = evaluation.summary[one.metric]
    of_all = (overall.failing or 0) / overall.labelled
    if share >= of_all + _CLEARLY_WORSE:
        yield Advice(
            f"The worst group: {name} {value}",
            f"{one.failing or 0:,} of its {one.labelled:,} answers fail {one.metric}{_by(one)} ({share:.0%}), of all answers {of_all:.0%}.",
        )


def worst_first(values: Mapping[str, Mapping[str, MetricSummary]]) -> list[tuple[str, Mapping[str, MetricSummary]]]:
    """The groups of a dimension, those first of which the largest share fails a metric, then others; the smallest ones last."""

    def order(group: tuple[str, Mapping[str, MetricSummary]]) -> tuple[bool, float, float]:
        shares = _shares(group[1])
        is_small = max((one.labelled for one in group[1].values()), default=0) < _SMALLEST_GROUP
        return is_small, -max(shares, default=0.0), -sum(shares)

    return sorted(values.items(), key=order)


def _shares(summaries: Mapping[str, MetricSummary]) -> list[float]:
    """The share of a group's answers that fail, by metric."""
    return [(one.failing or 0) / one.labelled for one in summaries.values() if one.labelled]


def not_scored(evaluation: Evaluation) -> list[NotScored]:
    """The reasons why answers have no score, the commonest first."""
    by_reason: dict[str, dict[str, int]] = {}
    for metric in evaluation.metrics:
        for reason, count in evaluation.summary[metric].not_scored.items():
            by_reason.setdefault(reason, {})[metric] = count
    found = [
        NotScored(reason=reason, answers=max(counted.values()), metrics=list(counted))
        for reason, counted in by_reason.items()
    ]
    return sorted(found, key=lambda one: -one.answers)


def _by(summary: MetricSummary) -> str:
    """Whose the figures are, where there are those of two judges."""
    return "" if summary.asked is None else " by the embedded judge"


def _open(summary: MetricSummary) -> str:
    return f"; {summary.unlabelled}" if summary.unlabelled else ""


def counts(metrics: Sequence[MetricSummary]) -> list[str]:
    """How many answers fail each metric, in words; the metrics that most fail first."""
    rated = sorted((one for one in metrics if one.failing is not None), key=lambda one: -(one.failing or 0))
    return [
        f"{one.metric} {one.failing:,} of {one.labelled:,} ({(one.failing or 0) / one.labelled:.0%}{_open(one)})"
        for one in rated
    ]
