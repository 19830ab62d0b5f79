"""Who does what to whom, what comes first, and what is more: words that have changed places.

`find_other_argument` compares the words around a verb, `find_swap` the words on both sides of "before", "after" and "than".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.contradictions.alignment import Aligned, Aligner
from ragspan.judges.overlap.contradictions.facts import SentenceFacts, is_past, tells
from ragspan.judges.overlap.english import english
from ragspan.text.keys import is_number
from ragspan.text.vocabulary import word_set

_ENOUGH = 0.45
_REST = 0.75
"""The share of the claim's other words, by weight, that a sentence needs which has another word in a place."""
_AGENT, _PATIENT = "agent", "patient"
_BEING = frozenset({"is", "are", "was", "were", "be", "been", "being", "get", "gets", "got"})
_RELATIVE = frozenset({"who", "which", "that"})
_DETERMINERS = frozenset({"the", "a", "an", "its", "his", "her", "their", "this", "these", "all", "some", "of"})
_PREPOSITIONS = word_set(
    "by in at on from to for with as into onto under over between against through about during within without until"
)
_BREAKS = word_set("than that which who whom whose so then after before while not no never")
_OPENERS = (_DETERMINERS | _PREPOSITIONS | {"when", "if", "that", "whether", "no", "any", "each", "every"}) - {
    "by",
    "of",
}
_PRONOUNS = frozenset({"it", "they", "he", "she", "you", "we", "i"})
_TYING = frozenset({"and", "or", "of"})
_QUOTED = 5
_LONGEST = 10
"""Content words of a claim that is looked at."""
_MOST, _OF_ONE_VERB = 16, 4
"""Verbs of a claim that are looked at, and places of a verb in a context sentence: a text may repeat one word."""


@dataclass(frozen=True, slots=True)
class _Frame:
    """A verb with the places of the content words around it, by what they are to the verb."""

    at: int
    denied: bool
    slots: dict[str, list[int]] = field(default_factory=dict)


def find_other_argument(claim: SentenceFacts, aligned: Sequence[Aligned], aligner: Aligner) -> Contradiction | None:
    """What does or suffers something in the claim where the context has another in its place."""
    if len(claim.content) > _LONGEST:
        return None
    own = _frames(claim, frozenset().union(*(one.facts.keys for one in aligned)))
    for ours in islice(own, _MOST):
        if not _is_verb(claim, ours.at):
            continue
        verb = claim.keys[ours.at]
        held = [
            (one, theirs)
            for one in aligned
            for theirs in islice(_frames(one.facts, frozenset({verb})), _OF_ONE_VERB)
            if _is_verb(one.facts, theirs.at)
        ]
        for one, theirs in held:
            if (
                one.share < _ENOUGH
                or len(one.facts.content) > 2 * _LONGEST
                or ours.denied != theirs.denied
                or any(_pivots(claim, one.facts))  # `find_swap` looks at these
            ):
                continue
            slot = _other_slot(claim, ours, one.facts, theirs, one.carried, aligner)
            if slot and not any(_has(claim, ours, slot, other.facts, frame) for other, frame in held):
                return Contradiction(
                    kind="role",
                    response=_quoted(claim, ours, slot),
                    context=_quoted(one.facts, theirs, slot),
                )
    return None


def _other_slot(
    claim: SentenceFacts, ours: _Frame, facts: SentenceFacts, theirs: _Frame, carried: frozenset[str], aligner: Aligner
) -> str:
    """The place in which the two have different words, where all else is alike; empty where there is none."""
    both = [slot for slot in ours.slots if slot in theirs.slots]
    said = {slot: _keys(claim, ours, slot) for slot in ours.slots}
    held = {slot: _keys(facts, theirs, slot) for slot in theirs.slots}
    other = [slot for slot in both if _differ(said[slot], held[slot])]
    if not other:
        return ""
    slot, *more = other
    if more:
        swapped = said[slot] & held[more[0]] and said[more[0]] & held[slot]
        return slot if swapped and len(more) == 1 else ""
    rest = claim.content - said[slot]
    if not _holds(rest, facts.content | carried, aligner):
        return ""
    if said[slot].isdisjoint(held[slot]) and abs(len(said[slot]) - len(held[slot])) > 1:
        return ""  # "the main difference" is not a counterpart of "ligaments"
    new = said[slot] - held[slot]
    if new != said[slot] and _is_named(claim, ours.slots[slot]):
        return ""
    if len(new) > 1 and not new.isdisjoint(facts.keys) and not new <= frozenset(facts.keys):
        return ""
    changed = [at for at in ours.slots[slot] if claim.keys[at] not in held[slot]]
    return slot if _could_be_each_other(claim, changed, facts, theirs.slots[slot]) else ""


def _differ(said: frozenset[str], held: frozenset[str]) -> bool:
    """True where the words have nothing in common, or one is replaced: "the support team" for "the billing team"."""
    return said.isdisjoint(held) or all(map(_is_one_of_two, (said, held), (held, said)))


def _is_one_of_two(words: frozenset[str], others: frozenset[str]) -> bool:
    return len(words - others) == 1 == len(words & others)


def _holds(rest: frozenset[str], held: frozenset[str], aligner: Aligner) -> bool:
    whole = sum(map(aligner.weight, rest))
    return sum(aligner.weight(word) for word in rest & held) >= _REST * whole


def _could_be_each_other(
    claim: SentenceFacts, ours: Sequence[int], facts: SentenceFacts, theirs: Sequence[int]
) -> bool:
    """Both are names, or neither is: "the company" may be the one that the context calls by its name."""
    return _is_named(claim, ours) == _is_named(facts, theirs) and not any(
        claim.keys[at] in english().wide for at in ours
    )


def _is_named(facts: SentenceFacts, places: Sequence[int]) -> bool:
    return any(facts.words[at][0].isupper() and at for at in places) or (
        all(facts.words[at][0].isupper() for at in places)
    )


def _has(claim: SentenceFacts, ours: _Frame, slot: str, facts: SentenceFacts, theirs: _Frame) -> bool:
    """True where the verb has the claim's words in this place."""
    return slot in theirs.slots and not _differ(_keys(claim, ours, slot), _keys(facts, theirs, slot))


def _keys(facts: SentenceFacts, frame: _Frame, slot: str) -> frozenset[str]:
    return frozenset(facts.keys[at] for at in frame.slots.get(slot, ()))


def _quoted(facts: SentenceFacts, frame: _Frame, slot: str) -> str:
    """From the argument to the verb, or from the verb to the argument."""
    places = frame.slots[slot]
    start, end = min(frame.at, places[0]), max(frame.at, places[-1]) + 1
    return " ".join(facts.words[start:end] if end - start <= 2 * _QUOTED else facts.words[places[0] : places[-1] + 1])


def _frames(facts: SentenceFacts, verbs: frozenset[str]) -> Iterator[_Frame]:
    for at, word in enumerate(facts.keys):
        if word in verbs and (word in facts.content or word in english().light):
            frame = _frame(facts, at)
            if frame.slots:
                yield frame


def _frame(facts: SentenceFacts, at: int) -> _Frame:
    clause = facts.clause_at(at)
    frame = _Frame(at, denied=any(place < at for place in clause.negations))
    before, after = _subject(facts, clause.start, at), _following(facts, at, clause.end)
    passive = _is_passive(facts, at)
    for number, (preposition, places) in enumerate(after):
        name = preposition or _PATIENT
        if passive and preposition == "by":
            name = _AGENT
        elif not preposition and (passive or number):
            continue
        frame.slots.setdefault(name, places)
    if before:
        frame.slots[_PATIENT if passive else _AGENT] = before
    return frame


def _is_verb(facts: SentenceFacts, at: int) -> bool:
    """Whether a word looks like a verb: by its form, and by what is before and after it."""
    written, word = facts.words[at], facts.keys[at]
    before, after = facts.keys[at - 1] if at else "", facts.keys[at + 1] if at + 1 < len(facts.keys) else ""
    if (at and written[0].isupper()) or after in english().auxiliaries or before in _DETERMINERS:
        return False
    if word in english().light:
        return True
    past = is_past(written)
    if before in english().auxiliaries or before == "to":
        return past or facts.words[at - 1].lower() not in _BEING
    follows = after in (_OPENERS if at and written.endswith("s") else _DETERMINERS - {"of"})
    if at and written.endswith("s") and after in facts.content and not facts.words[at + 1].endswith("ed"):
        follows = True
    return past or (follows and (not at or before in facts.content))


def _is_passive(facts: SentenceFacts, at: int) -> bool:
    if not is_past(facts.words[at].lower()):
        return False
    if facts.keys[at + 1 : at + 2] == ("by",):
        return True
    for place in range(at - 1, max(-1, at - 4), -1):
        if facts.words[place].lower().removesuffix("n't") in _BEING:
            return True
        if facts.keys[place] in facts.content:
            return False
    return False


def _subject(facts: SentenceFacts, start: int, at: int) -> list[int]:
    """The words before a verb that it speaks of: the first ones without a preposition."""
    joins = english().joins
    if start and facts.keys[start] not in english().turns and not _has_verb(facts, 0, start):
        start = 0  # "gift cards and downloads cannot be returned"
    begin = start
    for place in range(start + 1, at):
        if (facts.keys[place] in joins or place in facts.pauses) and _has_verb(facts, begin, place):
            if all(facts.keys[one] not in facts.content for one in range(place, at)):
                break  # "and sentenced": who believed has sentenced, too
            begin = place
    found = next((places for preposition, places in _chunks(facts, begin, at) if not preposition), [])
    if not found and start and facts.keys[start] in _RELATIVE:
        found = next((places for _, places in reversed(list(_chunks(facts, 0, start)))), [])
    if found and not _PRONOUNS.isdisjoint(facts.keys[found[-1] + 1 : at]):
        return []  # "Once it is open, it should be used"
    return list(takewhile(lambda place: not _is_verb(facts, place), found))


def _has_verb(facts: SentenceFacts, start: int, end: int) -> bool:
    return any(facts.keys[at] in english().auxiliaries or _is_verb(facts, at) for at in range(start, end))


def _following(facts: SentenceFacts, at: int, end: int) -> Iterator[tuple[str, list[int]]]:
    for place in range(at + 1, end):
        word = facts.keys[place]
        if (
            word in english().auxiliaries
            or word in _BREAKS
            or (word in english().joins and _has_verb(facts, place + 1, min(end, place + 5)))
        ):
            end = place
            break
    return _chunks(facts, at + 1, end)


def _chunks(facts: SentenceFacts, start: int, end: int) -> Iterator[tuple[str, list[int]]]:
    """The content words between two places by what is written in a row, each with the preposition before it."""
    preposition = ""
    places: list[int] = []
    for at in range(start, end):
        word = facts.keys[at]
        if word in facts.content:
            if facts.words[at].endswith("ly"):
                continue
            if places and at in facts.pauses:
                yield preposition, places
                preposition, places = "", []
            places.append(at)
        elif places and (word in english().joins or word == "of" or facts.keys[at - 1] in _TYING):
            continue  # "salt and pepper", "most of the participants"
        else:
            if places:
                yield preposition, places
                preposition, places = "", []
            if word in _PREPOSITIONS:
                preposition = word
            elif is_number(word):
                preposition = ""
    if places:
        yield preposition, places


_ALIKE = 0.8
"""The share that a sentence needs where the two do not compare by "than"."""
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


def find_swap(claim: SentenceFacts, aligned: Sequence[Aligned]) -> Contradiction | None:
    """Two words on either side of "before", "after", "then" or "than" that stand the other way round."""
    for one in aligned:
        for pivot, other in _pivots(claim, one.facts):
            if pivot != "than" and one.share < _ALIKE:
                continue
            said, held = _sides(claim, pivot), _sides(one.facts, other)
            turned = pivot == "than" and _is_turned(claim, one.facts)
            swapped = said.are_swapped(held)
            if (turned and not swapped and said.are_alike(held)) or (swapped and not turned):
                return Contradiction(kind="order", response=_around(claim, pivot), context=_around(one.facts, other))
    return None


def _pivots(claim: SentenceFacts, facts: SentenceFacts) -> Iterator[tuple[str, str]]:
    """The words of the claim that say what comes first or is more, each with the one in the context."""
    for pivot, others in _OTHERS.items():
        if pivot in claim.keys and (other := next((word for word in others if word in facts.keys), "")):
            yield pivot, other


def _sides(facts: SentenceFacts, pivot: str) -> _Sides:
    at = facts.keys.index(pivot)
    clause = facts.clause_at(at)
    # "It is longer but safer than": the subject may be in the clause before.
    start, end = 0 if pivot == "than" else clause.start, clause.end
    before, after = facts.keys[max(start, at - _REACH) : at], facts.keys[at + 1 : min(end, at + 1 + _REACH)]
    if not at:  # "Before meals, take two."
        end = min((place for place in facts.pauses if place), default=len(facts.keys))
        before, after = facts.keys[end : end + _REACH], facts.keys[1:end]
    sides = frozenset(filter(tells, before)), frozenset(filter(tells, after))
    return _Sides(*(sides[::-1] if pivot == "after" else sides))


def _is_turned(claim: SentenceFacts, facts: SentenceFacts) -> bool:
    """True where one compares by the opposite of the other's word: larger, smaller."""
    return any(
        other in facts.keys and other not in claim.keys and word not in facts.keys
        for word in claim.keys
        for other in english().opposites.get(word, ())
    )


def _around(facts: SentenceFacts, pivot: str) -> str:
    at = facts.keys.index(pivot)
    return " ".join(facts.words[max(0, at - 4) : at + 5])
