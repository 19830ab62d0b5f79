"""Context adherence: does the response as a whole keep to its contexts? By independent votes of a judge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from ragspan.judges.base import Judge, Vote
from ragspan.metrics._arguments import require_judge, require_polls, require_threshold
from ragspan.metrics._verdicts import outcome_of, quorum_failure
from ragspan.metrics.base import screen_answer
from ragspan.outcomes import NotApplicable, Outcome, Score
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class ContextAdherence:
    """The share of a judge's votes that find the whole response grounded in the contexts, 0..1.

    Chance makes single votes of a language model differ, and the more so the closer the case is; their share measures
    that. Where every vote carries a `probability` the value is the mean probability: a judge that gives one is
    deterministic, its votes are equal, and their share would leave nothing but 0 and 1.

    A tie counts as not grounded: an even number of votes should not pass what half of them reject. The explanation is
    that of the first vote on the side of the majority. With half of the votes or fewer valid there is no score.

    Source: ChainPoll (Friel and Sanyal 2023, arXiv 2310.18344), turned round to count what is grounded.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    judge: Judge
    _: KW_ONLY
    polls: int = 3
    """Votes to ask for, at least 1; an odd number cannot tie."""
    threshold: float = 0.5
    """Values from here on pass, 0..1."""
    name: ClassVar[str] = "context_adherence"

    def __post_init__(self) -> None:
        require_judge("judge", self.judge, "vote_adherence")
        require_polls(self.polls)
        require_threshold(self.threshold)

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return screen_answer(record)

    async def score(self, record: RagRecord) -> Outcome:
        return self.screen(record) or await outcome_of(self._poll(record))

    async def _poll(self, record: RagRecord) -> Outcome:
        answers = await self.judge.vote_adherence(record, self.polls)
        votes = [vote for vote in answers if _is_valid(vote)][: self.polls]
        failure = quorum_failure("votes", asked=self.polls, valid=len(votes))
        if failure:
            return failure
        grounded = sum(vote.grounded for vote in votes)
        majority = 2 * grounded > len(votes)
        return Score(
            value=adherence(votes),
            explanation=next(vote.explanation for vote in votes if vote.grounded == majority),
            threshold=self.threshold,
            label="fail" if 2 * grounded == len(votes) else None,
            evidence=tuple(votes),
            details={"votes": self.polls, "valid_votes": len(votes)},
            judge=self.judge.name,
        )


def adherence(votes: Sequence[Vote]) -> float:
    """The mean probability where every vote has one, else the share of votes for "grounded" (ChainPoll)."""
    probabilities = [vote.probability for vote in votes if vote.probability is not None]
    if len(probabilities) == len(votes):
        return math.fsum(probabilities) / len(votes)
    return sum(vote.grounded for vote in votes) / len(votes)


def _is_valid(vote: Vote) -> bool:
    return vote.probability is None or 0 <= vote.probability <= 1
