"""Answer relevance: does the response speak to what was asked? By independent ratings."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ragspan.judges.base import AnswerRelevanceJudge, Rating
from ragspan.metrics._arguments import require_judge, require_polls, require_switch, require_threshold
from ragspan.metrics._ratings import poll_ratings
from ragspan.metrics._verdicts import outcome_of
from ragspan.metrics.base import screen_question, screen_response, screen_status
from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class AnswerRelevance:
    """The mean of a judge's ratings of how fully the response addresses the question, 0..1.

    It is about what the response speaks of, not about its truth: an invented answer may be perfectly relevant. A
    response that declines to answer has 0, whether or not the contexts hold an answer. It needs no contexts, but a
    question: without one it does not apply (`no_question`).

    The explanation, `details` and early stop are those of `Completeness`. The embedded judge cannot answer this: a
    response can be relevant without one word of the question.

    Source: answer relevance in TruLens' RAG triad, which has a language model rate it; as in Ragas, an answer that
    commits to nothing has 0. Ragas compares embeddings of questions guessed from the answer, which needs a further model
    and has no fixed end of its scale.

    Raises:
        ConfigurationError: an argument is wrong, or the judge cannot tell; the message names it.
    """

    judge: AnswerRelevanceJudge
    _: KW_ONLY
    polls: int = 3
    """Ratings to ask for, at least 1."""
    threshold: float = 0.5
    """Values from here on pass, 0..1."""
    early_stop: bool = False
    """As in `Completeness`."""
    name = "answer_relevance"

    def __post_init__(self) -> None:
        require_judge("judge", self.judge, "rate_answer_relevance", asked_by=self.name)
        require_polls(self.polls)
        require_threshold(self.threshold)
        require_switch("early_stop", self.early_stop)

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return screen_status(record) or screen_response(record) or screen_question(record)

    async def score(self, record: RagRecord) -> Outcome:
        return self.screen(record) or await outcome_of(self._poll(record))

    async def _poll(self, record: RagRecord) -> Outcome:
        async def ask(ratings: int) -> list[Rating]:
            return await self.judge.rate_answer_relevance(record, ratings)

        return await poll_ratings(
            record, self.judge, ask, polls=self.polls, threshold=self.threshold, early_stop=self.early_stop
        )
