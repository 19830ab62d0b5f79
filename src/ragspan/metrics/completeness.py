"""Completeness: how much of what the contexts say about the question is in the response? By independent ratings."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ragspan.judges.base import Judge, Rating
from ragspan.metrics._arguments import require_judge, require_polls, require_switch, require_threshold
from ragspan.metrics._ratings import poll_ratings
from ragspan.metrics._verdicts import outcome_of
from ragspan.metrics.base import screen_answer
from ragspan.outcomes import NotApplicable, Outcome
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
    early_stop: bool = False
    """Ask for a bare majority of the ratings first, and for the rest only if they could still move the mean across the
    threshold: the label is the same, the value the mean of fewer ratings. It saves output tokens where ratings are
    clear, and costs a second request where they are not."""
    name = "completeness"

    def __post_init__(self) -> None:
        require_judge("judge", self.judge, "rate_completeness")
        require_polls(self.polls)
        require_threshold(self.threshold)
        require_switch("early_stop", self.early_stop)

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return screen_answer(record)

    async def score(self, record: RagRecord) -> Outcome:
        return self.screen(record) or await outcome_of(self._poll(record))

    async def _poll(self, record: RagRecord) -> Outcome:
        async def ask(ratings: int) -> list[Rating]:
            return await self.judge.rate_completeness(record, ratings)

        return await poll_ratings(
            record, self.judge, ask, polls=self.polls, threshold=self.threshold, early_stop=self.early_stop
        )
