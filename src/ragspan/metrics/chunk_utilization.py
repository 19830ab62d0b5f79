"""Chunk utilization: how much of the contexts' text did the response use?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ragspan.judges.base import UtilizationJudge
from ragspan.metrics._contexts import JudgedContext, name_contexts, rated_contexts
from ragspan.metrics.base import JudgedMetric
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkUtilization(JudgedMetric[UtilizationJudge]):
    """The share of the contexts' text that the response conveys or rests upon, 0..1.

    A judge says it of each context, by its sentences as a rule; the value is the mean of these shares weighted by the
    contexts' lengths in characters, which is the share of all that the model was given to read. `evidence` has a
    `JudgedContext` for each context, with its id, its rank and its own share. Every context needs one, or there is no
    score.

    Few answers need half of what was retrieved. Hence the low threshold; set it to what your chunks should reach.

    Source: utilization in TRACe (RAGBench, arXiv 2407.11005), used length / length; each context's share is chunk
    utilization in Galileo.
    """

    threshold: float = 0.1
    """Values from here on pass, 0..1."""
    name = "chunk_utilization"
    questions = ("measure_utilization",)

    async def evaluate(self, record: RagRecord) -> Outcome:
        judged = rated_contexts(record, await self.judge.measure_utilization(record))
        lengths = [len(context.text) for context in record.contexts or ()]
        value = used_share([context.value for context in judged], lengths)
        return self.scored(
            record,
            value=value,
            explanation=_explanation(value, judged),
            evidence=judged,
            details={"used_contexts": sum(context.value > 0 for context in judged), "contexts": len(judged)},
        )


def used_share(shares: Sequence[float], lengths: Sequence[int]) -> float:
    """The used length / the length of all (utilization as TRACe defines it)."""
    used = math.fsum(share * length for share, length in zip(shares, lengths, strict=True))
    return min(1.0, used / sum(lengths))


def _explanation(value: float, contexts: Sequence[JudgedContext]) -> str:
    used = [context for context in contexts if context.value]
    if not used:
        return f"The response used none of the {len(contexts)} contexts."
    return f"{value:.0%} of the contexts' text was used, from contexts {name_contexts(used)}."
