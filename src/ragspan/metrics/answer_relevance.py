"""Answer relevance: does the response speak to what was asked? By independent ratings."""

from __future__ import annotations

from dataclasses import dataclass

from ragspan.judges.base import AnswerRelevanceJudge, Rating
from ragspan.metrics._polling import RatedMetric
from ragspan.metrics.base import screen_question, screen_response, screen_status
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class AnswerRelevance(RatedMetric[AnswerRelevanceJudge]):
    """The mean of a judge's ratings of how fully the response addresses the question, 0..1.

    It is about what the response speaks of, not about its truth: an invented answer may be perfectly relevant. A
    response that declines to answer has 0, whether or not the contexts hold an answer. It needs no contexts, but a
    question: without one it does not apply (`no_question`).

    The explanation, `details` and early stop are those of `Completeness`. The embedded judge cannot answer this: a
    response can be relevant without one word of the question.

    Source: answer relevance in TruLens' RAG triad, which has a language model rate it; as in Ragas, an answer that
    commits to nothing has 0. Ragas compares embeddings of questions guessed from the answer, which needs a further model
    and has no fixed end of its scale.
    """

    name = "answer_relevance"
    questions = ("rate_answer_relevance",)
    screens = (screen_status, screen_response, screen_question)

    async def ask(self, record: RagRecord, count: int) -> list[Rating]:
        return await self.judge.rate_answer_relevance(record, count)
