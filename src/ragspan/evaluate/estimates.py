"""The true share of failing answers, where only some answers have a label that is trusted.

It is estimated by strata: a kind of answers of which a random part has a label, or all (W. G. Cochran, "Sampling techniques", 1977,
chapter 5). The interval of each is Wilson's; their distances from the estimate add up in squares (G. Y. Zou and A. Donner, Statistics
in Medicine, 2008).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ragspan.metrics.doubt import Part
from ragspan.outcomes import Label

LEAST_LABELS: Final = 20
"""With fewer random ones there is no estimate."""
_LEAST_IN_STRATUM: Final = 5
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

    Where one of them has few labels both are one stratum, and the metric's word does not count.
    """
    both = failing + passing
    is_told = all(one.is_known or one.labels >= _LEAST_IN_STRATUM for one in (failing, passing))
    found = estimate_rate([failing, passing] if is_told else [both])
    return found and replace(found, by_metric=failing.answers / both.answers)


def estimate_by_part(counts: Mapping[tuple[Part, Label | None], int]) -> RateEstimate | None:
    """The rate where a judge labels the doubtful answers and a random part of the rest: by what `judged` gave, counted."""
    found: dict[Part, Stratum] = {"doubtful": Stratum(), "rest": Stratum()}
    for (part, label), count in counts.items():
        found[part] += Stratum(answers=count, labels=count if label else 0, failing=count if label == "fail" else 0)
    return estimate_rate(found.values())


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
        lower = upper = share
        if not stratum.is_known:  # as many labels of endlessly many answers; the more is known, the less can differ
            worth = stratum.labels * stratum.answers / (stratum.answers - stratum.labels)
            lower, upper = wilson_interval(share, worth)
        value += weight * share
        below += (weight * (share - lower)) ** 2
        above += (weight * (upper - share)) ** 2
    lower, upper = max(value - math.sqrt(below), 0.0), min(value + math.sqrt(above), 1.0)
    labels = sum(stratum.labels for stratum in there)
    return RateEstimate(value=value, lower=lower, upper=upper, labels=labels, answers=answers)


def wilson_interval(share: float, number: float) -> tuple[float, float]:
    """The 95 % interval of a share among `number`, which need not be a whole number."""
    square = _Z**2 / number
    middle = (share + square / 2) / (1 + square)
    half = _Z / (1 + square) * math.sqrt(share * (1 - share) / number + square / number / 4)
    return max(middle - half, 0.0), min(middle + half, 1.0)
