"""What the metrics of single contexts have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragspan.judges.base import ChunkRating
from ragspan.metrics._verdicts import first_by_index
from ragspan.records import RetrievedContext


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgedPassage:
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


def judged_passage(
    contexts: Sequence[RetrievedContext], index: int, value: float, explanation: str | None
) -> JudgedPassage:
    context = contexts[index]
    return JudgedPassage(index=index, id=context.id, rank=context.rank, value=value, explanation=explanation)


def rated_passages(contexts: Sequence[RetrievedContext], ratings: Iterable[ChunkRating]) -> dict[int, JudgedPassage]:
    """The first valid rating of each context, by its index; those outside 0..1 are not valid."""
    valid = (rating for rating in ratings if 0 <= rating.value <= 1)
    return {
        index: judged_passage(contexts, index, rating.value, rating.explanation)
        for index, rating in first_by_index(valid, len(contexts)).items()
    }


def name_passages(passages: Iterable[JudgedPassage]) -> str:
    """The contexts by their places in the prompt, from 1, with their ids where they have any; the first few of many."""
    names = [f"{passage.index + 1}{f' ({passage.id[:_SHOWN_ID]})' if passage.id else ''}" for passage in passages]
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


_SHOWN = 10
_SHOWN_ID = 60
