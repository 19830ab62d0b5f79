"""Context utilization: did the retriever put the contexts that the response needed before those it did not need?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ragspan.judges.base import Judge
from ragspan.metrics._contexts import one_each
from ragspan.metrics.base import JudgedMetric
from ragspan.outcomes import Outcome
from ragspan.records import RagRecord, RetrievedContext


@dataclass(frozen=True, slots=True)
class ContextUtilization(JudgedMetric[Judge]):
    """The average precision of the contexts, 0..1: a judge says of each whether the response made use of it.

    Exactly 1 when all useful contexts come first, 0 when none is useful. It is about order alone: one useful context
    ahead of nine useless ones scores 1. `details["precision"]` beside it is the share of useful contexts.

    Contexts stand in the order of their `rank`. Those without a rank keep their place in the prompt, and the others
    fill the remaining places; so without any ranks the order is the prompt's. Every context needs a verdict, or there
    is no score.

    Source: context utilization in Ragas (context precision without a reference), but with exact arithmetic in place of
    an epsilon in the denominator, which keeps Ragas from ever reaching 1.
    """

    name = "context_utilization"
    questions = ("judge_usefulness",)

    async def evaluate(self, record: RagRecord) -> Outcome:
        contexts = record.contexts or ()
        verdicts = one_each(await self.judge.judge_usefulness(record), len(contexts), "contexts")
        ranked = [verdicts[index] for index in rank_order(contexts)]
        useful = [verdict.useful for verdict in ranked]
        return self.scored(
            record,
            value=average_precision(useful),
            explanation=_explanation(useful),
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
