"""The scores of one metric over a table, added up. No figure here is NaN: where nothing was scored there is None."""

from __future__ import annotations

import math
import statistics
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragspan.evaluate.estimates import RateEstimate, Stratum, by_part, estimate_rate
from ragspan.metrics.doubt import Part, judged
from ragspan.metrics.metric import REFUSAL
from ragspan.outcomes import Asked, Label, MetricFailure, NotApplicable, Outcome, Score, ScreenScore

SKIPPED_REASONS = frozenset({"no_question", "no_response", "contexts_unknown", "budget_exhausted"})
"""Reasons that lie in the table or the budget, and not in the answer: a mean over the other rows hides them."""
SUMMARY_HEADER = ("metric", "mean", "median", "min", "max", "std", "scored", "passed")
_BINS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedFigures:
    """What a judge says that was asked about a share of the rows: of the most doubtful ones and of a random part of the rest.

    What it says of the rows that it was asked about says nothing of all rows, as most of them are doubtful. So figures of all rows are
    estimated by strata; see `ragspan.evaluate.estimates`. They are None where fewer than 20 rows of the random part have its score.
    """

    judge: str | None
    """None if it scored nothing."""
    doubtful: int
    """Rows that it scored because they are doubtful."""
    random: int
    """Rows that it scored because they were drawn at random."""
    fallbacks: Mapping[str, int]
    """Rows that it was asked about and did not score, by reason, where the embedded judge's score stands in."""
    failures: RateEstimate | None
    """The share of all rows that fail by this judge; None also where the metric has no threshold."""
    mean: float | None
    """Its mean over all rows, estimated."""
    lowest: float | None
    """Its lowest score; None if it scored nothing."""
    unscreened: int
    """Rows that it scored and the embedded judge did not."""

    @property
    def scored(self) -> int:
        return self.doubtful + self.random

    @property
    def silence(self) -> str | None:
        """That it scored none of the rows that it was asked about, and why, in words; None where it scored some."""
        if self.scored or not self.fallbacks:
            return None
        return f"the judge scored none of the rows that it was asked about: {named_counts(self.fallbacks)}"


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
    box: Sequence[float] = ()
    """The lower whisker, the lower quartile, the upper quartile, the upper whisker; a whisker is at most one and a half times as long as
    the box."""
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
        return f"{without:,} of {self.scored:,} answers have no label" if without and self.labelled else None

    @property
    def silence(self) -> str | None:
        """As `AskedFigures.silence`; None also where no judge is asked about a share."""
        return None if self.asked is None else self.asked.silence

    @property
    def settled(self) -> int:
        """Rows that have a score by any judge, or whose response rightly declines."""
        return self.scored + self.refusals + (self.asked.unscreened if self.asked is not None else 0)

    @property
    def skipped(self) -> int:
        """Rows that lack a score because a cell is missing, the metric failed, or the budget is spent."""
        return self.failed + sum(self.not_scored.get(reason, 0) for reason in SKIPPED_REASONS)

    @property
    def refusals(self) -> int:
        """Rows whose response declines, and rightly so: there is nothing to score in them."""
        return self.not_scored.get(REFUSAL, 0)

    @property
    def reasons(self) -> str:
        """Why rows have no score, in words."""
        return named_counts(self.not_scored)

    def cells(self) -> tuple[str, ...]:
        """The figures as people read them, under `SUMMARY_HEADER`."""
        figures = (self.mean, self.median, self.minimum, self.maximum, self.standard_deviation)
        passed = f"{self.passed / self.labelled:.0%}" if self.labelled else "-"
        if self.labelled and self.labelled < self.scored:
            passed += f" of {self.labelled:,}"
        shown = ("-" if figure is None else f"{figure:.3f}" for figure in figures)
        return (self.metric, *shown, f"{self.scored:,}", passed)


class MetricTally:
    """The scores of one metric, eight bytes each, and the reasons where there is none.

    Args:
        has_share: whether a judge is asked about a share of the rows.
    """

    def __init__(self, *, has_share: bool = False) -> None:
        self._asked = _AskedTally() if has_share else None
        self._scores = array("d")
        self._total = 0.0
        self._labels: Counter[Label | None] = Counter()
        self._threshold: float | None = None
        self._not_scored: Counter[str] = Counter()
        self._causes: Counter[str] = Counter()
        self._failed = 0

    def add(self, outcome: Outcome, asked: Asked | None = None) -> None:
        """Count an outcome, with why the judge was asked, where it is asked about a share of the rows."""
        counted: Outcome | ScreenScore | None = outcome
        if self._asked is not None:
            self._asked.add(outcome, asked)
            if isinstance(outcome, Score) and asked is not None and outcome.fallback is None:
                counted = outcome.screen
        if isinstance(counted, MetricFailure):
            self._not_scored[counted.error_type] += 1
            self._failed += 1
        elif isinstance(counted, NotApplicable):
            self._not_scored[counted.reason] += 1
        elif counted is not None:
            self._scores.append(counted.value)
            self._total += counted.value
            self._labels[counted.label] += 1
            if self._threshold is None:
                self._threshold = getattr(outcome, "threshold", None)
            if isinstance(counted, Score) and counted.cause:
                self._causes[counted.cause] += 1

    @property
    def mean(self) -> float | None:
        """So far, up to the rounding of a running sum."""
        return self._total / len(self._scores) if self._scores else None

    def summary(self, metric: str) -> MetricSummary:
        not_scored = dict(sorted(self._not_scored.items(), key=lambda item: (-item[1], item[0])))
        ordered, count = sorted(self._scores), len(self._scores)
        asked = None if self._asked is None else self._asked.figures()
        if not count:
            return MetricSummary(metric=metric, not_scored=not_scored, failed=self._failed, asked=asked)
        # Rounded sums of equal values can be a bit outside of them.
        mean = min(max(math.fsum(ordered) / count, ordered[0]), ordered[-1])
        bins = Counter(min(int(value * _BINS), _BINS - 1) for value in ordered)
        return MetricSummary(
            metric=metric,
            scored=count,
            labelled=self._labels["pass"] + self._labels["fail"],
            passed=self._labels["pass"],
            not_scored=not_scored,
            failed=self._failed,
            mean=mean,
            median=(ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
            minimum=ordered[0],
            maximum=ordered[-1],
            standard_deviation=deviation_of(ordered, mean) if count > 1 else None,
            threshold=self._threshold,
            histogram=[bins[place] for place in range(_BINS)],
            box=_box_of(ordered),
            causes=dict(self._causes.most_common()),
            asked=asked,
        )


class _AskedTally:
    """What a judge says that is asked about a share of the rows."""

    def __init__(self) -> None:
        self._unscreened = 0
        self._judge: str | None = None
        self._labels: Counter[tuple[Part, Label | None]] = Counter()
        self._applies: Counter[Part] = Counter()
        """Rows that have a score, or should."""
        self._values: dict[Part, list[float]] = {"doubtful": [], "rest": []}
        """This judge's scores."""
        self._fallbacks: Counter[str] = Counter()

    def add(self, outcome: Outcome, asked: Asked | None) -> None:
        part: Part = "doubtful" if asked == "doubtful" else "rest"
        if (found := judged(outcome, asked)) is not None:
            self._labels[found] += 1
        self._applies[part] += isinstance(outcome, Score) or found is not None
        if not isinstance(outcome, Score) or asked is None:
            return
        if outcome.fallback is not None:
            self._fallbacks[outcome.fallback] += 1
            return
        self._judge = self._judge or outcome.judge
        self._unscreened += outcome.screen is None
        self._values[part].append(outcome.value)

    def figures(self) -> AskedFigures:
        strata = by_part(self._labels)
        scored = {part: len(values) for part, values in self._values.items()}
        mean = None
        # Whether enough is known is the same for the mean as for the rate.
        if estimate_rate(Stratum(answers=self._applies[part], labels=count) for part, count in scored.items()):
            means = {part: sum(values) / len(values) for part, values in self._values.items() if values}
            mean = sum(self._applies[part] * value for part, value in means.items()) / sum(self._applies.values())
        return AskedFigures(
            judge=self._judge,
            doubtful=scored["doubtful"],
            random=scored["rest"],
            fallbacks=dict(self._fallbacks.most_common()),
            failures=estimate_rate(strata.values()),
            mean=mean,
            lowest=min([*self._values["doubtful"], *self._values["rest"]], default=None),
            unscreened=self._unscreened,
        )


def _box_of(ordered: Sequence[float]) -> Sequence[float]:
    spread = ordered if len(ordered) > 1 else [*ordered, *ordered]
    lower, _, upper = statistics.quantiles(spread, n=4, method="inclusive")
    reach = 1.5 * (upper - lower)  # as Tukey draws it
    inside = [value for value in ordered if lower - reach <= value <= upper + reach]
    return [inside[0], lower, upper, inside[-1]]


def deviation_of(values: Sequence[float], mean: float) -> float:
    """The standard deviation of a sample; `statistics.stdev` computes with fractions, a second for 100,000 values."""
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def named_counts(counts: Mapping[str, int]) -> str:
    """`timeout 3, no_response 1`."""
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())
