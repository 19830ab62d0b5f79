"""Numbers of a claim: another one in their place, another place, derived from others, computed wrongly."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice, permutations

from ragspan.judges.screen.contexts import Context, Place, numbers_of
from ragspan.judges.screen.evidence import Aligned, Evidence
from ragspan.judges.screen.facts import SentenceFacts, tells
from ragspan.judges.screen.finding import Finding
from ragspan.judges.screen.quantities import DATES, Quantity, has_quantities, same
from ragspan.text.keys import is_content, is_number
from ragspan.text.sentences import Sentence
from ragspan.text.vocabulary import word_set

_NEAR_BEST = 0.7
_DIGITS_OF_COUNT = 3
"""A number of fewer digits may be what another one was computed with: "11 months"."""
_MOST_OPERANDS, _MOST_DERIVED = 16, 4
_TOLERANCE = 0.006
"""How far a number may be from a product or a share, of itself: answers round."""
_SMALL, _ROUNDING = 10, 1e-6
_WHOLE = 100.0
"""Per cent."""
_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,9})?")
_TIME = re.compile(r"(\d{1,2}):(\d\d)")
_TWO_DIGITS = re.compile(r"(?:\D*\d){2}")
_EQUATION = re.compile(
    r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)\s?%?\s?([+*/x\u00d7\u00f7\u00b7\u2212-])\s?(\d[\d,]*(?:\.\d+)?)\s?(%?)\s?=\s?[$€£]?\s?(\d[\d,]*(?:\.\d+)?)(?![\d%])"
)


SUMMING = word_set(
    "total sum altogeth combin together differ difference more less remain left both save twice average each up down rise fell increase decreas"
)
"""Words of a claim that gives a sum, a difference or a product."""


def is_exact(number: str) -> bool:
    """Whether a number, as it is written, is more than a count of what an answer lists: it has two digits or more."""
    return _TWO_DIGITS.match(number) is not None


# Another number in its place


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """A part of a context sentence between commas, with the words that it shares with the claim and the question."""

    own: frozenset[str]
    reached: frozenset[str]
    """With those of the parts before it in its sentence."""
    quantities: tuple[Quantity, ...]
    near: bool
    """Its sentence is one of those that the claim rests on."""
    place: Place


def find_other_quantity(
    claim: SentenceFacts, aligned: Sequence[Aligned], question: frozenset[str], evidence: Evidence, enough: float
) -> Finding | None:
    """The first quantity of the claim in whose place the context has another; or two that have changed places."""
    if not claim.quantities:
        return None
    parts = [
        part
        for one in aligned
        if has_quantities(one.keys)
        for part in _parts(claim, one, question, enough, best=aligned[0].share)
    ]
    rivals: list[tuple[Quantity, Quantity, Place]] = []
    for quantity in claim.quantities:
        found = _rival(quantity, _around(claim, quantity, question), parts, evidence)
        if found is not None:
            rivals.append((quantity, *found))
    for quantity, rival, place in rivals:
        saying = [other for other in claim.quantities if _says(other, rival)]
        if not saying or any(other in saying and _says(quantity, instead) for other, instead, _ in rivals):
            kind = "date" if quantity.kind in DATES else "unit" if quantity.raw == rival.raw else "number"
            return Finding(kind=kind, response=quantity.text, context=rival.text, place=place)
    return None


def _around(claim: SentenceFacts, quantity: Quantity, question: frozenset[str]) -> frozenset[str]:
    """Content words and dates of the part of the claim that has the quantity, and the question's words."""
    number = claim.parts[quantity.at]
    own = {word for word, part in zip(claim.keys, claim.parts, strict=True) if part == number and tells(word)}
    own |= {one.raw for one in claim.quantities if one.kind in DATES and claim.parts[one.at] == number}
    return (frozenset(own) if len(own) > 1 else question | own) - {quantity.raw}


def _parts(
    claim: SentenceFacts, one: Aligned, question: frozenset[str], enough: float, *, best: float
) -> Iterator[_Part]:
    wanted = claim.content | question | {quantity.raw for quantity in claim.quantities if quantity.kind in DATES}
    facts, reached = one.facts, frozenset[str]()
    for number in dict.fromkeys(facts.parts):
        own = wanted & {word for word, part in zip(facts.keys, facts.parts, strict=True) if part == number}
        reached |= own
        yield _Part(
            own=own,
            reached=reached,
            quantities=tuple(quantity for quantity in facts.quantities if facts.parts[quantity.at] == number),
            near=one.share >= enough and one.share >= _NEAR_BEST * best,
            place=one.place,
        )


def _rival(
    quantity: Quantity, around: frozenset[str], parts: Sequence[_Part], evidence: Evidence
) -> tuple[Quantity, Place] | None:
    holding = [part for part in parts if any(_says(other, quantity) for other in part.quantities)]
    best: tuple[tuple[int, bool], Quantity, Place] | None = None
    for part in parts:
        if not part.near or not all(_is_better(part, held, around) for held in holding):
            continue
        rivals = [other for other in part.quantities if _are_rivals(quantity, other)]
        is_same = any(other.raw == quantity.raw for other in rivals)  # the same number of another unit
        is_known = not is_same and not holding and evidence.sentences_with(quantity.raw) != 0
        if not rivals or (is_known and not around <= part.reached):
            continue
        other = min(rivals, key=lambda other: (other.raw != quantity.raw, other.kind != quantity.kind))
        fits = len(part.own & around), bool(other.nouns & quantity.nouns)
        if best is None or fits > best[0]:
            best = fits, other, part.place
    return best and best[1:]


def _is_better(part: _Part, held: _Part, around: frozenset[str]) -> bool:
    """True where the part has a word that the one with the claim's value lacks, and lacks none that it has."""
    own, other = part.own & around, held.own & around
    return bool(own - other) and other <= part.reached


def _says(other: Quantity, quantity: Quantity) -> bool:
    """True where the context gives the claim's number for the same thing, or does not say for what."""
    if not same(quantity, other):
        return False
    return bool(quantity.kind) or not (quantity.nouns and other.nouns) or bool(quantity.nouns & other.nouns)


def _are_rivals(quantity: Quantity, other: Quantity) -> bool:
    """True where one could stand in the place of the other: the same is measured or counted."""
    if same(quantity, other):
        return False
    if quantity.kind in DATES or other.kind in DATES:
        return quantity.kind == other.kind
    if quantity.kind and other.kind:
        return quantity.kind == other.kind or quantity.raw == other.raw
    return not quantity.kind and not other.kind and bool(quantity.nouns & other.nouns)


def find_number_elsewhere(claim: Sentence, evidence: Evidence, question: Collection[str]) -> Finding | None:
    """A number that stands in contexts, but not near most of the claim's words, where another one of its kind does."""
    numbers = [at for at, key in enumerate(claim.keys) if is_number(key) and key in evidence and key not in question]
    for place in evidence.closest(frozenset(filter(is_content, claim.keys))) if numbers else ():
        context = evidence.contexts[place.context]
        if context.structured:
            continue
        span = range(max(0, place.sentence - 1), min(len(context), place.sentence + 2))
        near = [*chain.from_iterable(map(context.keys_of, span))]
        rivals = [at for at, key in enumerate(near) if is_number(key) and key not in claim.keys]
        for at in numbers:
            for other in rivals if claim.keys[at] not in near and not _stands_near(claim, at, evidence) else ():
                if side := _common_side(claim.keys, at, near, other):
                    words = claim.words[at : at + 2] if side > 0 else claim.words[at - 1 : at + 1]
                    return Finding(kind="number", response=" ".join(words), place=place)
    return None


def _stands_near(claim: Sentence, at: int, evidence: Evidence) -> bool:
    """Whether a sentence with a number of a claim has two more of the claim's words than what the number counts."""
    counted = {claim.keys[at], *claim.keys[at + 1 : at + 2]}
    words = [evidence.sentences_with(key) for key in set(claim.keys) - counted if is_content(key)]
    sentences = numbers_of(evidence.sentences_with(claim.keys[at]))[:_MOST_OPERANDS]
    return any(sum(bits >> number & 1 for bits in words) > 1 for number in sentences)


def _common_side(ours: Sequence[str], at: int, theirs: Sequence[str], other: int) -> int:
    """1 if the content word after both numbers is the same, -1 if the one before is, else 0."""
    for step in (1, -1):
        place, beside = at + step, other + step
        both_there = 0 <= place < len(ours) and 0 <= beside < len(theirs)
        if both_there and ours[place] == theirs[beside] and is_content(ours[place]):
            return step
    return 0


# Numbers that follow from others


def find_wrong_equation(text: str) -> Finding | None:
    """An equation that a claim writes out, and whose result is another: "800 * 6 = 4,900"."""
    for match in _EQUATION.finditer(text) if "=" in text else ():
        one, other, result = (float(match[at].replace(",", "")) for at in (1, 3, 5))
        values = {
            "+": one + other,
            "-": one - other,
            "\u2212": one - other,
            "/": one / other if other else result,
            "\u00f7": one / other if other else result,
        }
        value = values.get(match[2], one * other) / (_WHOLE if match[4] or "%" in match[0] else 1)
        if abs(value - result) > max(_TOLERANCE * abs(value), 0.5 if "." not in match[5] else 0.0051):
            return Finding(kind="equation", response=match[0], context=f"{value:,.10g}")
    return None


def has_equation(text: str) -> bool:
    """Whether a claim writes out how its numbers follow from others."""
    return "=" in text and _EQUATION.search(text) is not None


def is_derived(
    absent: Collection[str], claim: Sequence[str], beside: Iterable[str], near: Sequence[Sequence[str]]
) -> bool:
    """Whether all of these numbers may follow from two others.

    Sums, differences, products, shares and the time between two times are looked for; at least one of the two numbers stands
    in the claim or the question, or both stand in the sentences that the claim rests on. Many at once never follow: too many
    others would make each.

    Args:
        absent: the numbers that no context holds.
        claim: the keys of the claim.
        beside: those of the question and of the claim before.
        near: those of each sentence that the claim rests on, and of those beside them.
    """
    if not 0 < len(absent) <= _MOST_DERIVED:
        return False
    own = [*claim, *beside]
    held = [*chain.from_iterable(near)]
    if frozenset(absent) <= _times_between([*own, *held]):
        return True
    if not all(_NUMBER.fullmatch(key) for key in absent):
        return False
    mine, others = _values(own), _values([*own, *held])
    is_share = "%" in claim
    follow = [key for key in absent if _follows(float(key), mine, others, is_share=is_share)]
    return bool(follow) and all(key in follow or len(key) < _DIGITS_OF_COUNT for key in absent)


def _values(keys: Iterable[str]) -> list[float]:
    numbers = (float(key) for key in dict.fromkeys(keys) if _NUMBER.fullmatch(key))
    return [*islice((number for number in numbers if number), _MOST_OPERANDS)]


def _follows(value: float, mine: Sequence[float], others: Sequence[float], *, is_share: bool) -> bool:
    exact, about = set[float](), list[float]()
    is_large = value >= _SMALL
    for one, other in permutations(others, 2):
        if value in {one, other}:
            continue
        if is_large or one in mine:
            exact |= {one + other, one - other}
        if is_large or one in mine or other in mine:
            about += [one * other, one / other]
        about += [one * other / _WHOLE, one * (_WHOLE - other) / _WHOLE, one * (_WHOLE + other) / _WHOLE]
        if is_share:
            about += [_WHOLE * one / other, _WHOLE * abs(one - other) / other]
            exact.add(_WHOLE - one - other)
    is_near = any(abs(result - value) <= _TOLERANCE * value for result in about)
    return (
        is_near or any(abs(result - value) < _ROUNDING for result in exact) or (is_share and _WHOLE - value in others)
    )


def _times_between(keys: Iterable[str]) -> frozenset[str]:
    """Hours and minutes between two times: "6" and "18" of 08:12 and 14:30."""
    times = [int(match[1]) * 60 + int(match[2]) for match in map(_TIME.fullmatch, dict.fromkeys(keys)) if match]
    spans = {abs(one - other) for one, other in combinations(times[:_MOST_OPERANDS], 2)} - {0}
    return frozenset(text for span in spans for text in (str(span), str(span // 60), str(span % 60), f"{span / 60:g}"))


def sentences_near(places: Sequence[Place], contexts: Sequence[Context]) -> list[list[str]]:
    """The keys of some sentences, then of those beside them."""
    beside = (Place(context, sentence + step) for step in (0, -1, 1) for context, sentence in places)
    found = dict.fromkeys(beside)
    return [contexts[at].keys_of(one) for at, one in found if 0 <= one < len(contexts[at])]
