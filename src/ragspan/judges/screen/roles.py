"""Who does what to whom, and what comes first or is more: two words of a claim that have changed places."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class _Frame:
    """A verb with who does it and to whom."""

    at: int
    agent: frozenset[str]
    patient: frozenset[str]
    denied: bool


def find_exchange(claim: Claim) -> Finding | None:
    """Who does something, where the context says that another does it; or what is first or more, the other way round."""
    if not claim.is_compared or len(claim.facts.content) > _LONGEST:
        return None
    return _other_order(claim) if any(one in claim.facts.keys for one in _PIVOTS) else _other_role(claim)


def _other_role(claim: Claim) -> Finding | None:
    for ours in _frames(claim.facts):
        held = [(near, theirs) for near in claim.near for theirs in _frames(near.facts, claim.facts.keys[ours.at])]
        if any(not ours.agent.isdisjoint(theirs.agent) for _, theirs in held):
            continue
        for near, theirs in held:
            if near.share < _ALIKE or ours.denied != theirs.denied:
                continue
            exchanged = ours.agent & theirs.patient and ours.patient & theirs.agent
            replaced = (
                abs(len(ours.agent) - len(theirs.agent)) <= 1
                and len(ours.patient & theirs.patient) >= max(1, _ALIKE * len(ours.patient))
                and ours.agent.isdisjoint(english().wide)
                and _is_named(claim.facts, ours.agent) == _is_named(near.facts, theirs.agent)
            )
            if exchanged or replaced:
                said, held_words = _said(claim.facts, ours), _said(near.facts, theirs)
                return Finding(kind="role", response=said, context=held_words, place=near.place)
    return None


def _frames(facts: Facts, verb: str = "") -> Iterator[_Frame]:
    """The verbs of a sentence that somebody does; of one word only, if it is given."""
    for at, word in enumerate(facts.keys):
        if (verb and word != verb) or not (word in facts.content or word in english().light) or not _is_verb(facts, at):
            continue
        clause = facts.clause_at(at)
        before = facts.content.intersection(facts.keys[clause.start : at])
        agent, patient = before, _until_ending(facts, at + 1, clause.end)
        if _is_passive(facts, at):
            by = next((place for place in range(at + 1, clause.end) if facts.keys[place] == "by"), clause.end)
            agent, patient = _until_ending(facts, by + 1, clause.end), before
        if agent:
            yield _Frame(at, agent, patient, denied=any(place < at for place in clause.negations))


def _until_ending(facts: Facts, start: int, end: int) -> frozenset[str]:
    """The content words up to the next preposition or comma."""
    end = next((at for at in range(start, end) if facts.keys[at] in _ENDING or at in facts.pauses), end)
    return facts.content.intersection(facts.keys[start:end])


def _is_verb(facts: Facts, at: int) -> bool:
    """Whether a word looks like a verb: by its form, and by what is before and after it."""
    written, before = facts.words[at], facts.keys[at - 1] if at else ""
    after = "".join(facts.keys[at + 1 : at + 2])
    if not at or written[0].isupper() or before in _DETERMINERS - {"to"} or after in english().auxiliaries:
        return False
    if is_past(written) or facts.keys[at] in english().light:
        return True
    follows = before in english().auxiliaries or before in facts.content
    return follows and (after in _DETERMINERS or (written.endswith("s") and after in facts.content))


def _is_passive(facts: Facts, at: int) -> bool:
    if not is_past(facts.words[at].lower()):
        return False
    being = (word.lower().removesuffix("n't") for word in facts.words[max(0, at - 3) : at])
    return facts.keys[at + 1 : at + 2] == ("by",) or not _BEING.isdisjoint(being)


def _is_named(facts: Facts, keys: frozenset[str]) -> bool:
    capitals = [(at, word[0].isupper()) for at, word in enumerate(facts.words) if facts.keys[at] in keys]
    return any(at and capital for at, capital in capitals) or all(capital for _, capital in capitals)


def _said(facts: Facts, frame: _Frame) -> str:
    """The words from who does it to the verb, or from the verb to who does it."""
    clause = facts.clause_at(frame.at)
    places = [at for at in range(clause.start, clause.end) if facts.keys[at] in frame.agent] or [frame.at]
    return " ".join(facts.words[min(frame.at, places[0]) : max(frame.at, places[-1]) + 1])


def _other_order(claim: Claim) -> Finding | None:
    """Two words on either side of "before", "after", "then" or "than" that stand the other way round."""
    for pivot, others in _PIVOTS.items():
        for near in claim.near if pivot in claim.facts.keys else ():
            other = next((word for word in others if word in near.facts.keys), "")
            if not other or near.share < (_ALIKE if pivot == "than" else _MOST_ALIKE):
                continue
            said, held = _sides(claim.facts, pivot), _sides(near.facts, other)
            crossed = said[0] & held[1] - said[1] and said[1] & held[0] - held[1]
            kept = said[0] & held[0] and said[1] & held[1]
            turned = pivot == "than" and _compares_otherwise(claim.facts, near.facts)
            if (crossed and not turned) or (turned and kept and not crossed):
                ours, theirs = _beside(claim.facts, pivot), _beside(near.facts, other)
                return Finding(kind="order", response=ours, context=theirs, place=near.place)
    return None


def _beside(facts: Facts, word: str) -> str:
    at = facts.keys.index(word)
    return " ".join(facts.words[max(0, at - _QUOTED) : at + _QUOTED + 1])


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


def _compares_otherwise(claim: Facts, facts: Facts) -> bool:
    """True where one compares by the opposite of the other's word: larger, smaller."""
    return any(
        other in facts.keys and other not in claim.keys and word not in facts.keys
        for word in claim.keys
        for other in english().opposites.get(word, ())
    )
