"""How well scores agree with labels, and the true share of failing answers where only some answers have a label that is trusted.

The share: a metric that fails 44 % of the answers says little of how many are wrong. Where people, or a better judge, label a part of
the same answers, it is estimated by strata: a kind of answers of which a random part has a label, or all (W. G. Cochran, "Sampling
techniques", 1977, chapter 5). The interval of each stratum is Wilson's, which ends where all have a label; the strata's distances from
the estimate add up in squares (G. Y. Zou and A. Donner, "Construction of confidence limits about effect measures", Statistics in
Medicine, 2008).

Agreement: a figure is a function of weights, how often each answer counts. With all weights 1 it is the figure of all answers, with
those of a resample the figure of the resample; where one of two labels is missing it is NaN. The bootstrap draws sources and not
answers, because answers to one source are not independent.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ragspan.metrics.doubt import Part
from ragspan.outcomes import Label

LEAST_LABELS: Final = 20
"""With fewer random ones there is no estimate."""
LEAST_IN_STRATUM: Final = 5
"""With fewer labels a stratum says nothing by itself."""
_Z: Final = 1.959964
"""Of a normal distribution, 95 % are within this many standard deviations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stratum:
    """Answers of one kind. Counts of several processes or days add up."""

    answers: int = 0
    labels: int = 0
    """Those with a label: all of them, or a random part."""
    failing: int = 0
    """Those with a label that says that they fail."""

    @property
    def is_known(self) -> bool:
        return self.labels >= self.answers

    def __add__(self, other: Stratum) -> Stratum:
        return Stratum(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


@dataclass(frozen=True, kw_only=True, slots=True)
class RateEstimate:
    """A share of failing answers, as the labels have it, with its 95 % interval. All from 0 to 1."""

    value: float
    lower: float
    upper: float
    labels: int
    answers: int
    by_metric: float | None = None
    """The share by the metric alone, where labels correct it."""


def rate_by_labels(failing: Stratum, passing: Stratum) -> RateEstimate | None:
    """The rate where a random part of the answers has a label: those that a metric fails and those that it passes are strata.

    The labels of each say how often the metric errs there. Where one of them has few labels both are one stratum, and the
    metric's word does not count.
    """
    both = failing + passing
    is_told = all(one.is_known or one.labels >= LEAST_IN_STRATUM for one in (failing, passing))
    found = estimate_rate([failing, passing] if is_told else [both])
    return found and replace(found, by_metric=failing.answers / both.answers)


def estimate_rate(strata: Iterable[Stratum]) -> RateEstimate | None:
    """How many of these answers fail by the label's standard.

    None where too little is known: there are fewer than `LEAST_LABELS` labels in the strata that are not known as a whole, or
    one of these has none.
    """
    there = [stratum for stratum in strata if stratum.answers]
    open_ones = [stratum for stratum in there if not stratum.is_known]
    few = open_ones and sum(stratum.labels for stratum in open_ones) < LEAST_LABELS
    if not there or few or not all(stratum.labels for stratum in there):
        return None
    answers = sum(stratum.answers for stratum in there)
    value = below = above = 0.0
    for stratum in there:
        weight, share = stratum.answers / answers, stratum.failing / stratum.labels
        lower, upper = (share, share) if stratum.is_known else wilson_interval(share, _worth(stratum))
        value += weight * share
        below += (weight * (share - lower)) ** 2
        above += (weight * (upper - share)) ** 2
    return RateEstimate(
        value=value,
        lower=max(value - math.sqrt(below), 0.0),
        upper=min(value + math.sqrt(above), 1.0),
        labels=sum(stratum.labels for stratum in there),
        answers=answers,
    )


def _worth(stratum: Stratum) -> float:
    """How many labels of endlessly many answers would tell as much: the more of a stratum is known, the less can differ."""
    return stratum.labels * stratum.answers / (stratum.answers - stratum.labels)


def wilson_interval(share: float, number: float) -> tuple[float, float]:
    """The 95 % interval of a share among `number`, which need not be a whole number."""
    square = _Z**2 / number
    middle = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * math.sqrt(share * (1 - share) / number + square / number / 4)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def by_part(counts: Mapping[tuple[Part, Label | None], int]) -> dict[Part, Stratum]:
    """The strata of what `judged` gave, counted."""
    found: dict[Part, Stratum] = {"doubtful": Stratum(), "rest": Stratum()}
    for (part, label), count in counts.items():
        found[part] += Stratum(answers=count, labels=count if label else 0, failing=count if label == "fail" else 0)
    return found


# Agreement ------------------------------------------------------------------------------------------------------------

Weights: TypeAlias = Sequence[int]
Figure: TypeAlias = Callable[[Weights], float]

RESAMPLES: Final = 1000
_TAIL: Final = 0.025
"""Of the resamples, at each end: what is left is the 95 % interval."""


def auroc(values: Sequence[float], labels: Sequence[bool]) -> Figure:
    """The probability that a positive has a higher value than a negative, ties counted half: .5 is chance, 1 perfect."""
    ties = ties_of(values)

    def figure(weights: Weights) -> float:
        wins, positives, negatives = 0.0, 0, 0
        for tie in ties:
            positive = sum(weights[at] for at in tie if labels[at])
            negative = sum(weights[at] for at in tie if not labels[at])
            wins += positive * (negatives + negative / 2)
            positives += positive
            negatives += negative
        return wins / (positives * negatives) if positives and negatives else math.nan

    return figure


def balanced_accuracy(values: Sequence[float], labels: Sequence[bool], threshold: float) -> Figure:
    """The mean of the shares that are right among the positives and among the negatives; .5 is chance."""
    right = [(value >= threshold) == label for value, label in zip(values, labels, strict=True)]

    def figure(weights: Weights) -> float:
        shares = []
        for wanted in (True, False):
            total = sum(weight for weight, label in zip(weights, labels, strict=True) if label == wanted)
            hits = sum(weights[at] for at, label in enumerate(labels) if label == wanted and right[at])
            shares.append(hits / total if total else math.nan)
        return sum(shares) / 2

    return figure


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """A figure, and what it is in each resample."""

    value: float
    resampled: tuple[float, ...]

    @property
    def interval(self) -> tuple[float, float]:
        """Within which 95 % of the resamples lie, those aside in which the figure is undefined."""
        known = sorted(value for value in self.resampled if not math.isnan(value))
        if not known:
            return math.nan, math.nan
        last = len(known) - 1
        return known[math.floor(_TAIL * last)], known[math.ceil((1 - _TAIL) * last)]


class Bootstrap:
    """Draws sources with replacement, each time as many as there are; all answers of a source come with it.

    Args:
        sources: of each answer.
        seed: the same seed draws the same resamples.
        resamples: how many.
    """

    def __init__(self, sources: Sequence[str], *, seed: str, resamples: int = RESAMPLES) -> None:
        draw = random.Random(seed)  # noqa: S311 - nothing secret
        different = sorted(set(sources))
        self._once: Weights = [1] * len(sources)
        self._weights: list[Weights] = []
        for _ in range(resamples):
            times = Counter(draw.choices(different, k=len(different)))
            self._weights.append([times[source] for source in sources])

    def estimate(self, figure: Figure) -> Estimate:
        return Estimate(value=figure(self._once), resampled=tuple(map(figure, self._weights)))


def ties_of(values: Sequence[float]) -> list[list[int]]:
    """The indices of the values in ascending order, those of equal values together."""
    ties: dict[float, list[int]] = {}
    for at in sorted(range(len(values)), key=values.__getitem__):
        ties.setdefault(values[at], []).append(at)
    return list(ties.values())
