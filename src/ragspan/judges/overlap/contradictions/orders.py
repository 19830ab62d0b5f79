"""What comes before or after what, and what is more than what: sides that have changed places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragspan.judges.overlap.contradictions.aligning import Aligned
from ragspan.judges.overlap.contradictions.facts import SentenceFacts, tells
from ragspan.judges.overlap.contradictions.finding import Contradiction
from ragspan.judges.overlap.contradictions.tables import Tables

_ENOUGH, _MOST = 0.6, 0.8
_REACH = 8
_OTHERS = {"before": ("before", "after", "then"), "after": ("after", "before", "then"), "than": ("than",)}
_OTHERS["then"] = ("then", "before", "after")


@dataclass(frozen=True, slots=True)
class _Sides:
    """The content words on either side of a word; what comes first, or is more, is `first`."""

    first: frozenset[str]
    second: frozenset[str]

    def are_swapped(self, held: _Sides) -> bool:
        return bool((self.first - held.first) & (held.second - self.second)) and bool(
            (held.first - self.first) & (self.second - held.second)
        )

    def are_alike(self, held: _Sides) -> bool:
        return bool(self.first & held.first) and bool(self.second & held.second)


def find_swap(claim: SentenceFacts, aligned: Sequence[Aligned], language: Tables) -> Contradiction | None:
    """Two words on either side of "before", "after", "then" or "than" that stand the other way round."""
    pivots = [word for word in _OTHERS if word in claim.keys]
    for one in aligned if pivots else ():
        if one.share < _ENOUGH:
            continue
        for pivot in pivots:
            other = next((word for word in _OTHERS[pivot] if word in one.facts.keys), None)
            if other is None or (pivot != "than" and one.share < _MOST):
                continue
            said, held = _sides(claim, pivot), _sides(one.facts, other)
            turned = pivot == "than" and _is_turned(claim, one.facts, language)
            swapped = said.are_swapped(held)
            if (turned and not swapped and said.are_alike(held)) or (swapped and not turned):
                return Contradiction(kind="order", response=_around(claim, pivot), context=_around(one.facts, other))
    return None


def _sides(facts: SentenceFacts, pivot: str) -> _Sides:
    at = facts.keys.index(pivot)
    clause = next(clause for clause in facts.clauses if clause.start <= at < clause.end)
    start, end = clause.start, clause.end
    before, after = facts.keys[max(start, at - _REACH) : at], facts.keys[at + 1 : min(end, at + 1 + _REACH)]
    if not at:  # "Before meals, take two."
        end = min((place for place in facts.pauses if place), default=len(facts.keys))
        before, after = facts.keys[end : end + _REACH], facts.keys[1:end]
    sides = frozenset(filter(tells, before)), frozenset(filter(tells, after))
    return _Sides(*(sides[::-1] if pivot == "after" else sides))


def _is_turned(claim: SentenceFacts, facts: SentenceFacts, language: Tables) -> bool:
    """True where one compares by the opposite of the other's word: larger, smaller."""
    return any(
        other in facts.keys and other not in claim.keys and word not in facts.keys
        for word in claim.keys
        for other in language.opposites.get(word, ())
    )


def _around(facts: SentenceFacts, pivot: str) -> str:
    at = facts.keys.index(pivot)
    return " ".join(facts.words[max(0, at - 4) : at + 5])
