"""Context adherence: does the response as a whole keep to its contexts? By independent votes of a judge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from ragspan.judges.base import Judge, Vote
from ragspan.metrics._arguments import require_judge, require_polls, require_switch, require_threshold
from ragspan.metrics._polling import poll_at_once, poll_until_settled
from ragspan.metrics._ratings import spread
from ragspan.metrics._scores import judged_score
from ragspan.metrics._verdicts import outcome_of, quorum_failure
from ragspan.metrics.base import screen_answer
from ragspan.outcomes import Label, NotApplicable, Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class ContextAdherence:
    """The share of a judge's votes that find the whole response grounded in the contexts, 0..1.

    Chance makes single votes of a language model differ, and the more so the closer the case is; their share measures
    that. Where every vote carries a `probability` the value is the mean probability: a judge that gives one is
    deterministic, its votes are equal, and their share would leave nothing but 0 and 1.

    A tie counts as not grounded: an even number of votes should not pass what half of them reject. The explanation is
    that of the first vote on the side of the majority. With half of the votes or fewer valid there is no score.
    `details["spread"]` is the standard deviation of the votes: 0 when they agree, 0.5 when they are divided in halves.

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
    early_stop: bool = False
    """Ask for a bare majority of the votes first, and for the rest only while they could still change the label: it is
    the same then, the value the share of fewer votes. With the default three votes that saves one reply in three where
    the first two agree, and costs a second request where they do not; it pays from five votes on."""
    name = "context_adherence"

    def __post_init__(self) -> None:
        require_judge("judge", self.judge, "vote_adherence")
        require_polls(self.polls)
        require_threshold(self.threshold)
        require_switch("early_stop", self.early_stop)

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return screen_answer(record)

    async def score(self, record: RagRecord) -> Outcome:
        return self.screen(record) or await outcome_of(self._poll(record))

    async def _poll(self, record: RagRecord) -> Outcome:
        async def ask(votes: int) -> list[Vote]:
            return await self.judge.vote_adherence(record, votes)

        if self.early_stop:
            poll = await poll_until_settled(ask, self.polls, is_valid=_is_valid, is_settled=self._is_settled)
        else:
            poll = await poll_at_once(ask, self.polls, is_valid=_is_valid)
        votes = poll.valid
        failure = quorum_failure("votes", asked=self.polls, valid=len(votes))
        if failure:
            return failure
        majority = 2 * sum(vote.grounded for vote in votes) > len(votes)
        return judged_score(
            record,
            self.judge,
            value=adherence(votes),
            explanation=next(vote.explanation for vote in votes if vote.grounded == majority),
            threshold=self.threshold,
            label=self._label(votes),
            evidence=votes,
            details={"votes": poll.asked, "valid_votes": len(votes), "spread": spread(_values(votes))},
        )

    def _label(self, votes: Sequence[Vote]) -> Label:
        is_tie = 2 * sum(vote.grounded for vote in votes) == len(votes)
        return "pass" if adherence(votes) >= self.threshold and not is_tie else "fail"

    def _is_settled(self, votes: Sequence[Vote]) -> bool:
        """Whether the label is the same whatever the votes are that are still to be had, and however many of them come."""
        label = self._label(votes)
        return all(
            self._label([*votes, *[_YES] * grounded, *[_NO] * (more - grounded)]) == label
            for more in range(1, self.polls - len(votes) + 1)
            for grounded in range(more + 1)
        )


def adherence(votes: Sequence[Vote]) -> float:
    """The mean probability where every vote has one, else the share of votes for "grounded" (ChainPoll)."""
    return math.fsum(_values(votes)) / len(votes)


def _values(votes: Sequence[Vote]) -> list[float]:
    probabilities = [vote.probability for vote in votes if vote.probability is not None]
    return probabilities if len(probabilities) == len(votes) else [float(vote.grounded) for vote in votes]


def _is_valid(vote: Vote) -> bool:
    return vote.probability is None or 0 <= vote.probability <= 1


_YES = Vote(grounded=True, probability=1.0)
_NO = Vote(grounded=False, probability=0.0)
"""The most that a vote can do for either side, with or without a probability."""
