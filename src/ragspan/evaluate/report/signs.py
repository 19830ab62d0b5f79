"""Signs of risk in words: what a reader of a report should look at, the gravest first. All limits are here.

To accept or reject a system, choose thresholds of your own (`--fail-under`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.summaries import MetricSummary, named_counts
from ragspan.metrics.metric_catalogue import guide_of

_DEFAULT_THRESHOLD = 0.5
"""For a metric that has no threshold."""
_VERY_LOW = 0.75
"""Of its threshold, below which a mean or a median is very low."""
_FEW_PASS = 0.4
"""With a smaller share of answers that pass, most answers fail by more than chance and a strict judge explain."""
_MANY_FAIL = 0.2
"""A metric that so many answers fail is of high risk."""
_MANY_NOT_SCORED, _MANY_FAILURES = 0.2, 0.02
"""Of all answers; a metric that failed, where it should have had a score, is a fault in the judging."""
_FEW_SCORES = 30
"""With fewer scores than that, all figures are rough."""
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
    by_metric = evaluation.summary
    worst = max(by_metric.values(), key=lambda one: one.failing)
    by = "" if worst.asked is None else " by the embedded judge"
    if worst.failing:
        share = worst.failing / worst.labelled
        open_ones = f"; {worst.unlabelled}" if worst.unlabelled else ""
        figures = f"{worst.failing:,} of {worst.labelled:,} answers fail it{by} ({share:.0%}{open_ones}); no metric fails more."
        yield _sign(f"Begin with {worst.metric}", figures, is_high=share >= _MANY_FAIL)
    causes = max((one.causes for one in by_metric.values()), key=lambda one: sum(one.values()))
    for cause, count in list(causes.items())[:1]:
        figures = f"{count:,} of the {sum(causes.values()):,} failing answers whose cause is known."
        yield _sign(f"The commonest cause: {cause.replace('_', ' ')}", figures, is_high=False)
    groups = [
        (one.failing / one.labelled, one.labelled, name, value, one)
        for name, values in evaluation.by_dimension.items()
        for value, summaries in values.items()
        for one in summaries.values()
        if one.labelled >= _SMALLEST_GROUP
    ]
    for share, count, name, value, one in [max(groups, key=lambda group: group[:2])] if groups else ():
        overall = by_metric[one.metric]
        if share >= (of_all := overall.failing / overall.labelled) + _CLEARLY_WORSE:
            figures = f"{one.failing:,} of its {count:,} answers fail {one.metric}{by} ({share:.0%}), of all answers {of_all:.0%}."
            yield _sign(f"The worst group: {name} {value}", figures, is_high=True)


def _of_metric(summary: MetricSummary) -> Iterator[Sign]:
    """A typical answer that fails is high risk only where few answers pass, or where it is very low: judges are stricter than people."""
    missing = sum(summary.not_scored.values())
    rows = summary.scored + missing
    has_failed = summary.failed >= _MANY_FAILURES * rows
    if missing and (missing >= _MANY_NOT_SCORED * rows or has_failed or not summary.scored):
        reasons = named_counts(summary.not_scored)
        figures = f"{missing:,} of {rows:,} answers have no score ({missing / rows:.0%}): {reasons}."
        title = "the metric failed on many answers" if has_failed else "many answers have no score"
        more = " A failure is a fault in the judging, not in the answer." if summary.failed else ""
        yield _sign(title, figures, f"the figures describe the other answers only.{more}", is_high=True)
    if summary.mean is None or summary.median is None or summary.maximum is None:
        return
    threshold = _DEFAULT_THRESHOLD if summary.threshold is None else summary.threshold
    advice = guide.when_low if (guide := guide_of(summary.metric)) is not None else None
    # As they are shown: a sign should not depend on a digit that nobody sees.
    shown = {"mean": round(summary.mean, 2), "median": round(summary.median, 2)}
    low = {name: value for name, value in shown.items() if value < threshold}
    passing = f"a pass begins at {threshold:.2f}" if summary.labelled else "the metric has no threshold"
    if summary.maximum < threshold:
        figures = f"The best of {summary.scored:,} scores is {summary.maximum:.2f}; {passing}."
        yield _sign("no answer passes", figures, advice, is_high=True)
    elif low:
        few_pass = summary.labelled > 0 and summary.passed < _FEW_PASS * summary.labelled
        is_grave = few_pass or min(low.values()) < _VERY_LOW * threshold
        figures = f"The {' and the '.join(f'{name} is {value:.2f}' for name, value in low.items())}; {passing}."
        yield _sign("most answers fail" if few_pass else f"low {' and '.join(low)}", figures, advice, is_high=is_grave)
    if summary.scored < _FEW_SCORES:
        figures = f"Only {summary.scored:,} answers have a score: all figures of this metric are rough."
        yield _sign("few scores", figures, is_high=False)
