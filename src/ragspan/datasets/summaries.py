"""The scores of one metric over a table, added up. No figure here is NaN: where nothing was scored there is None."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragspan.metrics.metric import REFUSAL
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome

SKIPPED_REASONS = frozenset({"no_question", "no_response", "contexts_unknown", "budget_exhausted"})
"""Reasons that lie in the table or the budget, and not in the answer: a mean over the other rows hides them."""
SUMMARY_HEADER = ("metric", "mean", "median", "min", "max", "std", "scored", "passed")


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSummary:
    """The distribution of one metric's scores, and why rows have none. Rows without a score are in no figure."""

    metric: str
    scored: int = 0
    passed: int = 0
    """Of the scored ones, those labelled `pass`."""
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
    causes: Mapping[str, int] = field(default_factory=dict)
    """Scores that fail by their cause, where it is known, the most frequent first."""

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
        return ", ".join(f"{reason} {count:,}" for reason, count in self.not_scored.items())

    def cells(self) -> tuple[str, ...]:
        """The figures as people read them, under `SUMMARY_HEADER`."""
        figures = (self.mean, self.median, self.minimum, self.maximum, self.standard_deviation)
        passed = f"{self.passed / self.scored:.0%}" if self.scored and self.threshold is not None else "-"
        return (
            self.metric,
            *("-" if figure is None else f"{figure:.3f}" for figure in figures),
            f"{self.scored:,}",
            passed,
        )


class MetricTally:
    """The scores of one metric, eight bytes each, and the reasons where there is none."""

    def __init__(self) -> None:
        self.scores = array("d")
        """In the order in which they were added."""
        self._total = 0.0
        self._passed = 0
        self._threshold: float | None = None
        self._not_scored: Counter[str] = Counter()
        self._causes: Counter[str] = Counter()
        self._failed = 0

    def add(self, outcome: Outcome) -> None:
        if isinstance(outcome, MetricFailure):
            self._not_scored[outcome.error_type] += 1
            self._failed += 1
        elif isinstance(outcome, NotApplicable):
            self._not_scored[outcome.reason] += 1
        else:
            self.scores.append(outcome.value)
            self._total += outcome.value
            self._passed += outcome.label == "pass"
            self._causes.update([outcome.cause] if outcome.cause else ())
            if self._threshold is None:
                self._threshold = outcome.threshold

    @property
    def mean(self) -> float | None:
        """So far, up to the rounding of a running sum."""
        return self._total / len(self.scores) if self.scores else None

    def summary(self, metric: str) -> MetricSummary:
        not_scored = dict(sorted(self._not_scored.items(), key=lambda item: (-item[1], item[0])))
        ordered, count = sorted(self.scores), len(self.scores)
        if not count:
            return MetricSummary(metric=metric, not_scored=not_scored, failed=self._failed)
        # Rounded sums of equal values can be a bit outside of them.
        mean = min(max(math.fsum(ordered) / count, ordered[0]), ordered[-1])
        return MetricSummary(
            metric=metric,
            scored=count,
            passed=self._passed,
            not_scored=not_scored,
            failed=self._failed,
            mean=mean,
            median=(ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
            minimum=ordered[0],
            maximum=ordered[-1],
            standard_deviation=deviation_of(ordered, mean) if count > 1 else None,
            threshold=self._threshold,
            causes=dict(self._causes.most_common()),
        )


def deviation_of(values: Sequence[float], mean: float) -> float:
    """The standard deviation of a sample; `statistics.stdev` computes with fractions, a second for 100,000 values."""
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))
