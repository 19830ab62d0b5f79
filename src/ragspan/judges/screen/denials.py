"""One denies what the other says, or says its opposite."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ragspan.judges.screen.claims import Claim, Finding
from ragspan.judges.screen.contexts import Near
from ragspan.judges.screen.english import english
from ragspan.judges.screen.facts import Clause, Facts

_INHERITED = 0.75
"""What a word counts if only an earlier clause of the sentence holds it."""
_ENOUGH, _NEARLY_ALL, _SURER = 0.6, 0.85, 0.15
"""The share of a clause's words that the other side has to hold, in a response of a sentence or two and in a longer one; and how much
more where only a negation differs."""
_AS_GOOD = 0.95
"""A clause that agrees, and scores this share of the best one, is support."""
_QUOTED = 6


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


def find_opposition(claim: Claim) -> Finding | None:
    """The first clause of the claim whose best counterpart says the opposite, where none nearly as good agrees."""
    if not claim.is_compared:
        return None
    enough, fewest = (_ENOUGH, 1) if claim.response.lone else (_NEARLY_ALL, 4)
    facts = claim.facts
    for clause in facts.clauses:
        matches = [match for near in claim.near for match in _matches(claim, clause, near)]
        if len(clause.own) < fewest or not matches:
            continue
        best = max(matches, key=lambda match: (match.score, not match.agrees))
        if best.agrees or best.share < (enough if best.opposed else enough + _SURER):
            continue
        words = {word for word, _ in best.opposed}
        # Another sentence that fits nearly as well has the claim's own words.
        if words and any(
            words & near.facts.content and near is not best.near and near.share >= _INHERITED * best.near.share
            for near in claim.near
        ):
            continue
        if not any(
            match.agrees
            and (match.score >= _AS_GOOD * best.score or 1 < len(clause.own) == len(clause.own & match.clause.own))
            for match in matches
        ):
            return _contradiction(facts, clause, best)
    return None


def _matches(claim: Claim, clause: Clause, near: Near) -> Iterator[_Match]:
    facts, question, opposites = near.facts, claim.response.told, english().opposites
    if "than" in claim.facts.keys and "than" in facts.keys:
        return  # exchanged sides of comparisons
    words = clause.own if len(clause.own) > 1 else clause.own | clause.inherited
    for other in facts.clauses:
        if not (other.own or other.negations):
            continue
        opposed = []
        shared = 0.0
        for word in words:
            if word in other.own:
                shared += 1
            elif word in clause.own and (said := opposites.get(word, frozenset()) & other.own - claim.facts.content):
                opposed.append((word, min(said)))
            elif word in other.inherited:
                shared += _INHERITED
        rest = len(words) - len(opposed)
        asked = question - clause.own
        held = len(asked & other.own) + _INHERITED * len(asked & other.inherited)
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
        )


def _contradiction(facts: Facts, clause: Clause, match: _Match) -> Finding:
    sides = ((facts, clause, match.clause.own), (match.near.facts, match.clause, clause.own))
    quotes = []
    for number, (side, part, others) in enumerate(sides):
        if match.opposed:
            end = side.keys.index(match.opposed[0][number], part.start, part.end) + 1
            start = end - 1 - (end - 2 in part.negations)
        else:  # the words around the negation, or where there is none, from the first shared word on
            shared = (at for at in range(part.start, part.end) if side.keys[at] in others)
            start = max(part.start, part.negations[0] - 2) if part.negations else next(shared, part.start)
            end = min(part.end, start + _QUOTED)
        quotes.append(" ".join(side.words[start:end]))
    kind = "opposite" if match.opposed else "negation"
    return Finding(kind=kind, response=quotes[0], context=quotes[1], place=match.near.place)
