"""Verdicts by index, and what the metrics of single contexts have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ragspan.exceptions import JudgeError
from ragspan.judges.base import ContextRating
from ragspan.records import RagRecord, RetrievedContext


class Indexed(Protocol):
    @property
    def index(self) -> int: ...


_Verdict = TypeVar("_Verdict", bound=Indexed)


def one_each(verdicts: Iterable[_Verdict], count: int, things: str) -> list[_Verdict]:
    """The first verdict for each of `count` things, in their order; those for other indices do not count.

    Raises:
        JudgeError: one of them has no verdict (`missing_verdicts`).
    """
    first: dict[int, _Verdict] = {}
    for verdict in verdicts:
        if 0 <= verdict.index < count:
            first.setdefault(verdict.index, verdict)
    missing = count - len(first)
    if missing:
        raise JudgeError("missing_verdicts", f"{missing} of {count} {things} have no verdict")
    return [first[index] for index in range(count)]


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


def judged_context(context: RetrievedContext, index: int, value: float, explanation: str | None) -> JudgedContext:
    return JudgedContext(index=index, id=context.id, rank=context.rank, value=value, explanation=explanation)


def rated_contexts(record: RagRecord, ratings: Iterable[ContextRating]) -> list[JudgedContext]:
    """The first valid rating of each context, in the contexts' order; those outside 0..1 are not valid.

    Raises:
        JudgeError: a context has no valid rating (`missing_verdicts`).
    """
    contexts = record.contexts or ()
    valid = (rating for rating in ratings if 0 <= rating.value <= 1)
    return [
        judged_context(context, rating.index, rating.value, rating.explanation)
        for context, rating in zip(contexts, one_each(valid, len(contexts), "contexts"), strict=True)
    ]


def name_contexts(contexts: Sequence[JudgedContext]) -> str:
    """The contexts by their places in the prompt, from 1, with their ids where they have any; the first few of many."""
    names = [f"{context.index + 1}{f' ({context.id[:_SHOWN_ID]})' if context.id else ''}" for context in contexts]
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")


_SHOWN = 10
_SHOWN_ID = 60
