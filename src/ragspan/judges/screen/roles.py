"""Who does what to whom, and what comes first or is more: two words of a claim that have changed places."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ragspan.judges.screen.english import english
from ragspan.judges.screen.evidence import Aligned
from ragspan.judges.screen.facts import SentenceFacts, is_past, tells
from ragspan.judges.screen.finding import Finding

_ALIKE, _MOST_ALIKE = 0.6, 0.8
"""The share of a claim's words that a sentence needs in which others do the same; and in which the order is another."""
_LONGEST = 10
"""Content words of a claim that is looked at."""
_QUOTED, _REACH = 4, 8
_PIVOTS = {"before": ("before", "after", "then"), "after": ("after", "before", "then"), "than": ("than",)}
_BEING = frozenset({"is", "are", "was", "were", "be", "been", "being", "get", "gets", "got"})
_DETERMINERS = frozenset({"the", "a", "an", "its", "his", "her", "their", "this", "these", "all", "some", "to"})
_ENDING = frozenset(
    [
        "in",
        "at",
        "on",
        "from",
        "with",
        "as",
        "into",
        "onto",
        "under",
        "over",
        "between",
        "against",
        "through",
        "about",
        "during",
        "than",
        "that",
        "which",
        "who",
    ]
)
"""Words that end what a verb is done to."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """A verb with who does it and to whom."""

    at: int
    agent: frozenset[str]
    patient: frozenset[str]
    denied: bool


def find_exchange(claim: SentenceFacts, aligned: Sequence[Aligned]) -> Finding | None:
    """Who does something, where the context says that another does it; or what is first or more, the other way round."""
    if len(claim.content) > _LONGEST:
        return None
    return _other_role(claim, aligned) or _other_order(claim, aligned)


def _other_role(claim: SentenceFacts, aligned: Sequence[Aligned]) -> Finding | None:
    for ours in _frames(claim):
        held = [(one, theirs) for one in aligned for theirs in _frames(one.facts, claim.keys[ours.at])]
        if any(not ours.agent.isdisjoint(theirs.agent) for _, theirs in held):
            continue
        for one, theirs in held:
            if (
                one.share < _ALIKE
                or ours.denied != theirs.denied
                or not theirs.agent
                or any(map(_is_pivot, claim.keys))
            ):
                continue
            exchanged = ours.agent & theirs.patient and ours.patient & theirs.agent
            replaced = (
                bool(ours.patient & theirs.patient)
                and abs(len(ours.agent) - len(theirs.agent)) <= 1
                and len(ours.patient & theirs.patient) >= _ALIKE * len(ours.patient)
                and ours.agent.isdisjoint(english().wide)
                and _is_named(claim, ours.agent) == _is_named(one.facts, theirs.agent)
            )
            if exchanged or replaced:
                return Finding(
                    kind="role", response=_said(claim, ours), context=_said(one.facts, theirs), place=one.place
                )
    return None


def _frames(facts: SentenceFacts, verb: str = "") -> Iterator[_Frame]:
    """The verbs of a sentence that somebody does; of one word only, if it is given."""
    for at, word in enumerate(facts.keys):
        if (verb and word != verb) or not (word in facts.content or word in english().light) or not _is_verb(facts, at):
            continue
        clause = facts.clause_at(at)
        before = frozenset(facts.keys[place] for place in range(clause.start, at) if facts.keys[place] in facts.content)
        after = frozenset(_until(facts, at + 1, clause.end))
        if _is_passive(facts, at):
            by = next((place for place in range(at + 1, clause.end) if facts.keys[place] == "by"), clause.end)
            agent, patient = frozenset(_until(facts, by + 1, clause.end)), before
        else:
            agent, patient = before, after
        if agent:
            yield _Frame(at, agent, patient, denied=any(place < at for place in clause.negations))


def _until(facts: SentenceFacts, start: int, end: int) -> Iterator[str]:
    """The content words up to the next preposition or comma."""
    for place in range(start, end):
        if facts.keys[place] in _ENDING or place in facts.pauses:
            return
        if facts.keys[place] in facts.content:
            yield facts.keys[place]


def _is_verb(facts: SentenceFacts, at: int) -> bool:
    """Whether a word looks like a verb: by its form, and by what is before and after it."""
    written, before = facts.words[at], facts.keys[at - 1] if at else ""
    after = "".join(facts.keys[at + 1 : at + 2])
    if not at or written[0].isupper() or before in _DETERMINERS - {"to"} or after in english().auxiliaries:
        return False
    if is_past(written) or facts.keys[at] in english().light:
        return True
    follows = before in english().auxiliaries or before in facts.content
    return follows and (after in _DETERMINERS or (written.endswith("s") and after in facts.content))


def _is_passive(facts: SentenceFacts, at: int) -> bool:
    if not is_past(facts.words[at].lower()):
        return False
    if facts.keys[at + 1 : at + 2] == ("by",):
        return True
    return not _BEING.isdisjoint(word.lower().removesuffix("n't") for word in facts.words[max(0, at - 3) : at])


def _is_named(facts: SentenceFacts, keys: frozenset[str]) -> bool:
    return any(word[0].isupper() and at for at, word in enumerate(facts.words) if facts.keys[at] in keys) or all(
        word[0].isupper() for at, word in enumerate(facts.words) if facts.keys[at] in keys
    )


def _said(facts: SentenceFacts, frame: _Frame) -> str:
    """The words from who does it to the verb, or from the verb to who does it."""
    clause = facts.clause_at(frame.at)
    places = [at for at in range(clause.start, clause.end) if facts.keys[at] in frame.agent] or [frame.at]
    start, end = min(frame.at, places[0]), max(frame.at, places[-1]) + 1
    return " ".join(facts.words[start:end])


def _is_pivot(key: str) -> bool:
    return key in _PIVOTS


def _other_order(claim: SentenceFacts, aligned: Sequence[Aligned]) -> Finding | None:
    """Two words on either side of "before", "after", "then" or "than" that stand the other way round."""
    for pivot, others in _PIVOTS.items() if any(map(_is_pivot, claim.keys)) else ():
        if pivot not in claim.keys:
            continue
        for one in aligned:
            other = next((word for word in others if word in one.facts.keys), "")
            if not other or one.share < (_ALIKE if pivot == "than" else _MOST_ALIKE):
                continue
            said, held = _sides(claim, pivot), _sides(one.facts, other)
            crossed = said[0] & held[1] - said[1] and said[1] & held[0] - held[1]
            kept = said[0] & held[0] and said[1] & held[1]
            turned = pivot == "than" and _compares_otherwise(claim, one.facts)
            if (crossed and not turned) or (turned and kept and not crossed):
                quotes = (
                    " ".join(facts.words[max(0, at - _QUOTED) : at + _QUOTED + 1])
                    for facts, at in ((claim, claim.keys.index(pivot)), (one.facts, one.facts.keys.index(other)))
                )
                return Finding(kind="order", response=next(quotes), context=next(quotes), place=one.place)
    return None


def _sides(facts: SentenceFacts, pivot: str) -> tuple[frozenset[str], frozenset[str]]:
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


def _compares_otherwise(claim: SentenceFacts, facts: SentenceFacts) -> bool:
    """True where one compares by the opposite of the other's word: larger, smaller."""
    return any(
        other in facts.keys and other not in claim.keys and word not in facts.keys
        for word in claim.keys
        for other in english().opposites.get(word, ())
    )
