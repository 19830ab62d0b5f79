"""Signs of high risk in the distribution of a metric's scores, in words with the figures behind them.

All limits are here. They point a reader to what deserves a look. To accept or reject a system, choose thresholds of your
own (`--fail-under`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragspan.datasets.report.guides import GUIDES, REASONS
from ragspan.datasets.results import MetricSummary

Level: TypeAlias = Literal["high", "notice"]

DEFAULT_THRESHOLD = 0.5
"""For a metric that has no threshold."""
VERY_LOW = 0.75
"""Of its threshold, below which a mean or a median is very low."""
FEW_PASS = 0.4
"""With a smaller share of answers that pass, most answers fail by more than chance and a strict judge explain."""
WIDE_DEVIATION = 0.3
"""Standard deviations from here on are high. Scores spread evenly over the whole scale have 0.29; the most there can be
is 0.5, for zeros and ones in equal numbers."""
MANY_FAIL = 0.2
"""A high deviation deserves a look only where at least this share of the answers fails: good answers and a few bad ones
deviate as much, and faithfulness is near 0 or 1 by its nature."""
MANY_NOT_SCORED = 0.2
"""Of all answers, from here on a large share."""
MANY_FAILURES = 0.02
"""Of all answers: a metric that failed, where it should have had a score, is a fault in the judging."""
FEW_SCORES = 30
"""With fewer scores than that, all figures are rough."""
_SHOWN_REASONS = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class Sign:
    """One thing about a metric that deserves a look."""

    metric: str
    level: Level
    title: str
    """A few words."""
    figures: str
    """The figures behind it, as a sentence."""
    advice: str | None = None
    """What to look at."""


def signs_of(summary: MetricSummary) -> list[Sign]:
    """The signs that a metric's scores give, those of high risk first."""
    found = [_gaps(summary)]
    if summary.scored:
        found += [_low_maximum(summary) or _low_centre(summary), _spread(summary), _few(summary)]
    return sorted(filter(None, found), key=lambda sign: sign.level != "high")


def _low_centre(summary: MetricSummary) -> Sign | None:
    """A mean or median below the threshold: by the metric's own measure, the typical answer is not good enough.

    Judges are stricter than people where an answer fails by a single claim, so it is high risk only where few answers
    pass, or where the typical score is very low.
    """
    threshold = _threshold(summary)
    # As they are shown: a sign should not depend on a digit that nobody sees.
    shown = {"mean": round(summary.mean or 0, 2), "median": round(summary.median or 0, 2)}
    low = {name: value for name, value in shown.items() if value < threshold}
    if not low:
        return None
    is_very_low = min(low.values()) < VERY_LOW * threshold
    few_pass = summary.threshold is not None and summary.passed < FEW_PASS * summary.scored
    if summary.threshold is None:
        passing = f"the metric has no threshold, {DEFAULT_THRESHOLD:.2f} is the middle of the scale"
    else:
        passing = f"a pass begins at {threshold:.2f}, and {summary.passed / summary.scored:.0%} of the answers pass"
    return Sign(
        metric=summary.metric,
        level="high" if is_very_low or few_pass else "notice",
        title="Most answers fail" if few_pass else f"{'Very low' if is_very_low else 'Low'} {' and '.join(low)}",
        figures=f"The {' and the '.join(f'{name} is {value:.2f}' for name, value in low.items())}; {passing}.",
        advice=_advice(summary.metric),
    )


def _low_maximum(summary: MetricSummary) -> Sign | None:
    if summary.maximum is None or summary.maximum >= _threshold(summary):
        return None
    return Sign(
        metric=summary.metric,
        level="high",
        title="Low maximum: no answer passes",
        figures=f"The best of {summary.scored:,} scores is {summary.maximum:.2f}, the mean {summary.mean or 0:.2f}; "
        f"a pass begins at {_threshold(summary):.2f}.",
        advice=_advice(summary.metric),
    )


def _spread(summary: MetricSummary) -> Sign | None:
    deviation = summary.standard_deviation or 0.0
    few_fail = summary.threshold is not None and summary.scored - summary.passed < MANY_FAIL * summary.scored
    if few_fail or deviation < WIDE_DEVIATION:
        return None
    return Sign(
        metric=summary.metric,
        level="notice",
        title="High deviation",
        figures=f"Standard deviation {deviation:.2f} around a mean of {summary.mean or 0:.2f}; evenly spread scores "
        "would have 0.29. Few answers are near the mean.",
        advice="find out what sets the low answers apart: a kind of question, a source, a model. Filter the worst "
        "answers below by this metric.",
    )


def _gaps(summary: MetricSummary) -> Sign | None:
    """Answers without a score, whose number a mean cannot show."""
    reasons = summary.not_scored
    missing = sum(reasons.values())
    rows = summary.scored + missing
    has_failed = summary.failed >= MANY_FAILURES * rows
    if not missing or (missing < MANY_NOT_SCORED * rows and not has_failed and summary.scored):
        return None
    named = ", ".join(f"{reason} {count:,}" for reason, count in list(reasons.items())[:_SHOWN_REASONS])
    most_often = max(reasons, key=reasons.__getitem__)
    return Sign(
        metric=summary.metric,
        level="high",
        title="The metric failed on many answers" if has_failed else "Many answers have no score",
        figures=f"{missing:,} of {rows:,} answers have no score ({missing / rows:.0%}): {named}"
        + (", …." if len(reasons) > _SHOWN_REASONS else "."),
        advice="the figures describe the other answers only. "
        + (
            "A failure is a fault in the judging, not in the answer."
            if summary.failed
            else f"Most often {REASONS.get(most_often, most_often)}."
        ),
    )


def _few(summary: MetricSummary) -> Sign | None:
    if summary.scored >= FEW_SCORES:
        return None
    return Sign(
        metric=summary.metric,
        level="notice",
        title="Few scores",
        figures=f"Only {summary.scored:,} answers have a score: all figures of this metric are rough.",
    )


def _threshold(summary: MetricSummary) -> float:
    return DEFAULT_THRESHOLD if summary.threshold is None else summary.threshold


def _advice(metric: str) -> str | None:
    return GUIDES[metric].when_low if metric in GUIDES else None
