"""Context relevance: did the retriever find what answers the question?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ragspan.judges.base import ContextRelevanceJudge
from ragspan.metrics._contexts import JudgedContext, name_contexts, rated_contexts
from ragspan.metrics.base import JudgedMetric, screen_contexts, screen_question, screen_status
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class ContextRelevance(JudgedMetric[ContextRelevanceJudge]):
    """The mean of a judge's ratings of what each context holds in answer to the question, 0..1.

    It is about the search alone: what the response made of the contexts is left out of account, and an empty response
    will do. `evidence` has a `JudgedContext` for each context, with its id and rank; `details["best"]` is the highest
    rating: where that is low, no model could have answered. Every context needs a rating, or there is no score.

    Source: context relevance in TruLens' RAG triad, the mean over the retrieved chunks; the three steps that an LLM
    judge has, nothing, a part, all, are those of NVIDIA's context relevance in Ragas, which rates all chunks together.
    """

    name = "context_relevance"
    questions = ("rate_context_relevance",)
    screens = (screen_status, screen_question, screen_contexts)

    async def evaluate(self, record: RagRecord) -> Outcome:
        judged = rated_contexts(record, await self.judge.rate_context_relevance(record))
        values = [context.value for context in judged]
        return self.scored(
            record,
            value=math.fsum(values) / len(values),
            explanation=_explanation(judged),
            evidence=judged,
            details={"best": max(values), "contexts": len(values)},
        )


def _explanation(contexts: Sequence[JudgedContext]) -> str:
    relevant = [context for context in contexts if context.value]
    if not relevant:
        return f"None of the {len(contexts)} contexts contains anything that answers the question."
    return (
        f"{len(relevant)} of {len(contexts)} contexts contain something that answers the question: "
        f"{name_contexts(relevant)}."
    )
