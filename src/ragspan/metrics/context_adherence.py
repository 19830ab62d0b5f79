"""Context adherence: does the response as a whole keep to its contexts? By independent votes of a judge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ragspan.arguments import FLAG
from ragspan.judges.base import Judge, Vote
from ragspan.metrics._polling import PolledMetric, spread
from ragspan.metrics.causes import with_causes
from ragspan.outcomes import Label, Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAdherence(PolledMetric[Judge, Vote]):
    """The share of a judge's votes that find the whole response grounded in the contexts, 0..1.

    Chance makes single votes of a language model differ, and the more so the closer the case is; their share measures
    that. Where every vote carries a `probability` the value is the mean probability: a judge that gives one is
    deterministic, its votes are equal, and their share would leave nothing but 0 and 1.

    A tie counts as not grounded: an even number of votes should not pass what half of them reject. The explanation is
    that of the first vote on the side of the majority. With half of the votes or fewer valid there is no score.
    `details["spread"]` is the standard deviation of the votes: 0 when they agree, 0.5 when they are divided in halves.

    Source: ChainPoll (Friel and Sanyal 2023, arXiv 2310.18344), turned round to count what is grounded.
    """

    causes: bool = True
    """Look for the support that the contexts of a failing response lack; see `ragspan.metrics.causes`."""
    name = "context_adherence"
    questions = ("vote_adherence",)

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

    async def ask(self, record: RagRecord, count: int) -> list[Vote]:
        return await self.judge.vote_adherence(record, count)

    def is_valid(self, answer: Vote) -> bool:
        return answer.probability is None or 0 <= answer.probability <= 1

    def is_settled(self, answers: Sequence[Vote]) -> bool:
        """Whether the label is the same whatever the other votes are, and however many of them come."""
        label = self._label(answers)
        return all(
            self._label([*answers, *[_YES] * grounded, *[_NO] * (more - grounded)]) == label
            for more in range(1, self.polls - len(answers) + 1)
            for grounded in range(more + 1)
        )

    def _check(self) -> None:
        PolledMetric._check(self)  # noqa: SLF001 - the base's; super() does not work with slots
        FLAG.check_fields(self, "causes")

    def _label(self, votes: Sequence[Vote]) -> Label:
        is_tie = 2 * sum(vote.grounded for vote in votes) == len(votes)
        return "pass" if adherence(votes) >= self.threshold and not is_tie else "fail"


def adherence(votes: Sequence[Vote]) -> float:
    """The mean probability where every vote has one, else the share of votes for "grounded" (ChainPoll)."""
    return math.fsum(_values(votes)) / len(votes)


def _values(votes: Sequence[Vote]) -> list[float]:
    probabilities = [vote.probability for vote in votes if vote.probability is not None]
    return probabilities if len(probabilities) == len(votes) else [float(vote.grounded) for vote in votes]


_YES = Vote(grounded=True, probability=1.0)
_NO = Vote(grounded=False, probability=0.0)
"""The most that a vote can do for either side, with or without a probability."""
