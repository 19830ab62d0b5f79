"""Who does what to whom, and what comes first or is more: two words of a claim that have changed places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragspan.judges.screen.english import english
from ragspan.judges.screen.evidence import Aligned
from ragspan.judges.screen.facts import SentenceFacts, is_past
from ragspan.judges.screen.finding import Finding

_ALIKE = 0.8
"""The share of the words that both sentences need to have in common."""
_LONGEST = 12
"""Content words of a claim that is looked at."""
_QUOTED = 4
_PIVOTS = {"before": "after", "after": "before", "then": "then", "than": "than"}
_BEING = frozenset({"is", "are", "was", "were", "be", "been", "being", "get", "got"})
_JOINS = frozenset({"and", "or"})


def find_exchange(claim: SentenceFacts, aligned: Sequence[Aligned]) -> Finding | None:
    """Two words on either side of a verb, of "before", "after" or "than" that stand the other way round in the context."""
    if not 2 < len(claim.content) <= _LONGEST:
        return None
    for one in aligned:
        facts = one.facts
        shared = claim.content & facts.content
        if one.share < _ALIKE or len(shared) < _ALIKE * len(claim.content):
            continue
        ours, theirs = (list(_shared_places(side, shared)) for side in (claim, facts))
        if len(ours) != len(shared) or len(theirs) != len(shared):
            continue  # a word that stands there twice has no one place
        for middle, at in _middles(claim, ours):
            other = next((place for place in range(len(facts.keys)) if facts.keys[place] == middle), -1)
            flips = _is_passive(claim, at) != _is_passive(facts, other)
            if other < 0 and middle in _PIVOTS:
                other = next((place for place, key in enumerate(facts.keys) if key == _PIVOTS[middle]), -1)
                flips = True
            if other < 0:
                continue
            if middle == "than":
                flips = _compares_otherwise(claim, facts)
            before, after = _sides(claim, ours, at)
            held_before, held_after = _sides(facts, theirs, other)
            crossed = before & held_after, after & held_before
            kept = before & held_before, after & held_after
            exchanged = all(crossed) and not any(kept)
            if exchanged != flips and (exchanged or all(kept)):
                kind = "order" if middle in _PIVOTS else "role"
                return Finding(kind=kind, response=_quoted(claim, at), context=_quoted(facts, other), place=one.place)
    return None


def _shared_places(facts: SentenceFacts, shared: frozenset[str]) -> Iterator[int]:
    return (at for at, key in enumerate(facts.keys) if key in shared)


def _middles(facts: SentenceFacts, places: Sequence[int]) -> Iterator[tuple[str, int]]:
    """The verbs and pivots of a claim that have shared words on both sides, with their places."""
    for at in range(1, len(facts.keys) - 1):
        word = facts.keys[at]
        if word in _PIVOTS or (at in places and _is_verb(facts, at)):
            if places[0] < at < places[-1]:
                yield word, at


def _is_verb(facts: SentenceFacts, at: int) -> bool:
    written = facts.words[at]
    before, after = facts.keys[at - 1], facts.keys[at + 1]
    if written[0].isupper() or before in {"the", "a", "an"} or after in {"of", *_JOINS} or before in _JOINS:
        return False
    return is_past(written) or (written.endswith("s") and after not in english().auxiliaries)


def _is_passive(facts: SentenceFacts, at: int) -> bool:
    """Whether "by" follows a verb within three words, after a form of "to be"."""
    return at >= 0 and is_past(facts.words[at]) and "by" in facts.keys[at + 1 : at + 4] and not _BEING.isdisjoint(
        word.lower() for word in facts.words[max(0, at - 3) : at]
    )


def _sides(facts: SentenceFacts, places: Sequence[int], at: int) -> tuple[frozenset[str], frozenset[str]]:
    clause = facts.clause_at(at)
    start = 0 if facts.keys[at] == "than" else clause.start
    before = frozenset(facts.keys[place] for place in places if start <= place < at)
    after = frozenset(facts.keys[place] for place in places if at < place < clause.end)
    return before, after


def _compares_otherwise(claim: SentenceFacts, facts: SentenceFacts) -> bool:
    """True where one compares by the opposite of the other's word: larger, smaller."""
    return any(
        other in facts.keys and other not in claim.keys and word not in facts.keys
        for word in claim.keys
        for other in english().opposites.get(word, ())
    )


def _quoted(facts: SentenceFacts, at: int) -> str:
    return " ".join(facts.words[max(0, at - _QUOTED) : at + _QUOTED + 1])
