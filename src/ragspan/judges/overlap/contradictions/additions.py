"""What a claim adds to the context, or puts in the place of something there: parts of it that no sentence holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ragspan.judges.overlap.contradictions.aligning import Aligned
from ragspan.judges.overlap.contradictions.facts import SentenceFacts
from ragspan.judges.overlap.contradictions.finding import Contradiction

_REACH = 4
_SHORT = 8
"""Content words of a claim that is so short that one invented word is much of it."""
_PREPOSITIONS = frozenset(["by", "in", "at", "on", "from", "to", "for", "with", "of", "as", "into"])
_JOINS = frozenset({"and", "or", "but"})
_REASONS = frozenset({"because", "since"})


def find_addition(claim: SentenceFacts, aligned: Sequence[Aligned], absent: frozenset[str]) -> Contradiction | None:
    """A coordinated part, or a reason, of which the sentences that the claim rests on have nothing.

    `absent` are the content words of the claim that no context holds.
    """
    if not absent:
        return None
    held = frozenset().union(*(one.facts.keys for one in aligned))
    for start, end in list(_parts(claim))[1:]:
        content = [word for word in claim.keys[start:end] if word in claim.content]
        missing = [word for word in content if word in absent]
        if (
            missing
            and not held.intersection(content)
            and (
                len(missing) > 1
                or claim.keys[start] in _REASONS
                or (claim.keys[start] in _JOINS and len(claim.content) <= _SHORT)
            )
        ):
            return Contradiction(kind="addition", response=" ".join(claim.words[start:end]), context="")
    return None


def _parts(claim: SentenceFacts) -> Iterator[tuple[int, int]]:
    starts = [at for at in range(len(claim.keys)) if not at or claim.parts[at] != claim.parts[at - 1]]
    return zip(starts, [*starts[1:], len(claim.keys)], strict=True)


def find_replaced(claim: SentenceFacts, aligned: Sequence[Aligned], absent: frozenset[str]) -> Contradiction | None:
    """Words of which no context has any, after a word that is followed by others in the context."""
    if not absent:
        return None
    for pivot, at in ((word, at) for at, word in enumerate(claim.keys) if word in claim.content and word not in absent):
        preposition, start, end = _following(claim, at)
        said = claim.keys[start:end]
        if not preposition or not said or not absent.issuperset(said):
            continue
        for one in aligned:
            for place in (place for place, word in enumerate(one.facts.keys) if word == pivot):
                other, first, last = _following(one.facts, place)
                held = one.facts.keys[first:last]
                if held and other == preposition and not set(held) & set(claim.keys):
                    return Contradiction(
                        kind="replacement",
                        response=" ".join(claim.words[at:end]),
                        context=" ".join(one.facts.words[place:last]),
                    )
    return None


def _following(facts: SentenceFacts, at: int) -> tuple[str, int, int]:
    """The preposition after a word, and where the content words after it begin and end."""
    preposition, start = "", at + 1
    while start < min(len(facts.keys), at + _REACH) and facts.keys[start] not in facts.content:
        if facts.parts[start] != facts.parts[at]:
            return "", start, start
        if facts.keys[start] in _PREPOSITIONS:
            preposition = facts.keys[start]
        start += 1
    end = start
    while end < len(facts.keys) and facts.keys[end] in facts.content and facts.parts[end] == facts.parts[at]:
        end += 1
    return preposition, start, end
