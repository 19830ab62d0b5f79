"""Numbers of a claim: another one in their place, one that no context holds, one that follows from others."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import islice, pairwise, permutations

from ragspan.judges.screen.claims import Claim, Finding
from ragspan.judges.screen.facts import DATES, Facts, Quantity, english, same, tells
from ragspan.text.keys import is_number
from ragspan.turns import with_turns

_DIGITS_OF_COUNT = 3  # a number of fewer digits may be what another one was computed with: "11 months"
_MOST_OPERANDS, _MOST_DERIVED, _SENTENCES_NEAR = 16, 4, 3
_TOLERANCE = 0.006  # how far a number may be from a product or a share, of itself: answers round
_WEEK = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
_PERIODS = {"year": 12.0, "month": 12.0, "week": 7.0, "daili": 24.0, "hour": 60.0}
"""Of which a price or an amount is computed for another."""
_SMALL, _ROUNDING, _WHOLE, _CLOSE, _ALIKE = 10, 1e-6, 100.0, 3, 0.6
_FACTORS = {"twice": 2.0, "radius": 2.0, "diamet": 2.0, "0.5": 0.5}
_SHARES = {**_FACTORS, "third": 3.0, "quarter": 4.0, "%": _WHOLE}  # factors of what is said in per cent
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_TWO_DIGITS = re.compile(r"(?:\D*\d){2}")  # more than a count of what an answer lists
_COMPUTED = re.compile(r"\d[^=\n]*\s=\s?[$€£]?\s?\d")
_LIMIT = re.compile(  # words before a number, which stands at the sign
    r"(?P<least>at least|no (?:less|fewer) than|minimum of) #"
    r"|(?P<most>at most|(?:no|not|n't)(?: \w+)? (?:more|longer) than|(?:not|n't|never) exceed|maximum of) #"
)
_TERM = r"\d[\d,]*(?:\.\d+)?"
_EQUATION = re.compile(
    rf"(?<![\w.])({_TERM}(?:\s?[+*/x\u00d7\u00f7\u00b7\u2212-]\s?{_TERM})+)\s?=\s?[$€£]?\s?({_TERM})(?![\d%])"
)


def find_absent_number(claim: Claim) -> Finding | None:
    """A number that no context holds: of two digits or more, or beside another of its kind in a sentence that is much the same."""
    place, words = next(iter(claim.closest), None), {word for word in claim.content if not is_number(word)}
    closest = () if place is None else claim.index.sentences[place]
    is_alike = len(words.intersection(closest)) >= _ALIKE * len(words)
    for at in claim.missing:
        key, said = claim.keys[at], claim.words[at]
        # A time may follow from one that is asked about, "the 1980s" from a year.
        may_follow = (":" in key and any(map(is_number, claim.response.asked))) or f"{said}s" in claim.sentence.text
        if not is_number(key) or may_follow or key not in claim.absent - claim.restated:
            continue
        ours = next((one for one in claim.facts.quantities if one.raw == key), None) if claim.is_english else None
        there = claim.index.facts(place).quantities if ours and place is not None else ()
        rival = next((other.text for other in there if ours and ours.kind and other.kind == ours.kind), "")
        is_other = rival or (not claim.is_english and any(is_number(one) and one not in claim.keys for one in closest))
        if _TWO_DIGITS.match(said) or (is_other and is_alike):
            said = ours.text if ours and (rival or ours.text in claim.sentence.text) else said
            return Finding(kind="number" if rival else "absent number", response=said, context=rival, place=place)
    return None


# Another number in its place


def find_other_quantity(claim: Claim) -> Finding | None:
    """The first quantity of the claim in whose place the context has another; or two that have changed places."""
    if not claim.near:
        return None
    found = ((quantity, _rival(claim, quantity)) for quantity in claim.facts.quantities)
    rivals = [(quantity, *rival) for quantity, rival in found if rival is not None]
    for quantity, rival, place in rivals:
        saying = [other for other in claim.facts.quantities if _says(other, rival)]
        exchanged = any(other in saying and _says(quantity, instead) for other, instead, _ in rivals)
        is_product = any(0 < rival.value * one == quantity.value != one for one in _values(claim.keys).values())
        if not is_product and (exchanged or not saying):
            kind = "date" if quantity.kind in DATES else "unit" if quantity.raw == rival.raw else "number"
            return Finding(kind=kind, response=quantity.text, context=rival.text, place=place)
    return None


def _rival(claim: Claim, quantity: Quantity) -> tuple[Quantity, int] | None:
    """Another quantity in a part of a near sentence: with a word around the claim's that those which say the claim's lack."""
    facts, number = claim.facts, claim.facts.parts[quantity.at]
    dates = {one.raw for one in facts.quantities if one.kind in DATES and facts.parts[one.at] == number}
    around = frozenset(filter(tells, facts.keys_of_part(number))) | dates
    around -= {quantity.raw}
    parts, held = [], []
    for near in claim.near:
        if quantity.kind == "weekday" and _may_be_meant(quantity, near.facts):
            return None
        reached = frozenset[str]()
        for part in with_turns(dict.fromkeys(near.facts.parts)):
            words = around.intersection(near.facts.keys_of_part(part))
            reached |= words
            there = [one for one in near.facts.quantities if near.facts.parts[one.at] == part]
            held += [(near.place, words, reached)] if any(_says(other, quantity) for other in there) else []
            # A number that stands elsewhere may be asked about, or computed.
            may_follow = quantity.raw in claim.response.asked or not _FACTORS.keys().isdisjoint(near.facts.keys)
            is_clear = not may_follow or around <= reached
            if near.share >= claim.response.enough and is_clear:
                rivals = [one for one in there if _are_rivals(quantity, one)]
                rivals = [one for one in rivals if one.kind in DATES or near.facts.keys[one.at - 1] != "every"]
                parts.append((words, reached, rivals, near.place))
    best: tuple[tuple[int, bool], Quantity, int] | None = None
    for words, reached, rivals, place in parts:
        others = ((words - own and own <= reached) or (at != place and both < reached) for at, own, both in held)
        if rivals and all(others):
            other = min(rivals, key=lambda other: (other.raw != quantity.raw, other.kind != quantity.kind))
            fits = len(words), bool(other.nouns & quantity.nouns)
            if best is None or fits > best[0]:
                best = fits, other, place
    return best and best[1:]


def _may_be_meant(day: Quantity, facts: Facts) -> bool:
    """Whether a sentence has a weekday as "Sat", which may be another word, or has days before and after it: "Mon-Fri"."""
    known, at = english().weekdays, _WEEK.index(day.text[:3].title())
    written = zip(facts.words, facts.keys, strict=True)
    days = [_WEEK.index(word[:3].title()) for word, key in written if word in _WEEK or key in known]
    between = (at not in days and 0 < (at - first) % 7 < (last - first) % 7 for first, last in pairwise(days))
    return day.text[:3] in facts.words or any(between) or (at >= _WEEK.index("Sat") and "weekend" in facts.keys)


def _says(other: Quantity, quantity: Quantity) -> bool:
    """True where the context gives the claim's number for the same thing, or does not say for what."""
    is_of_same = bool(quantity.kind) or not (quantity.nouns and other.nouns) or bool(quantity.nouns & other.nouns)
    return is_of_same and same(quantity, other)


def _are_rivals(quantity: Quantity, other: Quantity) -> bool:
    """True where one could stand in the place of the other: the same is measured or counted."""
    if same(quantity, other):
        return False
    if quantity.kind in DATES or other.kind in DATES or not (quantity.kind and other.kind):
        return quantity.kind == other.kind and bool(quantity.kind or quantity.nouns & other.nouns)
    return quantity.kind == other.kind or quantity.raw == other.raw


# Limits


def find_turned_limit(claim: Claim) -> Finding | None:
    """A number that the claim has as the least and the contexts as the most, or the other way round: "at most 30 days"."""
    for ours in claim.facts.quantities if claim.is_english else ():
        (side, said), found = _limit(claim.facts, ours), list[tuple[str, str, int]]()
        for place in claim.closest if side else ():
            facts, shared = claim.index.facts(place), claim.content.intersection(claim.index.sentences[place])
            held = facts.quantities if len(shared) >= _CLOSE else ()
            found += [(*_limit(facts, one), place) for one in held if same(ours, one)]
        if {limit for limit, _, _ in found} == {"least", "most"} - {side}:
            return Finding(kind="opposite", response=said, context=found[0][1], place=found[0][2])
    return None


def _limit(facts: Facts, one: Quantity) -> tuple[str, str]:
    """Which limit it is, if any, and in which words."""
    before = " ".join(facts.words[max(0, one.at - 4) : one.at]).rstrip(" $€£").lower()
    match = _LIMIT.search(f"{before} #")
    return (match.lastgroup or "", match[0].replace("#", one.text)) if match else ("", one.text)


# Numbers that follow from others


def find_wrong_equation(claim: Claim) -> Finding | None:
    """An equation that a claim writes out, and whose result is another: "800 * 6 = 4,900"."""
    for match in _EQUATION.finditer(claim.sentence.text) if "=" in claim.sentence.text else ():
        value, result = 0.0, float(match[2].replace(",", ""))
        for sign, term in re.findall(r"([+\u2212-]?)\s?([^+\u2212-]+)", match[1].replace(",", "")):
            factors = re.split(r"\s?([*/x\u00d7\u00f7\u00b7])\s?", f"1*{term.strip()}")
            powers = [-1 if mark in "/\u00f7" else 1 for mark in factors[1::2]]
            numbers = zip(map(float, factors[2::2]), powers, strict=True)
            product = math.prod(number**power if number else 0 for number, power in numbers)
            value += product if sign in {"", "+"} else -product
        if abs(value - result) > max(_TOLERANCE * abs(value), 0.5 if "." not in match[2] else 0.0051):
            return Finding(kind="equation", response=match[0], context=f"{value:,.10g}")
    return None


def may_be_derived(claim: Claim, absent: Sequence[str]) -> bool:
    """Whether a claim writes out an equation, or all of the numbers that no context holds may follow from two others.

    Sums, differences, products and shares are looked for; at least one of the two numbers stands in the claim or the question, or both
    stand in the sentences that the claim rests on. Many at once never follow: too many others would make each.
    """
    if "=" in claim.sentence.text and _COMPUTED.search(claim.sentence.text):
        return True
    if not 0 < len(absent) <= _MOST_DERIVED or not all(map(_NUMBER.fullmatch, absent)):
        return False
    places = dict.fromkeys(at + step for step in (0, -1, 1) for at in claim.resting[:_SENTENCES_NEAR])
    held = [key for place in places for keys in claim.index.sentences[place : place + 1] for key in keys]
    factors = [number for word, number in _PERIODS.items() if word in claim.keys and word not in held]
    known = _SHARES if "%" in claim.keys else _FACTORS
    factors += [number for word, number in known.items() if word in claim.keys or word in held]
    own = _values([*claim.keys, *claim.response.asked, *claim.response.keys])
    mine = [*own.values(), *factors][:_MOST_OPERANDS]
    others = [*factors, *dict.fromkeys([*own.values(), *_values(held).values()])][:_MOST_OPERANDS]
    written = ((key, value) for (key, _), value in own.items() if key in absent)
    follow = {key for key, value in written if _follows(value, mine, others, is_share=known is _SHARES)}
    return bool(follow) and all(key in follow or len(key) < _DIGITS_OF_COUNT for key in absent)


def _values(keys: Sequence[str]) -> dict[tuple[str, str], float]:
    """Of the first numbers among some keys, by the number and the word behind it, which may be its scale: "4.8 million"."""
    pairs = ((key, after) for key, after in pairwise([*keys, ""]) if key[:1].isdigit() and _NUMBER.fullmatch(key))
    values = ((pair, float(pair[0]) * english().scales.get(pair[1], 1)) for pair in islice(pairs, _MOST_OPERANDS))
    return {pair: value for pair, value in values if value}


def _follows(value: float, mine: Sequence[float], others: Sequence[float], *, is_share: bool) -> bool:
    """Whether two of some numbers, one of them the claim's own if the value is small, make a value; or three of its own."""
    for one, other in permutations(others, 2):
        if value in {one, other}:
            continue
        is_free = value >= _SMALL or one in mine or not value.is_integer()
        exact = [one + other, one - other] if is_free else []
        if one in mine and other in mine:  # "twice 28 and 14"
            exact += [one * other + third for third in mine if third != value]
        about = [one * part / _WHOLE for part in (other, _WHOLE - other, _WHOLE + other)]
        about += [one * other, one / other] if is_free or other in mine else []
        if is_share:
            about += [_WHOLE * one / other, _WHOLE * abs(one - other) / other]
            exact += [_WHOLE - one, _WHOLE - one - other, round(_WHOLE / one), round(_WHOLE * one / other)]
        if any(abs(result - value) < _ROUNDING * max(1, value) for result in exact):
            return True
        if any(abs(result - value) <= _TOLERANCE * value for result in about):
            return True
    return False
