"""Metrics whose judge says something about each context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from ragspan.judges.judge_protocols import ContextRating, ContextRelevanceJudge, Judge, Named, UtilizationJudge
from ragspan.metrics.metric import (
    REFUSAL,
    Guide,
    JudgedMetric,
    one_each,
    screen_contexts,
    screen_question,
    screen_status,
)
from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord, RetrievedContext
from ragspan.text.responses import declines
from ragspan.turns import with_turns

_Judge = TypeVar("_Judge", bound=Named)
_SHOWN = 15


@dataclass(frozen=True, kw_only=True)
class JudgedContext:
    """What a metric found of one context: evidence that names the context as the retriever does."""

    index: int
    """0-based, into the record's contexts."""
    id: str | None
    """The context's own."""
    rank: int | None
    """0-based place in the retriever's result, if it is known."""
    value: float
    """From 0 to 1; 0 or 1 where the question allows for nothing between."""
    explanation: str | None = None


@dataclass(frozen=True, slots=True)
class ContextMetric(JudgedMetric[_Judge]):
    """A formula over ratings of single contexts. Each needs a rating from 0 to 1, or there is no score."""

    found: ClassVar[str]
    """What the explanation says of the contexts that are rated above 0."""
    by_rank: ClassVar[bool] = False
    """The contexts count in the order of `rank_order`, else in that of the prompt."""

    async def evaluate(self, record: RagRecord) -> Outcome:
        (question,) = self.questions
        contexts = record.contexts or ()
        ratings: list[ContextRating] = await getattr(self.judge, question)(record)
        valid = one_each((rating for rating in ratings if 0 <= rating.value <= 1), len(contexts), "contexts")
        judged = [
            JudgedContext(
                index=index,
                id=contexts[index].id,
                rank=contexts[index].rank,
                value=valid[index].value,
                explanation=valid[index].explanation,
            )
            for index in with_turns(rank_order(contexts) if self.by_rank else range(len(contexts)))
        ]
        value, details = self.formula([one.value for one in judged], contexts)
        some = [f"{at}{f' ({one.id[:60]})' if one.id else ''}" for at, one in enumerate(judged, start=1) if one.value]
        places = ", ".join(some[:_SHOWN]) + (", ..." if len(some) > _SHOWN else "")
        told = f"{len(some)} of {len(judged)} contexts {self.found.format(value)}{': ' if some else ''}{places}."
        return self.scored(record, value, explanation=told, evidence=judged, details=details)

    def formula(self, values: Sequence[float], contexts: Sequence[RetrievedContext]) -> tuple[float, dict[str, float]]:
        """The value and its details."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ContextRelevance(ContextMetric[ContextRelevanceJudge]):
    """The mean of a judge's ratings of what each context holds in answer to the question, 0..1.

    It is about the search alone: the response may be empty. `evidence` has a `JudgedContext` for each context;
    `details["best"]` is the highest rating: where that is low, no model could have answered. Every context needs a rating,
    or there is no score.

    Source: context relevance in TruLens' RAG triad; the three steps that an LLM judge has, nothing, a part, all, are those of
    NVIDIA's context relevance in Ragas, which rates all chunks together.
    """

    name = "context_relevance"
    guide = Guide(
        "Did the retriever find what answers the question?",
        "with a low best, no model could have answered: check the documents, the index and the query. With a high"
        " one, fetch fewer documents, or rerank them.",
    )
    questions = ("rate_context_relevance",)
    screens = (screen_status, screen_question, screen_contexts)

    found = "contain something that answers the question"

    def formula(self, values: Sequence[float], contexts: Sequence[RetrievedContext]) -> tuple[float, dict[str, float]]:
        return math.fsum(values) / len(values), {"best": max(values), "contexts": len(contexts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkAttribution(ContextMetric[Judge]):
    """The share of the contexts that the response made use of, 0..1.

    `evidence` has a `JudgedContext` for each, with a value of 1 or 0. It asks what `ContextUtilization` asks, which weighs the
    same verdicts by rank. Every context needs a verdict, or there is no score. A question that one context answers cannot have
    more than one in five with five contexts, so the threshold is low; set it to what your retriever should reach.

    Source: chunk attribution in Galileo, which leaves it at the verdict on each chunk.
    """

    threshold: float = 0.2
    """Values from here on pass, 0..1."""
    name = "chunk_attribution"
    guide = Guide(
        "Which contexts contributed to the response?",
        "fetch fewer documents. When it is 0, the response came from elsewhere: see context adherence.",
    )
    questions = ("judge_usefulness",)

    found = "contributed to the response"

    def formula(self, values: Sequence[float], contexts: Sequence[RetrievedContext]) -> tuple[float, dict[str, float]]:
        attributed = sum(value > 0 for value in values)
        return attributed / len(values), {"attributed": attributed, "contexts": len(contexts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkUtilization(ContextMetric[UtilizationJudge]):
    """The share of the contexts' text that the response conveys or rests upon, 0..1.

    The value is the mean of the contexts' shares, as a judge says them, weighted by their lengths in characters. `evidence` has a
    `JudgedContext` for each context. Every context needs one, or there is no score. Few answers need half of what was retrieved,
    so the threshold is low; set it to what your chunks should reach.

    Source: utilization in TRACe (RAGBench, arXiv 2407.11005), used length / length; each context's share is chunk
    utilization in Galileo.
    """

    threshold: float = 0.1
    """Values from here on pass, 0..1."""
    name = "chunk_utilization"
    guide = Guide(
        "How much of the contexts' text did the response use?",
        "with high chunk_attribution, the contexts are longer than necessary: make smaller chunks. With low"
        " attribution, fetch fewer.",
    )
    questions = ("measure_utilization",)

    found = "were used, {:.0%} of all text"

    def formula(self, values: Sequence[float], contexts: Sequence[RetrievedContext]) -> tuple[float, dict[str, float]]:
        lengths = [len(context.text) for context in contexts]
        value = math.fsum(value * length for value, length in zip(values, lengths, strict=True)) / sum(lengths)
        return value, {"used_contexts": sum(value > 0 for value in values), "contexts": len(contexts)}


@dataclass(frozen=True, slots=True)
class ContextUtilization(ContextMetric[Judge]):
    """The average precision of the contexts, 0..1: a judge says of each whether the response made use of it.

    Exactly 1 when all useful contexts come first, 0 when none is useful. It is about order alone: one useful context
    ahead of nine useless ones scores 1. `details["precision"]` beside it is the share of useful contexts.

    Contexts are in the order of their `rank`. Those without a rank keep their place in the prompt, and the others fill
    the remaining places. Every context needs a verdict, or there is no score. A response that declines uses no context, whether or not
    it should.

    Source: context utilization in Ragas (context precision without a reference), but with exact arithmetic in place of
    an epsilon in the denominator, which keeps Ragas from ever reaching 1.
    """

    name = "context_utilization"
    guide = Guide(
        "Were the useful contexts at the top of the ranking?",
        "the retriever ranks badly. Try a reranker, or fewer contexts.",
    )
    questions = ("judge_usefulness",)
    found = "were useful for the response, by rank"
    by_rank = True

    def screen(self, record: RagRecord) -> NotApplicable | None:
        declined = NotApplicable(reason=REFUSAL) if declines(record.response or "") else None
        return JudgedMetric.screen(self, record) or declined

    def formula(self, values: Sequence[float], contexts: Sequence[RetrievedContext]) -> tuple[float, dict[str, float]]:
        useful = [value > 0 for value in values]
        return average_precision(useful), {"precision": sum(useful) / len(contexts)}


def rank_order(contexts: Sequence[RetrievedContext]) -> list[int]:
    """The indices of the contexts in the order in which they are judged; equal ranks keep the prompt's order."""
    ranks = {index: context.rank for index, context in enumerate(contexts) if context.rank is not None}
    by_rank = iter(sorted(ranks, key=ranks.__getitem__))
    return [next(by_rank) if index in ranks else index for index in range(len(contexts))]


def average_precision(useful: Sequence[bool]) -> float:
    """The mean of the precision at each useful place: sum over k of (precision@k * v_k) / sum over k of v_k; 0 when nothing is useful."""
    places = [place for place, is_useful in enumerate(useful, start=1) if is_useful]
    common = math.lcm(*places)  # whole numbers until the one division: exact, and exactly 1 where it should be
    total = sum(found * (common // place) for found, place in enumerate(places, start=1))
    return total / (common * max(len(places), 1))
