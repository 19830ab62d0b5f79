"""Context relevance: did the retriever find what answers the question?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from ragspan.judges.base import ContextRelevanceJudge
from ragspan.metrics._arguments import require_judge, require_threshold
from ragspan.metrics._passages import JudgedPassage, name_passages, rated_passages
from ragspan.metrics._scores import judged_score
from ragspan.metrics._verdicts import gap_failure, outcome_of
from ragspan.metrics.base import screen_contexts, screen_question, screen_status
from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class ContextRelevance:
    """The mean of a judge's ratings of what each context holds in answer to the question, 0..1.

    It is about the search alone: what the response made of the contexts is left out of account, and an empty response
    will do. `evidence` has a `JudgedPassage` for each context, with its id and rank; `details["best"]` is the highest
    rating: where that is low, no model could have answered. Every context needs a rating, or there is no score.

    Source: context relevance in TruLens' RAG triad, the mean over the retrieved chunks; the three steps that an LLM
    judge has, nothing, a part, all, are those of NVIDIA's context relevance in Ragas, which rates all chunks together.

    Raises:
        ConfigurationError: an argument is wrong, or the judge cannot tell; the message names it.
    """

    judge: ContextRelevanceJudge
    _: KW_ONLY
    threshold: float = 0.5
    """Values from here on pass, 0..1."""
    name = "context_relevance"

    def __post_init__(self) -> None:
        require_judge("judge", self.judge, "rate_context_relevance", asked_by=self.name)
        require_threshold(self.threshold)

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return screen_status(record) or screen_question(record) or screen_contexts(record)

    async def score(self, record: RagRecord) -> Outcome:
        return self.screen(record) or await outcome_of(self._rate_each(record))

    async def _rate_each(self, record: RagRecord) -> Outcome:
        contexts = record.contexts or ()
        passages = rated_passages(contexts, await self.judge.rate_context_relevance(record))
        failure = gap_failure("contexts", passages, len(contexts))
        if failure:
            return failure
        in_order = [passages[index] for index in range(len(contexts))]
        return judged_score(
            record,
            self.judge,
            value=math.fsum(passage.value for passage in in_order) / len(in_order),
            explanation=_explanation(in_order),
            threshold=self.threshold,
            evidence=in_order,
            details={"best": max(passage.value for passage in in_order), "contexts": len(in_order)},
        )


def _explanation(passages: Sequence[JudgedPassage]) -> str:
    relevant = [passage for passage in passages if passage.value]
    if not relevant:
        return f"None of the {len(passages)} contexts contains anything that answers the question."
    return (
        f"{len(relevant)} of {len(passages)} contexts contain something that answers the question: "
        f"{name_passages(relevant)}."
    )
