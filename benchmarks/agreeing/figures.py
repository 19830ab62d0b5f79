"""Figures of agreement with people, and their intervals by a bootstrap.

A figure is a function of weights, how often each answer counts. With all weights 1 it is the figure of all answers, with
those of a resample the figure of the resample; where one of two labels is missing it is NaN. The bootstrap draws sources and not
answers, because answers to one source are not independent.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

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
        draw = random.Random(seed)
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


def spearman(values: Sequence[float], others: Sequence[float]) -> Figure:
    """The correlation of ranks, -1..1; ties have the mean of their ranks."""
    ties, other_ties = ties_of(values), ties_of(others)

    def figure(weights: Weights) -> float:
        return _correlation(_ranks(ties, weights), _ranks(other_ties, weights), weights)

    return figure


def difference(one: Estimate, other: Estimate) -> Estimate:
    """The difference of two figures of the same resamples: what varies in both alike cancels out."""
    pairs = zip(one.resampled, other.resampled, strict=True)
    return Estimate(value=one.value - other.value, resampled=tuple(first - second for first, second in pairs))


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of figures of different sets, each of which was resampled by itself."""
    columns = zip(*(estimate.resampled for estimate in estimates), strict=True)
    count = len(estimates)
    return Estimate(
        value=sum(estimate.value for estimate in estimates) / count,
        resampled=tuple(sum(column) / count for column in columns),
    )


def _ranks(ties: Sequence[Sequence[int]], weights: Weights) -> list[float]:
    ranks = [0.0] * len(weights)
    below = 0
    for tie in ties:
        here = sum(weights[at] for at in tie)
        for at in tie:
            ranks[at] = below + (here + 1) / 2
        below += here
    return ranks


def _correlation(first: Sequence[float], second: Sequence[float], weights: Weights) -> float:
    total = sum(weights)
    if not total:
        return math.nan
    middle = (total + 1) / 2  # the mean of ranks, whatever the ties
    together = apart = other = 0.0
    for one, two, weight in zip(first, second, weights, strict=True):
        together += weight * (one - middle) * (two - middle)
        apart += weight * (one - middle) ** 2
        other += weight * (two - middle) ** 2
    return together / math.sqrt(apart * other) if apart and other else math.nan
