"""Signs of high risk in the distribution of a metric's scores, in words with the figures behind them.

All limits stand here. They are meant to point a reader to what deserves a look, not to accept or reject a system: for
that, choose thresholds of your own (`--fail-under`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragspan.datasets.report.guides import GUIDES, REASONS
from ragspan.datasets.results import MetricSummary

Level: TypeAlias = Literal["high", "notice"]

DEFAULT_THRESHOLD = 0.5
"""Stands in for the threshold of a metric that has none."""
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
    low = {name: value for name, value in _centres(summary).items() if value < threshold}
    if not low:
        return None
    is_very_low = min(low.values()) < VERY_LOW * threshold
    few_pass = summary.threshold is not None and summary.passed < FEW_PASS * summary.scored
    return Sign(
        metric=summary.metric,
        level="high" if is_very_low or few_pass else "notice",
        title="Most answers fail" if few_pass else f"{'Very low' if is_very_low else 'Low'} {' and '.join(low)}",
        figures=f"The {' and the '.join(f'{name} is {value:.2f}' for name, value in low.items())}; {_passing(summary)}.",
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
    if summary.threshold is not None and summary.scored - summary.passed < MANY_FAIL * summary.scored:
        return None
    if deviation < WIDE_DEVIATION:
        return None
    return Sign(
        metric=summary.metric,
        level="notice",
        title="High deviation",
        figures=f"Standard deviation {deviation:.2f} around a mean of {summary.mean or 0:.2f}; evenly spread scores "
        "would have 0.29. The mean stands for few of the answers.",
        advice="find out what sets the low answers apart: a kind of question, a source, a model. Filter the worst "
        "answers below by this metric.",
    )


def _gaps(summary: MetricSummary) -> Sign | None:
    """Answers without a score, whose number a mean cannot show."""
    missing = sum(summary.not_scored.values())
    failed = summary.failed
    rows = summary.scored + missing
    if not missing or (missing < MANY_NOT_SCORED * rows and failed < MANY_FAILURES * rows and summary.scored):
        return None
    return Sign(
        metric=summary.metric,
        level="high",
        title="The metric failed on many answers" if failed >= MANY_FAILURES * rows else "Many answers have no score",
        figures=f"{missing:,} of {rows:,} answers have no score ({missing / rows:.0%}): {_counted(summary.not_scored)}.",
        advice="the figures describe the other answers only. "
        + ("A failure is a fault in the judging, not in the answer." if failed else _main_reason(summary.not_scored)),
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


def _centres(summary: MetricSummary) -> dict[str, float]:
    """Mean and median as they are shown: a sign should not depend on a digit that nobody sees."""
    centres = {"mean": summary.mean, "median": summary.median}
    return {name: round(value, 2) for name, value in centres.items() if value is not None}


def _passing(summary: MetricSummary) -> str:
    if summary.threshold is None:
        return f"the metric has no threshold, {DEFAULT_THRESHOLD:.2f} is the middle of the scale"
    return f"a pass begins at {summary.threshold:.2f}, and {summary.passed / summary.scored:.0%} of the answers pass"


def _threshold(summary: MetricSummary) -> float:
    return DEFAULT_THRESHOLD if summary.threshold is None else summary.threshold


def _counted(reasons: Mapping[str, int]) -> str:
    named = [f"{reason} {count:,}" for reason, count in list(reasons.items())[:_SHOWN_REASONS]]
    return ", ".join(named) + (", …" if len(reasons) > _SHOWN_REASONS else "")


def _main_reason(reasons: Mapping[str, int]) -> str:
    reason = max(reasons, key=reasons.__getitem__)
    return f"Most often {REASONS.get(reason, reason)}."


def _advice(metric: str) -> str | None:
    return GUIDES[metric].when_low if metric in GUIDES else None


_SHOWN_REASONS = 4
