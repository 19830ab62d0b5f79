"""The scores of one metric over a table, added up, and the true share of failing answers where only some have a label that is trusted.

No figure here is NaN: where nothing was scored there is None. The share is estimated by strata: a kind of answers of which a random part
has a label, or all (W. G. Cochran, "Sampling techniques", 1977, chapter 5). The interval of each is Wilson's; their distances from the
estimate add up in squares (G. Y. Zou and A. Donner, Statistics in Medicine, 2008).
"""

from __future__ import annotations

import math
import statistics
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ragspan.metrics.doubt import Part, judged
from ragspan.metrics.metric import REFUSAL
from ragspan.outcomes import BUDGET_EXHAUSTED, Asked, MetricFailure, NotApplicable, Outcome, Score, ScreenScore

_BINS = 10
LEAST_LABELS: Final = 20
"""With fewer random ones there is no estimate."""
_LEAST_IN_STRATUM: Final = 5
"""With fewer labels a stratum says nothing by itself."""
_Z: Final = 1.959964
"""Of a normal distribution, 95 % are within this many standard deviations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedFigures:
    """What a judge says that was asked about a share of the rows: of the most doubtful ones and of a random part of the rest."""

    judge: str | None
    """None if it scored nothing."""
    doubtful: int
    """Rows that it scored because they are doubtful."""
    random: int
    """Rows that it scored because they were drawn at random."""
    fallbacks: Mapping[str, int]
    """Rows that it was asked about and did not score, by reason, where the embedded judge's score stands in."""
    failures: RateEstimate | None
    """The share of all rows that fail by this judge, estimated by strata: most rows that it has scored are doubtful. None where fewer
    than 20 rows of the random part have its score, or the metric has no threshold."""

    @property
    def scored(self) -> int:
        return self.doubtful + self.random


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSummary:
    """The distribution of one metric's scores, and why rows have none. Rows without a score are in no figure.

    Where a judge is asked about a share of the rows, all but `asked` is the embedded judge's over all rows: one judge, one figure.
    """

    metric: str
    scored: int = 0
    labelled: int = 0
    """Of the scored ones, those that pass or fail; of the others the judge cannot tell."""
    passed: int = 0
    """Of the labelled ones, those that pass."""
    not_scored: Mapping[str, int] = field(default_factory=dict)
    """Rows without a score by reason, the most frequent first."""
    failed: int = 0
    """Of those, the ones on which the metric failed: it should have had a score."""
    mean: float | None = None
    median: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    standard_deviation: float | None = None
    """Of a sample (divided by n - 1); None for fewer than two scores."""
    threshold: float | None = None
    """Values from here on pass; None where the metric has no threshold."""
    histogram: Sequence[int] = ()
    """Scores from 0.0 to below 0.1, and so on; 1.0 belongs to the last ones."""
    unlabelled_histogram: Sequence[int] = ()
    """Of these, the ones that neither pass nor fail."""
    box: Sequence[float] = ()
    """The lower whisker, the quartiles, the upper whisker; a whisker is at most one and a half times as long as the box."""
    causes: Mapping[str, int] = field(default_factory=dict)
    """Scores that fail by their cause, where it is known, the most frequent first."""
    asked: AskedFigures | None = None
    """The figures of the judge, where it is asked about a share of the rows; else None."""

    @property
    def failing(self) -> int:
        """Of the labelled ones, those that fail."""
        return self.labelled - self.passed

    @property
    def unlabelled(self) -> str | None:
        """How many scores are neither a pass nor a fail, in words; None where all are, or none is."""
        without = self.scored - self.labelled
        have = "has" if without == 1 else "have"
        return f"{without:,} of {self.scored:,} answers {have} no label" if without and self.labelled else None

    @property
    def settled(self) -> int:
        """Rows that have a score, or whose response rightly declines; 0 if a judge scored none of the rows that it was asked about."""
        is_silent = self.asked is not None and self.asked.fallbacks and not self.asked.scored
        return 0 if is_silent else self.scored + self.refusals

    @property
    def skipped(self) -> int:
        """Rows that lack a score because a cell is missing, the metric failed, or the budget is spent."""
        lacking = ("no_question", "no_response", "contexts_unknown", BUDGET_EXHAUSTED)
        return self.failed + sum(self.not_scored.get(reason, 0) for reason in lacking)

    @property
    def refusals(self) -> int:
        """Rows whose response declines, and rightly so: there is nothing to score in them."""
        return self.not_scored.get(REFUSAL, 0)


class MetricTally:
    """The scores of one metric, eight bytes each, and the reasons where there is none; those of a judge with a share by themselves."""

    def __init__(self, metric: str, *, has_share: bool) -> None:
        self._metric, self._has_share = metric, has_share
        self._scores = array("d")
        self._threshold: float | None = None
        self._judge: str | None = None
        self._judged: dict[Part, Stratum] = {"doubtful": Stratum(), "rest": Stratum()}
        self._counts: defaultdict[str, Counter[Any]] = defaultdict(Counter)
        """By what is counted: labels, bins of scores without one, reasons, failures, causes, why a judge was asked, and fallbacks."""

    def add(self, outcome: Outcome, asked: Asked | None = None) -> None:
        """Count an outcome, with why the judge was asked, where it is asked about a share of the rows."""
        embedded: Outcome | ScreenScore | None = outcome
        if self._has_share and (found := judged(outcome, asked)) is not None:
            part, label = found
            self._judged[part] += Stratum(answers=1, labels=label is not None, failing=label == "fail")
        if self._has_share and asked is not None and isinstance(outcome, Score):
            if outcome.fallback is None:
                self._judge, embedded = self._judge or outcome.judge, outcome.screen
            self._counts["fallback" if outcome.fallback else "asked"][outcome.fallback or asked] += 1
        if isinstance(embedded, (NotApplicable, MetricFailure)):
            self._counts["reason"][reason_of(embedded)] += 1
            self._counts["failure"][reason_of(embedded)] += isinstance(embedded, MetricFailure)
        elif embedded is not None:
            self._scores.append(embedded.value)
            self._counts["label"][embedded.label] += 1
            if embedded.label is None:
                self._counts["open"][_bin(embedded.value)] += 1
            if self._threshold is None:
                self._threshold = getattr(outcome, "threshold", None)
            if isinstance(embedded, Score) and embedded.cause:
                self._counts["cause"][embedded.cause] += 1

    def summary(self) -> MetricSummary:
        counts = self._counts
        not_scored = dict(sorted(counts["reason"].items(), key=lambda item: (-item[1], item[0])))
        failed, asked = counts["failure"].total(), None
        if self._has_share:
            asked = AskedFigures(
                judge=self._judge,
                doubtful=counts["asked"]["doubtful"],
                random=counts["asked"]["random"],
                fallbacks=dict(counts["fallback"].most_common()),
                failures=estimate_rate(self._judged.values()),
            )
        unscored = MetricSummary(metric=self._metric, not_scored=not_scored, failed=failed, asked=asked)
        ordered, count = sorted(self._scores), len(self._scores)
        if not count:
            return unscored
        # Rounded sums of equal values can be a bit outside of them.
        mean = min(max(math.fsum(ordered) / count, ordered[0]), ordered[-1])
        bins = Counter(map(_bin, ordered))
        lower, _, upper = statistics.quantiles(ordered if count > 1 else ordered * 2, n=4, method="inclusive")
        reach = 1.5 * (upper - lower)  # as Tukey draws it
        inside = [value for value in ordered if lower - reach <= value <= upper + reach]
        return replace(
            unscored,
            scored=count,
            labelled=counts["label"]["pass"] + counts["label"]["fail"],
            passed=counts["label"]["pass"],
            mean=mean,
            median=statistics.median(ordered),
            minimum=ordered[0],
            maximum=ordered[-1],
            standard_deviation=deviation_of(ordered, mean) if count > 1 else None,
            threshold=self._threshold,
            histogram=[bins[place] for place in range(_BINS)],
            unlabelled_histogram=[counts["open"][place] for place in range(_BINS)],
            box=[inside[0], lower, upper, inside[-1]],
            causes=dict(counts["cause"].most_common()),
        )


def reason_of(outcome: NotApplicable | MetricFailure) -> str:
    """Why there is no score, in a word."""
    return outcome.error_type if isinstance(outcome, MetricFailure) else outcome.reason


def _bin(value: float) -> int:
    return min(int(value * _BINS), _BINS - 1)


def deviation_of(values: Sequence[float], mean: float) -> float:
    """The standard deviation of a sample; `statistics.stdev` computes with fractions, a second for 100,000 values."""
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def named_counts(counts: Mapping[str, int]) -> str:
    """`timeout 3, no_response 1`."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


# The rate by labels


@dataclass(frozen=True, kw_only=True, slots=True)
class Stratum:
    """Answers of one kind. Counts of several processes or days add up."""

    answers: int = 0
    labels: int = 0
    """Those with a label: all of them, or a random part."""
    failing: int = 0
    """Those with a label that says that they fail."""

    @property
    def worth(self) -> float:
        """As many labels of endlessly many answers say as much, infinitely many where all are known: the more is known, the less can differ."""
        known = self.labels >= self.answers
        return math.inf if known else self.labels * self.answers / (self.answers - self.labels)

    def __add__(self, other: Stratum) -> Stratum:
        return Stratum(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A figure with its 95 % interval."""

    value: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.lower:.2f}-{self.upper:.2f})"


@dataclass(frozen=True, kw_only=True, slots=True)
class RateEstimate(Figure):
    """A share of failing answers, as the labels have it, from 0 to 1."""

    labels: int
    answers: int
    by_metric: float | None = None
    """The share by the metric alone, where labels correct it."""


def rate_by_labels(failing: Stratum, passing: Stratum) -> RateEstimate | None:
    """The rate where a random part of the answers has a label: those that a metric fails and those that it passes are strata.

    Where one of them has few labels both are one stratum, and the metric's word does not count.
    """
    both = failing + passing
    is_told = all(one.worth == math.inf or one.labels >= _LEAST_IN_STRATUM for one in (failing, passing))
    found = estimate_rate([failing, passing] if is_told else [both])
    return found and replace(found, by_metric=failing.answers / both.answers)


def estimate_rate(strata: Iterable[Stratum]) -> RateEstimate | None:
    """How many of these answers fail by the label's standard.

    None where too little is known: there are fewer than `LEAST_LABELS` labels in the strata that are not known as a whole, or
    one of these has none.
    """
    there = [stratum for stratum in strata if stratum.answers]
    open_ones = [stratum for stratum in there if stratum.worth < math.inf]
    few = open_ones and sum(stratum.labels for stratum in open_ones) < LEAST_LABELS
    if not there or few or not all(stratum.labels for stratum in there):
        return None
    answers, labels = sum(one.answers for one in there), sum(one.labels for one in there)
    mean = mean_of_shares((one.answers / answers, one.failing / one.labels, one.worth) for one in there)
    return RateEstimate(value=mean.value, lower=mean.lower, upper=mean.upper, labels=labels, answers=answers)


def mean_of_shares(shares: Iterable[tuple[float, float, float]]) -> Figure:
    """The mean of shares, each with its weight before it and behind it how many it is a share of: infinitely many if it is certain."""
    value, below, above = 0.0, list[float](), list[float]()
    for weight, share, number in shares:
        found = wilson_interval(share, number)
        value += weight * share
        below.append(weight * (share - found.lower))
        above.append(weight * (found.upper - share))
    return Figure(value=value, lower=max(value - math.hypot(*below), 0.0), upper=min(value + math.hypot(*above), 1.0))


def wilson_interval(share: float, number: float) -> Figure:
    """A share among `number`, which need not be a whole number, with its interval."""
    square = _Z**2 / number
    middle = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * math.sqrt(share * (1 - share) / number + square / number / 4)
    return Figure(value=share, lower=max(middle - half, 0.0), upper=min(middle + half, 1.0))
