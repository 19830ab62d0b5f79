"""How the scores of a metric are distributed: counts and quartiles, which is all that a plot needs of them."""

from __future__ import annotations

import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

Role: TypeAlias = Literal["pass", "fail", "bar"]

BINS = 10
"""Of a histogram, each 0.1 wide; 1.0 belongs to the last."""
_REACH = 1.5  # interquartile ranges that a whisker may be long (Tukey)


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """The histogram and the box plot of at least one score."""

    counts: tuple[int, ...]
    """Scores from 0.0 to below 0.1, and so on, in `BINS` bins."""
    lower_quartile: float
    median: float
    upper_quartile: float
    lower_whisker: float
    """The lowest score within one and a half interquartile ranges of the box."""
    upper_whisker: float
    outliers: int
    """Scores beyond the whiskers."""

    def bars(self, threshold: float | None) -> list[Bar]:
        """The histogram's bars, from the lowest scores to the highest."""
        edges = [place / BINS for place in range(BINS + 1)]
        return [
            Bar(
                span=f"{low:.1f} to {'' if high == 1 else 'below '}{high:.1f}",
                count=count,
                share=count / sum(self.counts),
                height=count / max(self.counts),
                role=_role(low, high, threshold),
            )
            for low, high, count in zip(edges, edges[1:], self.counts, strict=False)
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bar:
    """One bar of a histogram."""

    span: str
    """From where to where, in words."""
    count: int
    share: float
    """Of all scores, 0..1."""
    height: float
    """Of the highest bar's, 0..1."""
    role: Role
    """Whether scores in there pass; `bar` where some do, or where there is no threshold."""


def _role(low: float, high: float, threshold: float | None) -> Role:
    if threshold is None or low < threshold < high:
        return "bar"
    return "pass" if low >= threshold else "fail"


def distribution(values: Sequence[float]) -> Distribution | None:
    """The distribution of scores from 0 to 1; None if there is none."""
    if not values:
        return None
    ordered = sorted(values)
    lower, median, upper = _quartiles(ordered)
    first = bisect_left(ordered, lower - _REACH * (upper - lower))
    last = bisect_right(ordered, upper + _REACH * (upper - lower))
    return Distribution(
        counts=_counts(ordered),
        lower_quartile=lower,
        median=median,
        upper_quartile=upper,
        lower_whisker=min(ordered[first], lower),
        upper_whisker=max(ordered[last - 1], upper),
        outliers=first + len(ordered) - last,
    )


def _quartiles(ordered: Sequence[float]) -> tuple[float, float, float]:
    if len(ordered) == 1:
        return ordered[0], ordered[0], ordered[0]
    lower, median, upper = statistics.quantiles(ordered, n=4, method="inclusive")
    return lower, median, upper


def _counts(ordered: Sequence[float]) -> tuple[int, ...]:
    edges = [bisect_left(ordered, place / BINS) for place in range(1, BINS)]
    return tuple(upper - lower for lower, upper in zip([0, *edges], [*edges, len(ordered)], strict=True))
