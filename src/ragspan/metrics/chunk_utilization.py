"""Chunk utilization: how much of the contexts' text did the response use?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from ragspan.judges.base import UtilizationJudge
from ragspan.metrics._arguments import require_judge, require_threshold
from ragspan.metrics._passages import JudgedPassage, name_passages, rated_passages
from ragspan.metrics._scores import judged_score
from ragspan.metrics._verdicts import gap_failure, outcome_of
from ragspan.metrics.base import screen_answer
from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class ChunkUtilization:
    """The share of the contexts' text that the response conveys or rests upon, 0..1.

    A judge says it of each context, by its sentences as a rule; the value is the mean of these shares weighted by the
    contexts' lengths in characters, which is the share of all that the model was given to read. `evidence` has a
    `JudgedPassage` for each context, with its id, its rank and its own share. Every context needs one, or there is no
    score.

    Few answers need half of what was retrieved. Hence the low threshold; set it to what your chunks should reach.

    Source: utilization in TRACe (RAGBench, arXiv 2407.11005), used length / length; each context's share is chunk
    utilization in Galileo.

    Raises:
        ConfigurationError: an argument is wrong, or the judge cannot tell; the message names it.
    """

    judge: UtilizationJudge
    _: KW_ONLY
    threshold: float = 0.1
    """Values from here on pass, 0..1."""
    name = "chunk_utilization"

    def __post_init__(self) -> None:
        require_judge("judge", self.judge, "measure_utilization", asked_by=self.name)
        require_threshold(self.threshold)

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return screen_answer(record)

    async def score(self, record: RagRecord) -> Outcome:
        return self.screen(record) or await outcome_of(self._measure(record))

    async def _measure(self, record: RagRecord) -> Outcome:
        contexts = record.contexts or ()
        passages = rated_passages(contexts, await self.judge.measure_utilization(record))
        failure = gap_failure("contexts", passages, len(contexts))
        if failure:
            return failure
        in_order = [passages[index] for index in range(len(contexts))]
        value = used_share([passage.value for passage in in_order], [len(context.text) for context in contexts])
        return judged_score(
            record,
            self.judge,
            value=value,
            explanation=_explanation(value, in_order),
            threshold=self.threshold,
            evidence=in_order,
            details={"used_contexts": sum(passage.value > 0 for passage in in_order), "contexts": len(in_order)},
        )


def used_share(shares: Sequence[float], lengths: Sequence[int]) -> float:
    """The used length / the length of all (utilization as TRACe defines it)."""
    used = math.fsum(share * length for share, length in zip(shares, lengths, strict=True))
    return min(1.0, used / sum(lengths))


def _explanation(value: float, passages: Sequence[JudgedPassage]) -> str:
    used = [passage for passage in passages if passage.value]
    if not used:
        return f"The response used none of the {len(passages)} contexts."
    return f"{value:.0%} of the contexts' text was used, from contexts {name_passages(used)}."
