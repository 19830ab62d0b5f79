"""How far a figure would vary had other sources been drawn: the bootstrap, over sources and not over answers."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agreeing.figures import Figure, Weights

RESAMPLES = 1000
_TAIL = 0.025
"""Of the resamples, at each end: what is left is the 95 % interval."""


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

    def __sub__(self, other: Estimate) -> Estimate:
        """The difference of two figures of the same resamples: what varies in both alike cancels out."""
        pairs = zip(self.resampled, other.resampled, strict=True)
        return Estimate(value=self.value - other.value, resampled=tuple(one - two for one, two in pairs))


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


def mean_of(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of figures of different sets, each of which was resampled by itself."""
    columns = zip(*(estimate.resampled for estimate in estimates), strict=True)
    count = len(estimates)
    return Estimate(
        value=sum(estimate.value for estimate in estimates) / count,
        resampled=tuple(sum(column) / count for column in columns),
    )
