"""Signs of risk in words: what a reader of a report should look at, the gravest first. All limits are here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.summaries import MetricSummary, named_counts
from ragspan.metrics.metric_catalogue import guide_of

_VERY_LOW = 0.75
"""Of its threshold, below which a median is very low."""
_FEW_PASS = 0.4
"""With a smaller share of answers that pass, most answers fail by more than chance and a strict judge explain."""
_MANY_FAIL = 0.2
"""A metric that so many answers fail is of high risk."""
_MANY_NOT_SCORED, _MANY_FAILURES = 0.2, 0.02
"""Of all answers; a metric that failed, where it should have had a score, is a fault in the judging."""
_SMALLEST_GROUP, _CLEARLY_WORSE = 10, 0.1
"""Labelled answers of a group, below which its share says little, and by how much more of them fail than of all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """One thing that deserves a look."""

    level: Literal["high", "notice"]
    title: str
    """A few words."""
    figures: str
    """The figures behind it, as a sentence."""
    advice: str | None = None
    """What to look at."""
    metrics: tuple[str, ...] = ()
    """That have this sign with the same figures; none where it is of the whole table."""


def signs_of(evaluation: Evaluation) -> list[Sign]:
    """The signs that the scores of a table give, those of high risk first."""
    found: dict[Sign, list[str]] = {sign: [] for sign in _whole_table(evaluation)}
    for summary in evaluation.summary.values():
        for sign in _of_metric(summary):
            found.setdefault(sign, []).append(summary.metric)
    signs = [replace(sign, metrics=tuple(metrics)) for sign, metrics in found.items()]
    return sorted(signs, key=lambda sign: sign.level != "high")


def _sign(title: str, figures: str, advice: str | None = None, *, is_high: bool) -> Sign:
    return Sign(level="high" if is_high else "notice", title=title, figures=figures, advice=advice)


def _whole_table(evaluation: Evaluation) -> Iterator[Sign]:
    worst = max(evaluation.summary.values(), key=lambda one: one.failing)
    by = "" if worst.asked is None else " by the embedded judge"
    if worst.failing:
        share = worst.failing / worst.labelled
        figures = f"{worst.failing:,} of {worst.labelled:,} answers fail it{by} ({share:.0%}); no metric fails more."
        yield _sign(f"Begin with {worst.metric}", figures, is_high=share >= _MANY_FAIL)
    groups = [
        (one.failing / one.labelled, f"{name} {value}", one)
        for name, values in evaluation.by_dimension.items()
        for value, summaries in values.items()
        for one in summaries.values()
        if one.labelled >= _SMALLEST_GROUP
    ]
    for share, name, one in sorted(groups, key=lambda group: -group[0])[:1]:
        of_all = evaluation.summary[one.metric].failing / evaluation.summary[one.metric].labelled
        if share >= of_all + _CLEARLY_WORSE:
            failing = f"{one.failing:,} of its {one.labelled:,} answers fail {one.metric}{by}"
            yield _sign(
                f"The worst group: {name}", f"{failing} ({share:.0%}), of all answers {of_all:.0%}.", is_high=True
            )


def _of_metric(summary: MetricSummary) -> Iterator[Sign]:
    """A typical answer that fails is high risk only where few answers pass, or where it is very low: judges are stricter than people."""
    missing = sum(summary.not_scored.values())
    rows = summary.scored + missing
    if missing and (
        missing >= _MANY_NOT_SCORED * rows or summary.failed >= _MANY_FAILURES * rows or not summary.scored
    ):
        figures = (
            f"{missing:,} of {rows:,} answers have no score ({missing / rows:.0%}): {named_counts(summary.not_scored)}."
        )
        advice = "the figures describe the other answers only; a failure is a fault in the judging, not in the answer."
        yield _sign("many answers have no score", figures, advice, is_high=True)
    median, threshold = summary.median, summary.threshold
    if summary.labelled and median is not None and threshold is not None and round(median, 2) < threshold:
        few_pass = summary.passed < _FEW_PASS * summary.labelled
        figures = f"The median is {median:.2f}; a pass begins at {threshold:.2f}."
        guide = guide_of(summary.metric)
        is_grave = few_pass or median < _VERY_LOW * threshold
        yield _sign(
            "most answers fail" if few_pass else "low median", figures, guide and guide.when_low, is_high=is_grave
        )
