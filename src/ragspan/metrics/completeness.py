"""Completeness: how much of what the contexts say about the question is in the response? By independent ratings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import ClassVar

from ragspan.judges.base import Judge
from ragspan.metrics._arguments import require_judge, require_polls, require_threshold
from ragspan.metrics._verdicts import outcome_of, quorum_failure
from ragspan.metrics.base import screen_answer
from ragspan.outcomes import NotApplicable, Outcome, Score
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class Completeness:
    """The mean of a judge's ratings of how completely the response covers what the contexts hold, 0..1.

    It says nothing about truth: a response may cover everything and invent the rest. Ratings outside 0..1 are not
    valid, and with half of the ratings or fewer valid there is no score. The explanation is that of the rating closest
    to the mean, the first of equals; `details["spread"]` is the standard deviation of the ratings, and a large one says
    that the judge is not sure.

    Source: the polling of ChainPoll (arXiv 2310.18344), with ratings in place of votes.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    judge: Judge
    _: KW_ONLY
    polls: int = 3
    """Ratings to ask for, at least 1."""
    threshold: float = 0.5
    """Values from here on pass, 0..1."""
    name: ClassVar[str] = "completeness"

    def __post_init__(self) -> None:
        require_judge("judge", self.judge, "rate_completeness")
        require_polls(self.polls)
        require_threshold(self.threshold)

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return screen_answer(record)

    async def score(self, record: RagRecord) -> Outcome:
        return self.screen(record) or await outcome_of(self._poll(record))

    async def _poll(self, record: RagRecord) -> Outcome:
        answers = await self.judge.rate_completeness(record, self.polls)
        ratings = [rating for rating in answers if 0 <= rating.value <= 1][: self.polls]
        failure = quorum_failure("ratings", asked=self.polls, valid=len(ratings))
        if failure:
            return failure
        values = [rating.value for rating in ratings]
        return Score(
            value=float(mean(values)),
            explanation=ratings[closest_to_mean(values)].explanation,
            threshold=self.threshold,
            evidence=tuple(ratings),
            details={"ratings": self.polls, "valid_ratings": len(ratings), "spread": spread(values)},
            judge=self.judge.name,
        )


def mean(values: Sequence[float]) -> Fraction:
    """The exact mean of the decimals that the judge wrote.

    Exact, because equal distances to the mean must compare equal: in binary 0.4 is closer to the mean of 0.2 and 0.4
    than 0.2 is.
    """
    return sum(map(_decimal, values), Fraction()) / len(values)


def closest_to_mean(values: Sequence[float]) -> int:
    """The index of the value closest to the mean, the first of equals."""
    centre = mean(values)
    return min(range(len(values)), key=lambda index: abs(_decimal(values[index]) - centre))


def spread(values: Sequence[float]) -> float:
    """The population's standard deviation."""
    centre = mean(values)
    return math.sqrt(sum((_decimal(value) - centre) ** 2 for value in values) / len(values))


def _decimal(value: float) -> Fraction:
    return Fraction(repr(float(value)))
