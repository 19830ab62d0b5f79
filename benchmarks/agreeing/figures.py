"""Figures that only the benchmark needs, beside those of `ragspan.evaluate.estimates`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ragspan.evaluate.estimates import Estimate, Figure, Weights, ties_of


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
