"""One denies what the other says, or says its opposite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ragspan.judges.screen.contexts import Place
from ragspan.judges.screen.english import english
from ragspan.judges.screen.evidence import Aligned
from ragspan.judges.screen.facts import Clause, SentenceFacts, compared, may_turn
from ragspan.judges.screen.finding import Finding

_INHERITED = 0.75
"""What a word counts if only an earlier clause of the sentence holds it."""
_SURER = 0.15
"""Where only a negation differs, the share has to be so much higher."""
_AS_GOOD = 0.95
"""A clause that agrees, and scores this share of the best one, is support."""
_HEADS = 2
_QUOTED = 6
_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Match:
    clause: Clause
    facts: SentenceFacts
    place: Place
    share: float
    score: float
    opposed: tuple[tuple[str, str], ...]
    """A word of the claim with its opposite in the context."""
    agrees: bool
    clear: bool
    """Each side has the words that the other denies."""


def find_opposition(
    claim: SentenceFacts,
    aligned: Sequence[Aligned],
    question: frozenset[str],
    *,
    enough: float,
    fewest: int,
) -> Finding | None:
    """The first clause of the claim whose best counterpart says the opposite, where none nearly as good agrees."""
    turning = _turning(claim, aligned)
    for clause in claim.clauses if turning else ():
        if len(clause.own) < fewest:
            continue
        likely = (match for one in turning for match in _matches(claim, clause, one, question))
        if not any(match.clear and not match.agrees and match.share >= enough for match in likely):
            continue  # before the others are taken apart
        matches = [match for one in aligned for match in _matches(claim, clause, one, question)]
        best = max(matches, key=lambda match: (match.score, not match.agrees), default=None)
        if best is None or best.agrees or not best.clear or best.share < (enough if best.opposed else enough + _SURER):
            continue
        if best.opposed and (_is_elsewhere(best, aligned) or _is_converse(claim, clause, best)):
            continue
        if any(
            match.agrees
            and (match.score >= _AS_GOOD * best.score or 1 < len(clause.own) == len(clause.own & match.clause.own))
            for match in matches
        ):
            continue
        return _contradiction(claim, clause, best)
    return None


def _turning(claim: SentenceFacts, aligned: Sequence[Aligned]) -> Sequence[Aligned]:
    """The sentences that may say the opposite of the claim; a quick test, before the others are taken apart."""
    if may_turn(claim.keys):
        return aligned
    opposites = frozenset().union(*(english().opposites.get(word, ()) for word in claim.content))
    return [
        one
        for one in aligned
        if may_turn(one.keys)
        or not opposites.isdisjoint(map(compared, one.keys))
        or not english().phrases.keys().isdisjoint(pairwise(one.keys))
    ]


def _is_elsewhere(match: _Match, aligned: Sequence[Aligned]) -> bool:
    """True where another sentence that fits nearly as well has the claim's own words."""
    words = {word for word, _ in match.opposed}
    best = max(one.share for one in aligned if one.facts is match.facts)
    return any(
        words & one.facts.content and one.facts is not match.facts and one.share >= 0.75 * best for one in aligned
    )


def _is_converse(claim: SentenceFacts, clause: Clause, match: _Match) -> bool:
    """True for "A is east of B" where the context says "B is west of A"."""
    word, opposite = match.opposed[0]
    before, after = _sides(claim, clause, word)
    others, following = _sides(match.facts, match.clause, opposite)
    return not before.isdisjoint(following) and not after.isdisjoint(others)


def _sides(facts: SentenceFacts, clause: Clause, word: str) -> tuple[frozenset[str], frozenset[str]]:
    """The content of a clause before a word that "of" follows, and after it."""
    at = facts.keys.index(word, clause.start, clause.end)
    if facts.keys[at + 1 : at + 2] != ("of",):
        return _NONE, _NONE
    return clause.own.intersection(facts.keys[clause.start : at]), clause.own.intersection(
        facts.keys[at + 1 : clause.end]
    )


def _matches(claim: SentenceFacts, clause: Clause, one: Aligned, question: frozenset[str]) -> Iterator[_Match]:
    facts = one.facts
    if "than" in claim.keys and "than" in facts.keys:
        return  # `roles.find_swap` looks at comparisons
    carried = one.carried
    words = clause.own if len(clause.own) > 1 else clause.own | clause.inherited
    facing = {word: english().opposites.get(word, _NONE) for word in clause.own}
    for other in facts.clauses:
        inherited = other.inherited | carried
        if other.supposed != clause.supposed or not (other.own or other.negations):
            continue
        opposed = []
        light = len(clause.light & other.light)
        shared: float = light
        for word in words:
            if word in other.own:
                shared += 1
            elif said := facing.get(word, _NONE) & other.own - claim.content:
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
            facts=facts,
            place=one.place,
            share=shared / rest,
            score=shared + len(opposed) + 0.3 * held,
            opposed=tuple(opposed),
            agrees=turns % 2 == 0,
            clear=_is_clear(claim, clause, facts, other, carried.union(*opposed)),
        )


def _is_clear(
    claim: SentenceFacts, clause: Clause, facts: SentenceFacts, other: Clause, opposed: frozenset[str]
) -> bool:
    ours = clause.own | clause.light | clause.inherited | opposed
    theirs = other.own | other.light | other.inherited | opposed
    return all(not theirs.isdisjoint(_heads(claim, clause, at)) for at in clause.negations) and all(
        not ours.isdisjoint(_heads(facts, other, at)) for at in other.negations
    )


def _heads(facts: SentenceFacts, clause: Clause, negation: int) -> list[str]:
    """The words that a negation denies, the next two; where none follow, the first of the clause."""
    following = [word for word in facts.keys[negation + 1 : clause.end] if word in clause.own | clause.light]
    return following[:_HEADS] or [word for word in facts.keys[clause.start : clause.end] if word in clause.own][:1]


def _contradiction(claim: SentenceFacts, clause: Clause, match: _Match) -> Finding:
    if match.opposed:
        word, opposite = match.opposed[0]
        return Finding(
            kind="opposite",
            response=_written(claim, clause, word),
            context=_written(match.facts, match.clause, opposite),
            place=match.place,
        )
    return Finding(
        kind="negation",
        response=_around(claim, clause, match.clause.own),
        context=_around(match.facts, match.clause, clause.own),
        place=match.place,
    )


def _written(facts: SentenceFacts, clause: Clause, word: str) -> str:
    at = facts.keys.index(word, clause.start, clause.end)
    start = at - 1 if at - 1 in clause.negations else at
    return " ".join(facts.words[start : at + 1])


def _around(facts: SentenceFacts, clause: Clause, others: frozenset[str]) -> str:
    """The words around the negation, or where there is none, from the first shared word on."""
    if clause.negations:
        start = max(clause.start, clause.negations[0] - 2)
    else:
        start = next((at for at in range(clause.start, clause.end) if facts.keys[at] in others), clause.start)
    return " ".join(facts.words[start : min(clause.end, start + _QUOTED)])
