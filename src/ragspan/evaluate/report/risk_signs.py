"""What a metric's scores say: how they are distributed, and signs of high risk in words.

All limits of the signs are here. Signs show a reader where to look. To accept or reject a system, choose thresholds of your
own (`--fail-under`).

The words about reasons are those of `docs/metrics.md`; a test compares the two.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ragspan.evaluate.summaries import MetricSummary
from ragspan.metrics.metric_catalogue import guide_of

Level: TypeAlias = Literal["high", "notice"]

BINS = 10
"""Of a histogram, each 0.1 wide; 1.0 belongs to the last."""
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
_REACH = 1.5  # interquartile ranges that a whisker may be long (Tukey)


CAUSES: Mapping[str, str] = {
    "lost_before_prompt": "a document that was retrieved, and did not reach the prompt, supports what the contexts do not",
    "cut": "the part of a document that was cut off supports it",
    "unsupported": "nothing that was retrieved supports it",
}
REASONS: Mapping[str, str] = {
    "answer_aborted": "the request was cancelled, or the reader closed the stream early",
    "answer_error": "the request raised an exception",
    "interrupted": "a graph stopped to wait for a person",
    "no_response": "the caller received no text",
    "no_question": "there is no question, and the metric needs one",
    "contexts_unknown": "in a table, the cell is empty; in an application, no callback showed the documents that the model saw: use"
    " ragspan.record_contexts(docs)",
    "no_contexts": "nothing was retrieved, or nothing retrieved reached the prompt",
    "not_exported": "a judge would be paid, and no emitter has anybody to send the score to: the SDK is switched off, "
    "there is no exporter, or its provider was shut down",
    "not_sampled": "the trace is not sampled, or the sample rate omitted the answer",
    "budget_exhausted": "the engine's budget is spent, and there is no fallback judge",
    "no_claims": "the response makes no claims (a greeting, thanks, a question back), or only restates the question",
    "cannot_tell": "the judge cannot tell: claims of which it is unsure decide, or words do not show whether a refusal, a bare yes or no, or a derived number is right",
    "refusal": "the response declines as a whole, and the judge finds that right; context_utilization has this reason for every response that declines",
    "not_from_a_model": "a model answered, but the response is not its words: a block, a limit, a template",
    "too_many_contexts": "the metric asks about each context, and there are more than the judge can distinguish: 1,000 for the"
    " embedded judge, for an LLM judge as many as fit its prompt",
    "language": "the response is in another language than the contexts, and the embedded judge compares words",
}
"""Why a metric of ragspan's has no score; other reasons are those of other metrics, and kinds of failures."""


# Distribution ---------------------------------------------------------------------------------------------------------


class Bar(NamedTuple):
    """One bar of a histogram."""

    span: str
    """From where to where, in words."""
    answers: int
    role: Literal["pass", "fail", "bar"]
    """Whether scores in there pass; `bar` where some do, or where there is no threshold."""


class Distribution(NamedTuple):
    """The histogram and the box plot of at least one score."""

    bars: Sequence[Bar]
    """From the lowest scores to the highest: from 0.0 to below 0.1, and so on, in `BINS` bins."""
    lower_quartile: float
    median: float
    upper_quartile: float
    lower_whisker: float
    """The lowest score within one and a half interquartile ranges of the box."""
    upper_whisker: float
    outliers: int
    """Scores beyond the whiskers."""


def distribution(values: Sequence[float], threshold: float | None = None) -> Distribution | None:
    """The distribution of scores from 0 to 1; None if there is none."""
    if not values:
        return None
    ordered = sorted(values)
    spread = ordered if len(ordered) > 1 else ordered * 2
    lower, median, upper = statistics.quantiles(spread, n=4, method="inclusive")
    reach = _REACH * (upper - lower)
    inside = [value for value in ordered if lower - reach <= value <= upper + reach]
    counts = Counter(min(int(value * BINS), BINS - 1) for value in ordered)
    bars = [_bar(place / BINS, (place + 1) / BINS, counts[place], threshold) for place in range(BINS)]
    return Distribution(bars, lower, median, upper, inside[0], inside[-1], len(ordered) - len(inside))


def _bar(low: float, high: float, answers: int, threshold: float | None) -> Bar:
    is_mixed = threshold is None or low < threshold < high
    role: Literal["pass", "fail", "bar"] = "bar" if is_mixed else "pass" if low >= (threshold or 0) else "fail"
    return Bar(f"{low:.1f} to {'' if high == 1 else 'below '}{high:.1f}", answers, role)


# Signs ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
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
        found += [_low(summary), _spread(summary)]
    if 0 < summary.scored < FEW_SCORES:
        figures = f"Only {summary.scored:,} answers have a score: all figures of this metric are rough."
        found.append(Sign(summary.metric, "notice", "Few scores", figures))
    return sorted(filter(None, found), key=lambda sign: sign.level != "high")


def _low(summary: MetricSummary) -> Sign | None:
    """A mean or median below the threshold: by the metric's own measure, the typical answer is not good enough.

    Judges are stricter than people where an answer fails by a single claim, so it is high risk only where few answers
    pass, or where the typical score is very low.
    """
    threshold = DEFAULT_THRESHOLD if summary.threshold is None else summary.threshold
    guide = guide_of(summary.metric)
    advice = guide.when_low if guide is not None else None
    mean, maximum = summary.mean or 0.0, summary.maximum or 0.0
    if maximum < threshold:
        figures = f"The best of {summary.scored:,} scores is {maximum:.2f}, the mean {mean:.2f}; a pass begins at {threshold:.2f}."
        return Sign(summary.metric, "high", "Low maximum: no answer passes", figures, advice)
    # As they are shown: a sign should not depend on a digit that nobody sees.
    shown = {"mean": round(mean, 2), "median": round(summary.median or 0, 2)}
    low = {name: value for name, value in shown.items() if value < threshold}
    if not low:
        return None
    is_very_low = min(low.values()) < VERY_LOW * threshold
    few_pass = summary.labelled > 0 and summary.passed < FEW_PASS * summary.labelled
    if summary.labelled:
        passing = f"a pass begins at {threshold:.2f}, and {summary.passed / summary.labelled:.0%} of the answers pass"
    else:
        passing = f"the metric has no threshold, {DEFAULT_THRESHOLD:.2f} is the middle of the scale"
    title = "Most answers fail" if few_pass else f"{'Very low' if is_very_low else 'Low'} {' and '.join(low)}"
    figures = f"The {' and the '.join(f'{name} is {value:.2f}' for name, value in low.items())}; {passing}."
    return Sign(summary.metric, "high" if is_very_low or few_pass else "notice", title, figures, advice)


def _spread(summary: MetricSummary) -> Sign | None:
    deviation = summary.standard_deviation or 0.0
    few_fail = summary.failing is not None and summary.failing < MANY_FAIL * summary.labelled
    if few_fail or deviation < WIDE_DEVIATION:
        return None
    return Sign(
        summary.metric,
        "notice",
        "High deviation",
        f"Standard deviation {deviation:.2f} around a mean of {summary.mean or 0:.2f}; evenly spread scores would have"
        " 0.29. Few answers are near the mean.",
        "find out what sets the low answers apart: a kind of question, a source, a model. Filter the worst answers below"
        " by this metric.",
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
    rest = ", …." if len(reasons) > _SHOWN_REASONS else "."
    most_often = max(reasons, key=reasons.__getitem__)
    cause = f"Most often {REASONS.get(most_often, most_often)}."
    if summary.failed:
        cause = "A failure is a fault in the judging, not in the answer."
    return Sign(
        summary.metric,
        "high",
        "The metric failed on many answers" if has_failed else "Many answers have no score",
        f"{missing:,} of {rows:,} answers have no score ({missing / rows:.0%}): {named}{rest}",
        f"the figures describe the other answers only. {cause}",
    )
