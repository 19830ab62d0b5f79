"""Chunk attribution: which of the contexts contributed to the response?"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ragspan.judges.base import Judge
from ragspan.metrics._arguments import require_judge, require_threshold
from ragspan.metrics._passages import judged_passage, name_passages
from ragspan.metrics._scores import judged_score
from ragspan.metrics._verdicts import first_by_index, gap_failure, outcome_of
from ragspan.metrics.base import screen_answer
from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class ChunkAttribution:
    """The share of the contexts that the response made use of, 0..1.

    Each context is attributed or not; `evidence` has a `JudgedPassage` for each, with its id and rank and a value of 1
    or 0. It asks what `ContextUtilization` asks, which weighs the same verdicts by rank, and an LLM judge is asked once
    for both. Every context needs a verdict, or there is no score.

    A low value says that contexts are retrieved for nothing, and a question that one context answers cannot have more
    than one in five with five contexts. Hence the low threshold; set it to what your retriever should reach.

    Source: chunk attribution in Galileo, which leaves it at the verdict on each chunk.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    judge: Judge
    _: KW_ONLY
    threshold: float = 0.2
    """Values from here on pass, 0..1."""
    name = "chunk_attribution"

    def __post_init__(self) -> None:
        require_judge("judge", self.judge, "judge_usefulness")
        require_threshold(self.threshold)

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return screen_answer(record)

    async def score(self, record: RagRecord) -> Outcome:
        return self.screen(record) or await outcome_of(self._judge_each(record))

    async def _judge_each(self, record: RagRecord) -> Outcome:
        contexts = record.contexts or ()
        verdicts = first_by_index(await self.judge.judge_usefulness(record), len(contexts))
        failure = gap_failure("contexts", verdicts, len(contexts))
        if failure:
            return failure
        passages = [
            judged_passage(contexts, index, float(verdicts[index].useful), verdicts[index].explanation)
            for index in range(len(contexts))
        ]
        attributed = [passage for passage in passages if passage.value]
        found = f": {name_passages(attributed)}" if attributed else ""
        return judged_score(
            record,
            self.judge,
            value=len(attributed) / len(passages),
            explanation=f"{len(attributed)} of {len(passages)} contexts contributed to the response{found}.",
            threshold=self.threshold,
            evidence=passages,
            details={"attributed": len(attributed), "contexts": len(passages)},
        )
