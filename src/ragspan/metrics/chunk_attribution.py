"""Chunk attribution: which of the contexts contributed to the response?"""

from __future__ import annotations

from dataclasses import dataclass

from ragspan.judges.base import Judge
from ragspan.metrics._contexts import judged_context, name_contexts, one_each
from ragspan.metrics.base import JudgedMetric
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkAttribution(JudgedMetric[Judge]):
    """The share of the contexts that the response made use of, 0..1.

    Each context is attributed or not; `evidence` has a `JudgedContext` for each, with its id and rank and a value of 1
    or 0. It asks what `ContextUtilization` asks, which weighs the same verdicts by rank, and an LLM judge is asked once
    for both. Every context needs a verdict, or there is no score.

    A low value says that contexts are retrieved for nothing, and a question that one context answers cannot have more
    than one in five with five contexts. Hence the low threshold; set it to what your retriever should reach.

    Source: chunk attribution in Galileo, which leaves it at the verdict on each chunk.
    """

    threshold: float = 0.2
    """Values from here on pass, 0..1."""
    name = "chunk_attribution"
    questions = ("judge_usefulness",)

    async def evaluate(self, record: RagRecord) -> Outcome:
        contexts = record.contexts or ()
        verdicts = one_each(await self.judge.judge_usefulness(record), len(contexts), "contexts")
        judged = [
            judged_context(context, verdict.index, float(verdict.useful), verdict.explanation)
            for context, verdict in zip(contexts, verdicts, strict=True)
        ]
        attributed = [context for context in judged if context.value]
        found = f": {name_contexts(attributed)}" if attributed else ""
        return self.scored(
            record,
            value=len(attributed) / len(judged),
            explanation=f"{len(attributed)} of {len(judged)} contexts contributed to the response{found}.",
            evidence=judged,
            details={"attributed": len(attributed), "contexts": len(judged)},
        )
