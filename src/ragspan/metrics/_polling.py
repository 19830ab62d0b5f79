"""Metrics that ask a judge for several votes or ratings: all at once, or in two steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from ragspan.arguments import FLAG, WHOLE
from ragspan.exceptions import JudgeError
from ragspan.judges.base import Rating
from ragspan.metrics.base import JudgedMetric, Named
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord

_Answer = TypeVar("_Answer")
_Judge = TypeVar("_Judge", bound=Named)

_FEWEST_SAMPLES = 2
"""A single vote is a judge's best guess; from two on they are independent samples, which is what a poll counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledMetric(JudgedMetric[_Judge], Generic[_Judge, _Answer]):
    """A metric of several independent votes or ratings. More than half of them have to be valid."""

    polls: int = 3
    """Votes or ratings to ask for, at least 1; an odd number of votes cannot tie."""
    early_stop: bool = False
    """Ask for a bare majority first, and for the rest only while it can still change the label: the label is the same, the
    value is that of fewer answers. With three polls that saves one reply in three where the first two agree, and costs a
    second request where they do not; it pays from five polls on."""

    async def ask(self, record: RagRecord, count: int) -> list[_Answer]:
        """Ask the judge for so many votes or ratings."""
        raise NotImplementedError

    def is_valid(self, answer: _Answer) -> bool:
        raise NotImplementedError

    def is_settled(self, answers: Sequence[_Answer]) -> bool:
        """Whether the label stays the same whatever the answers are that have not been asked for."""
        raise NotImplementedError

    async def poll(self, record: RagRecord) -> tuple[int, list[_Answer]]:
        """How many answers were asked for, and the valid ones.

        Raises:
            JudgeError: half of what was asked for, or more, is missing or not valid (`missing_verdicts`).
        """
        asked, valid = await (
            self._poll_in_steps(record) if self.early_stop else self._poll_at_once(record, self.polls)
        )
        if not self._is_quorum(valid):
            message = f"{len(valid)} of {self.polls} {self._answers} are valid, but more than half have to be"
            raise JudgeError("missing_verdicts", message)
        return asked, valid

    async def _poll_at_once(self, record: RagRecord, count: int) -> tuple[int, list[_Answer]]:
        """All together, which is one request where an endpoint gives several choices."""
        valid = [answer for answer in await self.ask(record, count) if self.is_valid(answer)]
        return count, valid[:count]

    async def _poll_in_steps(self, record: RagRecord) -> tuple[int, list[_Answer]]:
        """A bare majority first. A judge that fails in the second step costs nothing of the first, if that is a quorum."""
        asked, first = await self._poll_at_once(record, self.polls // 2 + 1)
        if asked >= self.polls or (self._is_quorum(first) and self.is_settled(first)):
            return asked, first
        try:
            _, second = await self._poll_at_once(record, max(self.polls - asked, _FEWEST_SAMPLES))
        except JudgeError:
            if not self._is_quorum(first):
                raise
            return asked, first
        return self.polls, (first + second)[: self.polls]

    def _is_quorum(self, valid: Sequence[_Answer]) -> bool:
        return 2 * len(valid) > self.polls

    @property
    def _answers(self) -> str:
        return "votes" if self.questions == ("vote_adherence",) else "ratings"

    def _check(self) -> None:
        JudgedMetric._check(self)  # noqa: SLF001 - the base's; super() does not work with slots
        WHOLE.check_fields(self, "polls")
        FLAG.check_fields(self, "early_stop")


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedMetric(PolledMetric[_Judge, Rating], Generic[_Judge]):
    """A metric whose value is the mean of the valid ratings."""

    async def evaluate(self, record: RagRecord) -> Outcome:
        asked, ratings = await self.poll(record)
        values = [rating.value for rating in ratings]
        return self.scored(
            record,
            value=float(mean(values)),
            explanation=ratings[closest_to_mean(values)].explanation,
            evidence=ratings,
            details={"ratings": asked, "valid_ratings": len(ratings), "spread": spread(values)},
        )

    def is_valid(self, answer: Rating) -> bool:
        return 0 <= answer.value <= 1

    def is_settled(self, answers: Sequence[Rating]) -> bool:
        """Whether the mean stays on its side of the threshold.

        Ratings are from 0 to 1, and some may not come: means of fewer lie between the two that are looked at.
        """
        values = [rating.value for rating in answers]
        rest = self.polls - len(values)
        lowest, highest = float(mean([*values, *[0.0] * rest])), float(mean([*values, *[1.0] * rest]))
        return lowest >= self.threshold or highest < self.threshold


def mean(values: Sequence[float]) -> Fraction:
    """The exact mean of the decimals that the judge wrote.

    Exact, because equal distances to the mean must compare equal: in binary 0.4 is closer to the mean of 0.2 and 0.4
    than 0.2 is.
    """
    if _agree(values):
        return _decimal(values[0])
    return sum(map(_decimal, values), Fraction()) / len(values)


def closest_to_mean(values: Sequence[float]) -> int:
    """The index of the value closest to the mean, the first of equals."""
    if _agree(values):
        return 0
    centre = mean(values)
    return min(range(len(values)), key=lambda index: abs(_decimal(values[index]) - centre))


def spread(values: Sequence[float]) -> float:
    """The population's standard deviation."""
    if _agree(values):
        return 0.0
    centre = mean(values)
    return math.sqrt(sum((_decimal(value) - centre) ** 2 for value in values) / len(values))


def _agree(values: Sequence[float]) -> bool:
    """Whether they are all the same, as those of a deterministic judge are: exact fractions take time."""
    return values.count(values[0]) == len(values)


def _decimal(value: float) -> Fraction:
    return Fraction(repr(float(value)))
