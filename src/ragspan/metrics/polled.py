"""Metrics that ask a judge for several votes or ratings: all at once, or in two steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Generic, TypeVar

from ragspan.arguments import FLAG, WHOLE
from ragspan.exceptions import JudgeError
from ragspan.judges.base import AnswerRelevanceJudge, Judge, Rating, Vote
from ragspan.metrics.base import JudgedMetric, Named, screen_question, screen_response, screen_status
from ragspan.metrics.causes import with_causes
from ragspan.outcomes import Label, Outcome
from ragspan.records import RagRecord

_Answer = TypeVar("_Answer")
_Judge = TypeVar("_Judge", bound=Named)

_FEWEST_SAMPLES = 2
"""A single vote is a judge's best guess; from two on they are independent samples, which a poll needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledMetric(JudgedMetric[_Judge], Generic[_Judge, _Answer]):
    """A metric of several independent votes or ratings. More than half of them have to be valid."""

    polls: int = 3
    """Votes or ratings to ask for, at least 1; an odd number of votes cannot tie."""
    early_stop: bool = False
    """Ask for a bare majority first, and for the rest only while it can still change the label: the label is the same, the
    value is that of fewer answers. With three polls that saves one reply in three where the first two agree, and costs a
    second request where they do not; it pays from five polls on."""

    def __post_init__(self) -> None:
        JudgedMetric.__post_init__(self)
        WHOLE.check_fields(self, "polls")
        FLAG.check_fields(self, "early_stop")

    def is_valid(self, answer: _Answer) -> bool:
        raise NotImplementedError

    def is_settled(self, answers: Sequence[_Answer]) -> bool:
        """Whether no further answers can change the label."""
        raise NotImplementedError

    async def poll(self, record: RagRecord) -> tuple[int, list[_Answer]]:
        """How many answers were asked for, and the valid ones.

        A judge that fails in the second step costs nothing of the first, if the first is a quorum.

        Raises:
            JudgeError: half of what was asked for, or more, is missing or not valid (`missing_verdicts`).
        """
        asked = self.polls // 2 + 1 if self.early_stop else self.polls
        valid = await self._ask(record, asked)
        if asked < self.polls and not (self._is_quorum(valid) and self.is_settled(valid)):
            try:
                valid += await self._ask(record, max(self.polls - asked, _FEWEST_SAMPLES))
                asked = self.polls
            except JudgeError:
                if not self._is_quorum(valid):
                    raise
        if not self._is_quorum(valid):
            answers = "votes" if self.questions == ("vote_adherence",) else "ratings"
            message = f"{len(valid)} of {self.polls} {answers} are valid, but more than half have to be"
            raise JudgeError("missing_verdicts", message)
        return asked, valid[: self.polls]

    async def _ask(self, record: RagRecord, count: int) -> list[_Answer]:
        """So many answers at most: one request, where an endpoint gives several choices."""
        (question,) = self.questions
        answers: list[_Answer] = await getattr(self.judge, question)(record, count)
        return [answer for answer in answers if self.is_valid(answer)][:count]

    def _is_quorum(self, valid: Sequence[_Answer]) -> bool:
        return 2 * len(valid) > self.polls


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAdherence(PolledMetric[Judge, Vote]):
    """The share of a judge's votes that find the whole response grounded in the contexts, 0..1.

    Single votes of a language model differ by chance, the more the closer the case is; their share measures that. Where
    every vote has a `probability`, the value is the mean probability: a judge that gives one is deterministic, so its
    votes are equal and their share could only be 0 or 1.

    A tie counts as not grounded: an even number of votes should not pass what half of them reject. The explanation is
    that of the first vote of the majority. With half of the votes or fewer valid there is no score.
    `details["spread"]` is the standard deviation of the votes: 0 when they agree, 0.5 when they are divided in halves.

    Source: ChainPoll (Friel and Sanyal 2023, arXiv 2310.18344), turned round to count what is grounded.
    """

    causes: bool = True
    """Look for the support that the contexts of a failing response lack; see `ragspan.metrics.causes`."""
    name = "context_adherence"
    questions = ("vote_adherence",)

    def __post_init__(self) -> None:
        PolledMetric.__post_init__(self)
        FLAG.check_fields(self, "causes")

    async def evaluate(self, record: RagRecord) -> Outcome:
        asked, votes = await self.poll(record)
        majority = 2 * sum(vote.grounded for vote in votes) > len(votes)
        score = self.scored(
            record,
            value=adherence(votes),
            explanation=next(vote.explanation for vote in votes if vote.grounded == majority),
            label=self._label(votes),
            evidence=votes,
            details={"votes": asked, "valid_votes": len(votes), "spread": spread(_values(votes))},
        )
        return await with_causes(score, self.judge, record, None) if self.causes else score

    def is_valid(self, answer: Vote) -> bool:
        return answer.probability is None or 0 <= answer.probability <= 1

    def is_settled(self, answers: Sequence[Vote]) -> bool:
        """Whether no further votes can change the label, however many of them come."""
        label = self._label(answers)
        return all(
            self._label([*answers, *[_YES] * grounded, *[_NO] * (more - grounded)]) == label
            for more in range(1, self.polls - len(answers) + 1)
            for grounded in range(more + 1)
        )

    def _label(self, votes: Sequence[Vote]) -> Label:
        is_tie = 2 * sum(vote.grounded for vote in votes) == len(votes)
        return "pass" if adherence(votes) >= self.threshold and not is_tie else "fail"


_YES = Vote(grounded=True, probability=1.0)
_NO = Vote(grounded=False, probability=0.0)
"""The most that a vote can do for either side, with or without a probability."""


def adherence(votes: Sequence[Vote]) -> float:
    """The mean probability where every vote has one, else the share of votes for "grounded" (ChainPoll)."""
    return math.fsum(_values(votes)) / len(votes)


def _values(votes: Sequence[Vote]) -> list[float]:
    probabilities = [vote.probability for vote in votes if vote.probability is not None]
    return probabilities if len(probabilities) == len(votes) else [float(vote.grounded) for vote in votes]


# Ratings --------------------------------------------------------------------------------------------------------------


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

        Ratings are from 0 to 1. If some do not come, the mean is between the two that are compared here.
        """
        values = [rating.value for rating in answers]
        rest = self.polls - len(values)
        lowest, highest = float(mean([*values, *[0.0] * rest])), float(mean([*values, *[1.0] * rest]))
        return lowest >= self.threshold or highest < self.threshold


@dataclass(frozen=True, slots=True)
class Completeness(RatedMetric[Judge]):
    """The mean of a judge's ratings of how completely the response covers what the contexts hold, 0..1.

    It says nothing about truth: a response may cover everything and invent the rest. Ratings outside 0..1 are not
    valid, and with half of the ratings or fewer valid there is no score. The explanation is that of the rating closest
    to the mean, the first of equals; `details["spread"]` is the standard deviation of the ratings, and a large one says
    that the judge is not sure.

    Source: the polling of ChainPoll (arXiv 2310.18344), with ratings in place of votes.
    """

    name = "completeness"
    questions = ("rate_completeness",)


@dataclass(frozen=True, slots=True)
class AnswerRelevance(RatedMetric[AnswerRelevanceJudge]):
    """The mean of a judge's ratings of how fully the response addresses the question, 0..1.

    It says nothing about truth: an invented answer may be perfectly relevant. A response that declines to answer has 0,
    whether or not the contexts hold an answer. It needs no contexts, but a question: without one it does not apply
    (`no_question`).

    The explanation, `details` and early stop are those of `Completeness`. The embedded judge cannot answer this: a
    response can be relevant without one word of the question.

    Source: answer relevance in TruLens' RAG triad, which has a language model rate it; as in Ragas, an answer that
    commits to nothing has 0. Ragas compares embeddings of questions guessed from the answer, which needs a further model
    and has no fixed end of its scale.
    """

    name = "answer_relevance"
    questions = ("rate_answer_relevance",)
    screens = (screen_status, screen_response, screen_question)


def mean(values: Sequence[float]) -> Fraction:
    """The exact mean of the decimals that the judge wrote.

    Exact, because equal distances to the mean must compare equal: in binary 0.4 is closer to the mean of 0.2 and 0.4
    than 0.2 is.
    """
    if _are_equal(values):
        return _decimal(values[0])
    return sum(map(_decimal, values), Fraction()) / len(values)


def closest_to_mean(values: Sequence[float]) -> int:
    """The index of the value closest to the mean, the first of equals."""
    if _are_equal(values):
        return 0
    centre = mean(values)
    return min(range(len(values)), key=lambda index: abs(_decimal(values[index]) - centre))


def spread(values: Sequence[float]) -> float:
    """The population's standard deviation."""
    if _are_equal(values):
        return 0.0
    centre = mean(values)
    return math.sqrt(sum((_decimal(value) - centre) ** 2 for value in values) / len(values))


def _are_equal(values: Sequence[float]) -> bool:
    """Those of a deterministic judge are, and exact fractions take time."""
    return values.count(values[0]) == len(values)


def _decimal(value: float) -> Fraction:
    return Fraction(repr(float(value)))
