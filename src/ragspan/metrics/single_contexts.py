"""Metrics whose judge says something about each context."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragspan.judges.judge_protocols import ContextRating, ContextRelevanceJudge, Judge, UtilizationJudge
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


@dataclass(frozen=True, kw_only=True, slots=True)
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
class ContextRelevance(JudgedMetric[ContextRelevanceJudge]):
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

    async def evaluate(self, record: RagRecord) -> Outcome:
        judged = _judged(record, await self.judge.rate_context_relevance(record))
        values = [context.value for context in judged]
        return self.scored(
            record,
            math.fsum(values) / len(values),
            explanation=_told(judged, "contain something that answers the question"),
            evidence=judged,
            details={"best": max(values), "contexts": len(values)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkAttribution(JudgedMetric[Judge]):
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

    async def evaluate(self, record: RagRecord) -> Outcome:
        verdicts = await self.judge.judge_usefulness(record)
        ratings = (ContextRating(index=v.index, value=float(v.useful), explanation=v.explanation) for v in verdicts)
        judged = _judged(record, ratings)
        attributed = sum(context.value > 0 for context in judged)
        return self.scored(
            record,
            attributed / len(judged),
            explanation=_told(judged, "contributed to the response"),
            evidence=judged,
            details={"attributed": attributed, "contexts": len(judged)},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkUtilization(JudgedMetric[UtilizationJudge]):
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

    async def evaluate(self, record: RagRecord) -> Outcome:
        judged = _judged(record, await self.judge.measure_utilization(record))
        lengths = [len(context.text) for context in record.contexts or ()]
        value = math.fsum(one.value * length for one, length in zip(judged, lengths, strict=True)) / sum(lengths)
        return self.scored(
            record,
            value,
            explanation=_told(judged, f"were used, {value:.0%} of all text"),
            evidence=judged,
            details={"used_contexts": sum(context.value > 0 for context in judged), "contexts": len(judged)},
        )


@dataclass(frozen=True, slots=True)
class ContextUtilization(JudgedMetric[Judge]):
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

    def screen(self, record: RagRecord) -> NotApplicable | None:
        declined = NotApplicable(reason=REFUSAL) if declines(record.response or "") else None
        return JudgedMetric.screen(self, record) or declined

    async def evaluate(self, record: RagRecord) -> Outcome:
        contexts = record.contexts or ()
        verdicts = one_each(await self.judge.judge_usefulness(record), len(contexts), "contexts")
        ranked = [verdicts[index] for index in rank_order(contexts)]
        places = [place for place, verdict in enumerate(ranked, start=1) if verdict.useful]
        value, details = (
            average_precision([verdict.useful for verdict in ranked]),
            {"precision": len(places) / len(ranked)},
        )
        some = f"{len(places)} of {len(ranked)} contexts were useful for the response"
        found = f"{some}{'; their places by rank: ' if places else ''}{_first(map(str, places))}."
        return self.scored(record, value, explanation=found, evidence=ranked, details=details)


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


def _judged(record: RagRecord, ratings: Iterable[ContextRating]) -> list[JudgedContext]:
    """The first valid rating of each context, in the contexts' order; ratings outside 0..1 are not valid.

    Raises:
        JudgeError: a context has no valid rating (`missing_verdicts`).
    """
    contexts = record.contexts or ()
    valid = one_each((rating for rating in ratings if 0 <= rating.value <= 1), len(contexts), "contexts")
    return [
        JudgedContext(index=one.index, id=context.id, rank=context.rank, value=one.value, explanation=one.explanation)
        for context, one in zip(contexts, valid, strict=True)
    ]


def _told(judged: Sequence[JudgedContext], what: str) -> str:
    """How many contexts have a value, and which: by their places in the prompt, from 1, with their ids where they have any."""
    names = [f"{one.index + 1}{f' ({one.id[:60]})' if one.id else ''}" for one in judged if one.value]
    return f"{len(names)} of {len(judged)} contexts {what}{': ' if names else ''}{_first(names)}."


def _first(names: Iterable[str], most: int = 15) -> str:
    all_names = list(names)
    return ", ".join(all_names[:most]) + (", ..." if len(all_names) > most else "")
