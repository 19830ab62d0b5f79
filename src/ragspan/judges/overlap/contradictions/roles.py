"""Who did what to whom: arguments that have changed places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragspan.judges.overlap.contradictions.aligning import Aligned
from ragspan.judges.overlap.contradictions.facts import SentenceFacts, tells
from ragspan.judges.overlap.contradictions.finding import Contradiction
from ragspan.judges.overlap.contradictions.tables import Tables

_ENOUGH = 0.8
_REACH = 8
_ORDERS = {"before": 1, "after": -1, "than": 1}
_BEING = frozenset({"is", "are", "was", "were", "be", "been", "being"})


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sides:
    """The content words before and after a word, the one that acts first."""

    first: tuple[str, ...]
    second: tuple[str, ...]


def find_swap(claim: SentenceFacts, aligned: Sequence[Aligned], language: Tables) -> Contradiction | None:
    """Two words on either side of a verb, or of "before", "after", "than", that stand the other way round."""
    for one in aligned:
        if one.share < _ENOUGH:
            continue
        pivots = sorted(_verbs(claim) & _verbs(one.facts))
        pivots += [
            word
            for word in _ORDERS
            if word in claim.keys and not _orders_of(one.facts).isdisjoint({word, _OTHER.get(word, word)})
        ]
        for pivot in pivots:
            other = pivot if pivot in one.facts.keys else _OTHER.get(pivot, pivot)
            said, held = _sides(claim, pivot), _sides(one.facts, other)
            turned = _turned(claim, one.facts, language) if pivot == "than" else False
            swapped = _swapped(said, held, claim, one.facts, pivot)
            if (turned and not swapped and _aligned(said, held)) or (swapped and not turned):
                return _contradiction(claim, one.facts, pivot, other)
    return None


_OTHER = {"before": "after", "after": "before"}


def _verbs(facts: SentenceFacts) -> set[str]:
    """Keys of words that look like verbs."""
    return {
        word
        for word, written in zip(facts.keys, facts.words, strict=True)
        if word in facts.content and (written.endswith(("ed", "s", "en")) or written.lower() in _PAST)
    }


_PAST = frozenset(
    [
        "beat",
        "won",
        "bought",
        "sold",
        "made",
        "gave",
        "took",
        "led",
        "paid",
        "built",
        "taught",
        "wrote",
        "ate",
        "chose",
        "hit",
        "cut",
        "met",
        "sent",
        "lent",
        "left",
        "told",
        "brought",
        "caught",
        "fought",
        "found",
        "held",
        "kept",
        "knew",
        "lost",
        "rode",
        "saw",
        "sang",
        "shot",
        "stole",
        "struck",
        "threw",
        "wore",
        "drew",
        "grew",
        "became",
        "beaten",
        "begun",
        "broke",
        "drove",
        "flew",
        "followed",
        "overtook",
        "overthrew",
        "put",
        "read",
        "set",
        "split",
        "spent",
        "understood",
    ]
)


def _orders_of(facts: SentenceFacts) -> set[str]:
    return {word for word in facts.keys if word in _ORDERS}


def _sides(facts: SentenceFacts, pivot: str) -> _Sides:
    at = facts.keys.index(pivot)
    clause = next(clause for clause in facts.clauses if clause.start <= at < clause.end)
    before = [word for word in facts.keys[max(clause.start, at - _REACH) : at] if tells(word)]
    after = [word for word in facts.keys[at + 1 : min(clause.end, at + 1 + _REACH)] if tells(word)]
    being = not _BEING.isdisjoint(word.lower().removesuffix("n't") for word in facts.words[max(0, at - 3) : at])
    passive = being and "by" in facts.keys[at + 1 : at + _REACH]
    if pivot == "after" or passive:
        before, after = after, before
    return _Sides(first=tuple(before), second=tuple(after))


def _swapped(said: _Sides, held: _Sides, claim: SentenceFacts, facts: SentenceFacts, pivot: str) -> bool:
    first, second = frozenset(said.first), frozenset(said.second)
    there, here = frozenset(held.first), frozenset(held.second)
    if pivot in _ORDERS:
        return bool((first - there) & (here - second)) and bool((there - first) & (second - here))
    if first & there or not (first & here and second & there):
        return False
    names = frozenset().union(*(name.keys for name in (*claim.names, *facts.names)))
    if first & here & names and second & there & names:
        return True
    return (
        _preposition(claim, pivot) == _preposition(facts, pivot)
        and bool((first - there) & (here - second))
        and bool((there - first) & (second - here))
        and (first | second) <= (here | there)
    )


def _preposition(facts: SentenceFacts, pivot: str) -> str:
    """The word after a verb where it tells nothing but how its object hangs on it."""
    at = facts.keys.index(pivot) + 1
    following = facts.keys[at] if at < len(facts.keys) else ""
    return "" if tells(following) or following in {"the", "a", "an", "its", "their", "his", "her"} else following


def _aligned(said: _Sides, held: _Sides) -> bool:
    return bool(frozenset(said.first) & frozenset(held.first)) and bool(frozenset(said.second) & frozenset(held.second))


def _turned(claim: SentenceFacts, facts: SentenceFacts, language: Tables) -> bool:
    """True where one compares by the opposite of the other's word: larger, smaller."""
    return any(
        other in facts.keys and other not in claim.keys and word not in facts.keys
        for word in claim.keys
        for other in language.opposites.get(word, ())
    )


def _contradiction(claim: SentenceFacts, facts: SentenceFacts, pivot: str, other: str) -> Contradiction:
    return Contradiction(kind="role", response=_around(claim, pivot), context=_around(facts, other))


def _around(facts: SentenceFacts, pivot: str) -> str:
    at = facts.keys.index(pivot)
    return " ".join(facts.words[max(0, at - 4) : at + 5])
