"""One denies what the other says, or says its opposite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from ragspan.judges.screen.claims import Claim, Finding
from ragspan.judges.screen.contexts import Near
from ragspan.judges.screen.english import english
from ragspan.judges.screen.facts import Clause, Facts
from ragspan.text.keys import key

_INHERITED = 0.75
"""What a word counts if only an earlier clause of the sentence holds it."""
_ENOUGH, _NEARLY_ALL, _SURER = 0.6, 0.85, 0.15
"""The share of a clause's words that the other side has to hold, in a response of a sentence or two and in a longer one; and how much
more where only a negation differs."""
_AS_GOOD = 0.95
"""A clause that agrees, and scores this share of the best one, is support."""
_HEADS, _QUOTED = 2, 6
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Match:
    """A clause of a context beside a clause of the claim."""

    clause: Clause
    near: Near
    share: float
    score: float
    opposed: tuple[tuple[str, str], ...]
    """A word of the claim with its opposite in the context."""
    agrees: bool
    clear: bool
    """Each side has the words that the other denies."""


def find_opposition(claim: Claim) -> Finding | None:
    """The first clause of the claim whose best counterpart says the opposite, where none nearly as good agrees."""
    turning = _turning(claim) if claim.is_compared else ()
    enough, fewest = (_ENOUGH, 1) if claim.response.lone else (_NEARLY_ALL, 4)
    facts = claim.facts if turning else None
    for clause in facts.clauses if facts else ():
        if len(clause.own) < fewest:
            continue
        likely = (match for near in turning for match in _matches(claim, clause, near))
        if not any(match.clear and not match.agrees and match.share >= enough for match in likely):
            continue  # before the others are taken apart
        matches = [match for near in claim.near for match in _matches(claim, clause, near)]
        best = max(matches, key=lambda match: (match.score, not match.agrees))
        if best.agrees or not best.clear or best.share < (enough if best.opposed else enough + _SURER):
            continue
        if best.opposed and (_is_elsewhere(best, claim.near) or _is_converse(claim.facts, clause, best)):
            continue
        if not any(match.agrees and _is_as_good(match, best, clause) for match in matches):
            return _contradiction(claim.facts, clause, best)
    return None


def _is_as_good(match: _Match, best: _Match, clause: Clause) -> bool:
    holds_all = 1 < len(clause.own) == len(clause.own & match.clause.own)
    return holds_all or match.score >= _AS_GOOD * best.score


def _turning(claim: Claim) -> Sequence[Near]:
    """The sentences that may say the opposite of the claim; a quick test, before the others are taken apart."""
    turning, phrases = _turning_keys(), english().phrases.keys()
    if not turning.isdisjoint(claim.facts.keys):
        return claim.near
    opposites = frozenset().union(turning, *(english().opposites.get(word, ()) for word in claim.facts.content))
    return [
        near
        for near in claim.near
        if not opposites.isdisjoint(near.facts.keys) or not phrases.isdisjoint(pairwise(near.facts.keys))
    ]


@cache
def _turning_keys() -> frozenset[str]:
    known = english()
    refusing = map(key, ("failed", "refused", "declined", "ceased"))
    return known.negations | known.exceptions | known.ending | {"free", "unless", *refusing}


def _is_elsewhere(match: _Match, near: Sequence[Near]) -> bool:
    """True where another sentence that fits nearly as well has the claim's own words."""
    words = {word for word, _ in match.opposed}
    return any(
        words & one.facts.content and one is not match.near and one.share >= _INHERITED * match.near.share
        for one in near
    )


def _is_converse(facts: Facts, clause: Clause, match: _Match) -> bool:
    """True for "A is east of B" where the context says "B is west of A"."""
    word, opposite = match.opposed[0]
    before, after = _sides(facts, clause, word)
    others, following = _sides(match.near.facts, match.clause, opposite)
    return not before.isdisjoint(following) and not after.isdisjoint(others)


def _sides(facts: Facts, clause: Clause, word: str) -> tuple[frozenset[str], frozenset[str]]:
    """The content of a clause before a word that "of" follows, and after it."""
    at = facts.keys.index(word, clause.start, clause.end)
    if facts.keys[at + 1 : at + 2] != ("of",):
        return _NONE, _NONE
    return clause.own.intersection(facts.keys[clause.start : at]), clause.own.intersection(
        facts.keys[at + 1 : clause.end]
    )


def _matches(claim: Claim, clause: Clause, near: Near) -> Iterator[_Match]:
    facts, question = near.facts, claim.response.told
    if "than" in claim.facts.keys and "than" in facts.keys:
        return  # exchanged sides of comparisons are found in `roles`
    words = clause.own if len(clause.own) > 1 else clause.own | clause.inherited
    for other in facts.clauses:
        inherited = other.inherited | near.carried
        if other.supposed != clause.supposed or not (other.own or other.negations):
            continue
        opposed = []
        light = len(clause.light & other.light)
        shared: float = light
        for word in words:
            if word in other.own:
                shared += 1
            elif word in clause.own and (
                said := english().opposites.get(word, _NONE) & other.own - claim.facts.content
            ):
                opposed.append((word, min(said)))
            elif word in inherited:
                shared += _INHERITED
        rest = len(words) + light - len(opposed)
        asked = question - clause.own
        held = len(asked & other.own) + _INHERITED * len(asked & inherited)
        if rest <= 1:
            shared, rest = shared + held, max(1, rest + (len(asked) + 1) // 2)
        ended = 0 if opposed or not question else len((clause.own ^ other.own) & english().ending)
        turns = bool(clause.negations) + bool(other.negations) + len(opposed) + ended
        yield _Match(
            clause=other,
            near=near,
            share=shared / rest,
            score=shared + len(opposed) + 0.3 * held,
            opposed=tuple(opposed),
            agrees=turns % 2 == 0,
            clear=_is_clear(claim.facts, clause, facts, other, near.carried.union(*opposed)),
        )


def _is_clear(ours: Facts, clause: Clause, theirs: Facts, other: Clause, opposed: frozenset[str]) -> bool:
    """Whether each side has one of the words that a negation of the other denies."""
    sides = ((ours, clause, theirs, other), (theirs, other, ours, clause))
    for denying, own, _, facing in sides:
        there = facing.own | facing.light | facing.inherited | opposed
        if any(there.isdisjoint(_heads(denying, own, at)) for at in own.negations):
            return False
    return True


def _heads(facts: Facts, clause: Clause, negation: int) -> list[str]:
    """The words that a negation denies, the next two; where none follow, the first of the clause."""
    following = [word for word in facts.keys[negation + 1 : clause.end] if word in clause.own | clause.light]
    return following[:_HEADS] or [word for word in facts.keys[clause.start : clause.end] if word in clause.own][:1]


def _contradiction(facts: Facts, clause: Clause, match: _Match) -> Finding:
    theirs, place = match.near.facts, match.near.place
    if match.opposed:
        word, opposite = match.opposed[0]
        ours = _written(facts, clause, word)
        return Finding(kind="opposite", response=ours, context=_written(theirs, match.clause, opposite), place=place)
    return Finding(
        kind="negation",
        response=_denied(facts, clause, match.clause.own),
        context=_denied(theirs, match.clause, clause.own),
        place=place,
    )


def _written(facts: Facts, clause: Clause, word: str) -> str:
    at = facts.keys.index(word, clause.start, clause.end)
    return " ".join(facts.words[at - (at - 1 in clause.negations) : at + 1])


def _denied(facts: Facts, clause: Clause, others: frozenset[str]) -> str:
    """The words around the negation, or where there is none, from the first shared word on."""
    shared = (at for at in range(clause.start, clause.end) if facts.keys[at] in others)
    start = max(clause.start, clause.negations[0] - 2) if clause.negations else next(shared, clause.start)
    return " ".join(facts.words[start : min(clause.end, start + _QUOTED)])
