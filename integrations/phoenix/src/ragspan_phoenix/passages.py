"""Which document of which search a verdict on a context is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from ragspan.judges.base import ContextRating, ContextVerdict
from ragspan.metrics import JudgedContext
from ragspan.outcomes import Score
from ragspan.records import RagRecord, Retrieval, RetrievedContext

Place: TypeAlias = tuple[int, int]
"""The number of a search in the record, and the place of a document in its result, both 0-based."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PassageVerdict:
    """What a metric found of one context."""

    index: int
    """0-based, into the record's contexts."""
    value: float
    label: str | None
    explanation: str | None


def verdicts_on_passages(score: Score) -> Iterator[PassageVerdict]:
    """The score's evidence, as far as it is about single contexts."""
    for verdict in score.evidence:
        match verdict:
            case ContextVerdict():
                yield PassageVerdict(
                    index=verdict.index,
                    value=float(verdict.useful),
                    label="useful" if verdict.useful else "not useful",
                    explanation=verdict.explanation,
                )
            case ContextRating() | JudgedContext():
                yield PassageVerdict(
                    index=verdict.index, value=verdict.value, label=None, explanation=verdict.explanation
                )


def places_of(record: RagRecord) -> list[list[Place]]:
    """For each context where the record's searches found it: one place a search, none if it came from elsewhere."""
    return [
        [
            (number, place)
            for number, retrieval in enumerate(record.retrievals)
            if (place := _place_in(retrieval, context)) is not None
        ]
        for context in record.contexts or ()
    ]


def _place_in(retrieval: Retrieval, context: RetrievedContext) -> int | None:
    """Where the search has the context; by its id where its text was changed on the way, by its text where it has no id."""
    found = retrieval.contexts
    if context.rank is not None and context.rank < len(found) and _are_same(found[context.rank], context):
        return context.rank
    by_id = (place for place, other in enumerate(found) if context.id is not None and other.id == context.id)
    by_text = (place for place, other in enumerate(found) if other.text == context.text)
    exact = (place for place, other in enumerate(found) if _are_same(other, context))
    return next(exact, next(by_id, next(by_text, None)))


def _are_same(one: RetrievedContext, other: RetrievedContext) -> bool:
    return one.id == other.id and one.text == other.text
