"""Context utilization: did the retriever put the contexts that the response needed before those it did not need?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from ragspan.judges.base import Judge
from ragspan.metrics._arguments import require_judge, require_threshold
from ragspan.metrics._scores import judged_score
from ragspan.metrics._verdicts import first_by_index, gap_failure, outcome_of
from ragspan.metrics.base import screen_answer
from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord, RetrievedContext


@dataclass(frozen=True, slots=True)
class ContextUtilization:
    """The average precision of the contexts, 0..1: a judge says of each whether the response made use of it.

    Exactly 1 when all useful contexts come first, 0 when none is useful. It is about order alone: one useful context
    ahead of nine useless ones scores 1. `details["precision"]` beside it is the share of useful contexts.

    Contexts stand in the order of their `rank`. Those without a rank keep their place in the prompt, and the others
    fill the remaining places; so without any ranks the order is the prompt's. Every context needs a verdict, or there
    is no score.

    Source: context utilization in Ragas (context precision without a reference), but with exact arithmetic in place of
    an epsilon in the denominator, which keeps Ragas from ever reaching 1.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    judge: Judge
    _: KW_ONLY
    threshold: float = 0.5
    """Values from here on pass, 0..1."""
    name = "context_utilization"

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
        ranked = [verdicts[index] for index in rank_order(contexts)]
        useful = [verdict.useful for verdict in ranked]
        return judged_score(
            record,
            self.judge,
            value=average_precision(useful),
            explanation=_explanation(useful),
            threshold=self.threshold,
            evidence=ranked,
            details={"precision": sum(useful) / len(useful)},
        )


def rank_order(contexts: Sequence[RetrievedContext]) -> list[int]:
    """The indices of the contexts in the order in which they are judged; equal ranks keep the prompt's order."""
    ranks = {index: context.rank for index, context in enumerate(contexts) if context.rank is not None}
    by_rank = iter(sorted(ranks, key=ranks.__getitem__))
    return [next(by_rank) if index in ranks else index for index in range(len(contexts))]


def average_precision(useful: Sequence[bool]) -> float:
    """The mean of the precision at each useful place: sum over k of (precision@k * v_k) / sum over k of v_k.

    0 when nothing is useful. Source: average precision as in information retrieval, and in Ragas.
    """
    places = [place for place, is_useful in enumerate(useful, start=1) if is_useful]
    if not places:
        return 0.0
    common = math.lcm(*places)  # whole numbers until the one division: exact, and exactly 1 where it should be
    total = sum(found * (common // place) for found, place in enumerate(places, start=1))
    return total / (common * len(places))


def _explanation(useful: Sequence[bool]) -> str:
    places = [str(place) for place, is_useful in enumerate(useful, start=1) if is_useful]
    if not places:
        return f"None of the {len(useful)} contexts was useful for the response."
    shown = ", ".join(places[:_SHOWN_PLACES]) + (", ..." if len(places) > _SHOWN_PLACES else "")
    return f"{len(places)} of {len(useful)} contexts were useful for the response; their places by rank: {shown}."


_SHOWN_PLACES = 20
