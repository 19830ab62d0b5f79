"""Numbers, dates, names and words that stand where the context has others, and parts that the claim adds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ragspan.judges.overlap.contradictions import Contradiction
from ragspan.judges.overlap.contradictions.alignment import Aligned, Aligner
from ragspan.judges.overlap.contradictions.facts import Name, SentenceFacts, tells
from ragspan.judges.overlap.contradictions.quantities import DATES, Quantity, has_quantities, same
from ragspan.judges.overlap.english import english
from ragspan.text.keys import is_number

_ENOUGH = 0.5
_NEAR_BEST = 0.7


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """A part of a context sentence, with the words that it shares with the claim and the question."""

    own: frozenset[str]
    reached: frozenset[str]
    """With those of the parts before it in its sentence."""
    has_words: bool
    """It has other content words than those counted, whether the claim shares them or not."""
    quantities: tuple[Quantity, ...]
    names: tuple[Name, ...]
    facts: SentenceFacts
    near: bool
    """Its sentence is one of those that the claim rests on."""


def find_other_quantity(
    claim: SentenceFacts, aligned: Sequence[Aligned], question: frozenset[str], aligner: Aligner, *, enough: float
) -> Contradiction | None:
    """The first quantity of the claim in whose place the context has another; or two that have changed places."""
    if not claim.quantities:
        return None
    counting = [one for one in aligned if has_quantities(one.keys)]
    if not counting:
        return None
    parts = _parts(claim, counting, question, enough, best=aligned[0].share)
    rivals: list[tuple[Quantity, Quantity]] = []
    for quantity in claim.quantities:
        around = _around(claim, quantity.at, question) - {quantity.raw}
        rival = _left(quantity, claim, aligned) or _rival(quantity, around, parts, is_known=quantity.raw in aligner)
        if rival is not None:
            rivals.append((quantity, rival))
    for quantity, rival in rivals:
        saying = [other for other in claim.quantities if _says(other, rival)]
        if not saying or any(other in saying and _says(quantity, instead) for other, instead in rivals):
            kind = "date" if quantity.kind in DATES else "unit" if quantity.raw == rival.raw else "number"
            if quantity.text == rival.text and rival.per != quantity.per:
                return Contradiction(kind="unit", response=_with_per(quantity), context=_with_per(rival))
            return Contradiction(kind=kind, response=quantity.text, context=rival.text)
    return None


def _with_per(quantity: Quantity) -> str:
    return f"{quantity.text} per {quantity.rate}"


def _around(claim: SentenceFacts, at: int, question: frozenset[str]) -> frozenset[str]:
    """Content words and dates of the part of the claim at this place, and the question's words."""
    own = {word for word, part in zip(claim.keys, claim.parts, strict=True) if part == claim.parts[at] and tells(word)}
    own |= {one.raw for one in claim.quantities if one.kind in DATES and claim.parts[one.at] == claim.parts[at]}
    return frozenset(own) if len(own) > 1 else question | own


def _parts(
    claim: SentenceFacts, aligned: Sequence[Aligned], question: frozenset[str], enough: float, *, best: float
) -> list[_Part]:
    wanted = claim.content | question | {one.raw for one in claim.quantities if one.kind in DATES}
    return [
        part
        for one in aligned
        for part in _parts_of(one.facts, wanted, near=one.share >= enough and one.share >= _NEAR_BEST * best)
    ]


def _parts_of(facts: SentenceFacts, wanted: frozenset[str], *, near: bool) -> Iterator[_Part]:
    reached: frozenset[str] = frozenset()
    counted = {word for one in facts.quantities if not one.kind for word in one.nouns}
    earlier: tuple[Name, ...] = ()
    for number in dict.fromkeys(facts.parts):
        words = {word for word, part in zip(facts.keys, facts.parts, strict=True) if part == number}
        own = wanted & words
        reached |= own
        names = tuple(name for name in facts.names if facts.parts[name.start] == number)
        if not names and earlier:
            names = earlier[-1:] if "who" in words else earlier[:1]
            names = tuple(replace(name, before="") for name in names)
        else:
            earlier = names
        yield _Part(
            own=own,
            reached=reached,
            has_words=not (words & facts.content).issubset(counted),
            quantities=tuple(one for one in facts.quantities if facts.parts[one.at] == number),
            names=names,
            facts=facts,
            near=near,
        )


def _rival(quantity: Quantity, around: frozenset[str], parts: Sequence[_Part], *, is_known: bool) -> Quantity | None:
    holding = [part for part in parts if any(_says(other, quantity) for other in part.quantities)]
    best: tuple[int, Quantity] | None = None
    for part in parts:
        if not part.near or not all(held.has_words and _is_better(part, held, around) for held in holding):
            continue
        rivals = [other for other in part.quantities if _rivals(quantity, other)]
        otherwise = any(other.raw == quantity.raw for other in rivals)  # the same number of another unit
        if not rivals or (is_known and not holding and not otherwise and not around <= part.reached):
            continue
        own = len(part.own & around)
        if best is None or own > best[0]:
            best = own, min(rivals, key=lambda other: _distance(quantity, other))
    return best[1] if best else None


def _distance(quantity: Quantity, other: Quantity) -> tuple[bool, bool, bool]:
    return other.raw != quantity.raw, other.kind != quantity.kind, not other.nouns & quantity.nouns


def _is_better(part: _Part, held: _Part, around: frozenset[str]) -> bool:
    """True where the part has a word that the one with the claim's value lacks, and lacks none that it has."""
    own, other = part.own & around, held.own & around
    return bool(own - other) and other <= part.reached


def _left(quantity: Quantity, claim: SentenceFacts, aligned: Sequence[Aligned]) -> Quantity | None:
    """Where the claim takes for the new value what the context moves away from: "raised from 3.5 to 4 percent"."""
    if not quantity.at or claim.keys[quantity.at - 1] == "from":
        return None
    facts = aligned[0].facts
    if aligned[0].share < _ENOUGH or english().changing.isdisjoint(facts.keys):
        return None
    for old, new in pairwise(facts.quantities):
        moves = old.at and facts.keys[old.at - 1] == "from" and facts.keys[old.end : new.at][:1] in (("to",), ("into",))
        if moves and same(old, quantity) and not any(same(new, other) for other in claim.quantities):
            return new
    return None


def _says(other: Quantity, quantity: Quantity) -> bool:
    """True where the context gives the claim's number for the same thing, or does not say for what."""
    if not same(quantity, other):
        return False
    return bool(quantity.kind) or not (quantity.nouns and other.nouns) or bool(quantity.nouns & other.nouns)


def _rivals(quantity: Quantity, other: Quantity) -> bool:
    """True where one could stand in the place of the other: the same is measured or counted."""
    if same(quantity, other):
        return False
    if quantity.kind in DATES or other.kind in DATES:
        return quantity.kind == other.kind
    if quantity.kind and other.kind:
        return quantity.kind == other.kind or quantity.raw == other.raw
    return not quantity.kind and not other.kind and bool(quantity.nouns & other.nouns)


def find_other_name(
    claim: SentenceFacts, aligned: Sequence[Aligned], question: frozenset[str], aligner: Aligner, *, enough: float
) -> Contradiction | None:
    """The first name of the claim in whose place the context has another."""
    if not claim.names:
        return None
    others = claim.content.difference(*(name.keys for name in claim.names))
    aligned = aligner.best(others) if others else aligned
    if not aligned:
        return None
    parts = _parts(claim, aligned, question, enough, best=aligned[0].share)
    for name in claim.names:
        around = _around(claim, name.start, question) - name.keys
        rival = (
            _moved(name, claim, aligned)
            or _rival_name(name, claim, around, parts)
            or _of_other_part(name, claim, around, parts, aligner)
        )
        if rival is not None:
            return Contradiction(kind="name", response=name.text, context=rival.text)
    return None


def _rival_name(name: Name, claim: SentenceFacts, around: frozenset[str], parts: Sequence[_Part]) -> Name | None:
    if not around:
        return None
    holding = [  # those with the name, or without one of their own in a sentence that has it
        part
        for part in parts
        if not name.keys.isdisjoint(part.facts.keys)
        and (not part.names or any(name.keys & other.keys for other in part.names))
    ]
    for part in parts:
        if not part.near or not all(_is_better(part, held, around) for held in holding):
            continue
        if not holding and not around <= part.reached:
            continue
        for rival in part.names:
            if (
                (rival.start or rival.end > 1)
                and rival.keys.isdisjoint(claim.keys)
                and _same_place(name, claim, rival, part)
            ):
                return rival
    return None


def _of_other_part(
    name: Name, claim: SentenceFacts, around: frozenset[str], parts: Sequence[_Part], aligner: Aligner
) -> Name | None:
    """A name of which the claim's has all words but one, which no context has: "the Black Sea" for "the North Sea"."""
    for part in parts:
        for rival in part.names if part.near and around and around <= part.reached else ():
            new, old = name.keys - rival.keys, rival.keys - name.keys
            is_one = len(new) == len(old) == 1 < len(name.keys) == len(rival.keys)
            if is_one and old.isdisjoint(claim.keys) and not any(key in aligner for key in new):
                return rival
    return None


def _same_place(name: Name, claim: SentenceFacts, rival: Name, part: _Part) -> bool:
    """Both stand after the same preposition, or both without one on the same side of a shared word."""
    befores = {name.before, rival.before}
    if len(befores) > 1 and "by" in befores:
        return befores == {"", "by"}
    if befores - {"", "from"}:
        return name.before == rival.before
    ours, theirs = claim.keys, part.facts.keys
    return any(
        (ours.index(word) > name.start) == (theirs.index(word) > rival.start)
        for word in part.own
        if word in ours and word in theirs
    )


def _moved(name: Name, claim: SentenceFacts, aligned: Sequence[Aligned]) -> Name | None:
    """Where the claim has something at the place that it left: "moved from Boston to Denver"."""
    if name.before == "from" or not name.before:
        return None
    left = [other.keys for other in claim.names if other.before == "from"]
    facts = aligned[0].facts
    changes = aligned[0].share >= _ENOUGH and not english().changing.isdisjoint(facts.keys)
    for old, new in pairwise(facts.names):
        moves = old.before == "from" and new.before in {"to", "into"} and old.keys == name.keys
        if moves and (new.keys in left or (changes and new.keys.isdisjoint(claim.keys))):  # or the other way round
            return new
    return None


def find_other_subject(
    claim: SentenceFacts, aligned: Sequence[Aligned], absent: frozenset[str]
) -> Contradiction | None:
    """A first word that no context has, before "is" or the like, where the context's first word is another: "Oslo is ..."."""
    subject, verb = (*claim.keys, "", "")[:2]
    if subject not in absent or subject not in claim.content or verb not in _BEING:
        return None
    facts = aligned[0].facts
    other, same_verb = (*facts.keys, "", "")[:2]
    if same_verb == verb and other in facts.content and claim.content - {subject} <= frozenset(facts.keys) - {other}:
        return Contradiction(kind="name", response=claim.words[0], context=facts.words[0])
    return None


_BEING = frozenset({"is", "was", "has"})
_SHORT = 8
"""Content words of a claim that is so short that one invented word is much of it."""
_JOINS = frozenset({"and", "or", "but"})
_REASONS = frozenset({"because", "since"})


def find_addition(claim: SentenceFacts, aligned: Sequence[Aligned], absent: frozenset[str]) -> Contradiction | None:
    """A coordinated part, or a reason, of which the sentences that the claim rests on have nothing.

    `absent` are the content words of the claim that no context holds.
    """
    if not absent:
        return None
    held = frozenset().union(*(one.facts.keys for one in aligned))
    if (name := _added_name(claim, held, absent)) is not None:
        return Contradiction(kind="addition", response=name.text, context="")
    for start, end in list(_part_places(claim))[1:]:
        content = [word for word in claim.keys[start:end] if word in claim.content or is_number(word)]
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


def _added_name(claim: SentenceFacts, held: frozenset[str], absent: frozenset[str]) -> Name | None:
    """A name that no context has, in a list with one that the context has: "PNG and GIF"."""
    for pair in pairwise(claim.names):
        if claim.keys[pair[0].end : pair[1].start] not in (("and",), ("or",)):
            continue
        for name, other in (pair, pair[::-1]):
            if name.start and name.keys <= absent and other.keys <= held:
                return name
    return None


def _part_places(claim: SentenceFacts) -> Iterator[tuple[int, int]]:
    starts = [at for at in range(len(claim.keys)) if not at or claim.parts[at] != claim.parts[at - 1]]
    return zip(starts, [*starts[1:], len(claim.keys)], strict=True)
