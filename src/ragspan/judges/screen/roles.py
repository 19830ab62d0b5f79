"""Who does what to whom, and what comes first or is more: two words of a claim that have changed places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ragspan.judges.screen.claims import Claim, Finding
from ragspan.judges.screen.english import english
from ragspan.judges.screen.facts import Facts, is_past, tells
from ragspan.text.vocabulary import word_set

_ALIKE, _MOST_ALIKE = 0.6, 0.8
"""The share of a claim's words that a sentence needs in which others do the same; and in which the order is another."""
_LONGEST, _QUOTED, _REACH = 10, 4, 8
"""Content words of a claim that is looked at; words that are quoted on a side, and that a side may have."""
_PIVOTS = {"before": ("before", "after", "then"), "after": ("after", "before", "then"), "than": ("than",)}
_BEING = word_set("is are was were be been being get gets got")
_DETERMINERS = word_set("the a an its his her their this these all some to")
_ENDING = word_set(
    "in at on from with as into onto under over between against through about during than that which who"
)
"""Words that end what a verb is done to."""


class _Frame(NamedTuple):
    """A verb with who does it and to whom."""

    verb: str
    agent: frozenset[str]
    patient: frozenset[str]
    denied: bool
    named: bool
    """Who does it is a name."""
    said: str
    """The words from who does it to the verb, or from the verb to who does it."""


def find_exchange(claim: Claim) -> Finding | None:
    """Who does something, where the context says that another does it; or what is first or more, the other way round."""
    if not claim.is_compared or len(claim.facts.content) > _LONGEST:
        return None
    if any(one in claim.facts.keys for one in _PIVOTS):
        return _other_order(claim)
    for ours in _frames(claim.facts):
        held = [(near, theirs) for near in claim.near for theirs in _frames(near.facts, ours.verb)]
        if any(not ours.agent.isdisjoint(theirs.agent) for _, theirs in held):
            continue
        for near, theirs in held:
            exchanged = ours.agent & theirs.patient and ours.patient & theirs.agent
            replaced = (
                abs(len(ours.agent) - len(theirs.agent)) <= 1
                and len(ours.patient & theirs.patient) >= max(1, _ALIKE * len(ours.patient))
                and ours.named == theirs.named
            )
            if near.share >= _ALIKE and ours.denied == theirs.denied and (exchanged or replaced):
                return Finding(kind="role", response=ours.said, context=theirs.said, place=near.place)
    return None


def _frames(facts: Facts, verb: str = "") -> Iterator[_Frame]:
    """The verbs of a sentence that somebody does; of one word only, if it is given."""
    known, keys = english(), facts.keys
    for at, word in enumerate(keys):
        if (verb and word != verb) or not at or word not in facts.content:
            continue
        # A verb by its form, and by what is before and after it.
        written, before, after = facts.words[at], keys[at - 1], "".join(keys[at + 1 : at + 2])
        follows = before in known.auxiliaries or before in facts.content
        follows = follows and (after in _DETERMINERS or (written.endswith("s") and after in facts.content))
        if written[0].isupper() or before in _DETERMINERS - {"to"} or after in known.auxiliaries:
            continue
        if not (is_past(written) or follows):
            continue
        clause = facts.clause_at(at)
        agent, patient = facts.content.intersection(keys[clause.start : at]), _until_ending(facts, at + 1, clause.end)
        being = (word.lower().removesuffix("n't") for word in facts.words[max(0, at - 3) : at])
        if is_past(written.lower()) and (after == "by" or not _BEING.isdisjoint(being)):
            by = next((place for place in range(at + 1, clause.end) if keys[place] == "by"), clause.end)
            agent, patient = _until_ending(facts, by + 1, clause.end), agent
        if agent:
            capitals = [(place, facts.words[place][0].isupper()) for place, key in enumerate(keys) if key in agent]
            named = any(place and capital for place, capital in capitals) or all(capital for _, capital in capitals)
            places = [place for place in range(clause.start, clause.end) if keys[place] in agent] or [at]
            said = " ".join(facts.words[min(at, places[0]) : max(at, places[-1]) + 1])
            yield _Frame(word, agent, patient, any(place < at for place in clause.negations), named, said)


def _until_ending(facts: Facts, start: int, end: int) -> frozenset[str]:
    """The content words up to the next preposition or comma."""
    end = next((at for at in range(start, end) if facts.keys[at] in _ENDING or at in facts.pauses), end)
    return facts.content.intersection(facts.keys[start:end])


def _other_order(claim: Claim) -> Finding | None:
    """Two words on either side of "before", "after", "then" or "than" that stand the other way round."""
    ours, opposites = claim.facts, english().opposites
    for pivot, others in _PIVOTS.items():
        for near in claim.near if pivot in ours.keys else ():
            theirs = near.facts
            other = next((word for word in others if word in theirs.keys), "")
            if not other or near.share < (_ALIKE if pivot == "than" else _MOST_ALIKE):
                continue
            said, held = _sides(ours, pivot), _sides(theirs, other)
            crossed = said[0] & held[1] - said[1] and said[1] & held[0] - held[1]
            kept = said[0] & held[0] and said[1] & held[1]
            turned = pivot == "than" and any(  # one compares by the opposite of the other's word: larger, smaller
                opposite in theirs.keys and opposite not in ours.keys and word not in theirs.keys
                for word in ours.keys
                for opposite in opposites.get(word, ())
            )
            if (crossed and not turned) or (turned and kept and not crossed):
                quotes = [
                    " ".join(facts.words[max(0, at - _QUOTED) : at + _QUOTED + 1])
                    for facts, at in ((ours, ours.keys.index(pivot)), (theirs, theirs.keys.index(other)))
                ]
                return Finding(kind="order", response=quotes[0], context=quotes[1], place=near.place)
    return None


def _sides(facts: Facts, pivot: str) -> tuple[frozenset[str], frozenset[str]]:
    """What comes first, or is more, and the other."""
    at = facts.keys.index(pivot)
    clause = facts.clause_at(at)
    # "It is longer but safer than": the subject may be in the clause before.
    start, end = 0 if pivot == "than" else clause.start, clause.end
    before, after = facts.keys[max(start, at - _REACH) : at], facts.keys[at + 1 : min(end, at + 1 + _REACH)]
    if not at:  # "Before meals, take two."
        end = min((place for place in facts.pauses if place), default=len(facts.keys))
        before, after = facts.keys[end : end + _REACH], facts.keys[1:end]
    sides = frozenset(filter(tells, before)), frozenset(filter(tells, after))
    return sides[::-1] if pivot == "after" else sides
