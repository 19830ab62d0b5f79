"""Numbers with what they count or measure."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ragspan.judges.screen.english import english
from ragspan.text.keys import is_content, is_number
from ragspan.text.vocabulary import word_set

_NOUNS = 3
_TENS = frozenset(range(20, 100, 10))
_DAYS = frozenset(map(str, range(1, 32)))
_YEAR = re.compile(r"1\d{3}|20\d{2}|2100")
_DATING = word_set("in by until since from to of between and or before after till through on during")
_DEGREE = "degre"
_SYMBOLS = frozenset({"%", "$", "€", "£", "C", "F", "g", "m", "l", "L", "s", "V", "W"})
WORDED = frozenset({"month", "weekday"})
"""Kinds of dates that are words."""
DATES = frozenset({"year", "day of the month", "month", "weekday", "time"})
_OPENINGS = frozenset({"may", "every", "each", "once", "one"})
"""The keys that a quantity may begin with that are neither numbers nor names of months and days."""


_SCALING = frozenset("kKMBn")
"""How a number ends that is written with its scale: "45k", "1.2bn"."""
_EXACT, _CONVERTED = 1e-9, 0.001
"""How far two amounts of one may be apart, as a share: in one unit, and in two, of which one was converted."""
_HALF = 50.0
"""Per cent."""
_FEWEST_DIGITS = 2
"""Digits of a rounded number that is compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantity:
    """One number, date or time."""

    at: int
    """Place of the number among the words."""
    end: int
    text: str
    """As it is written, with its unit or the word after it."""
    kind: str
    """What it measures: "days", "dollars"; "year", "day of the month", "month", "weekday", "time"; empty for a count."""
    value: float
    """In the base unit of its kind."""
    size: float = 1.0
    """How many of the base unit its unit is."""
    is_scaled: bool = False
    """A word multiplies the number: "1.2 million", which people round to."""
    raw: str
    """The key of the number itself."""
    nouns: frozenset[str]
    """Keys of the next content words: what is counted."""


def read_quantities(words: Sequence[str], keys: Sequence[str], pauses: Collection[int]) -> tuple[Quantity, ...]:
    """The quantities of a sentence; `pauses` are the places of words that follow a comma or the like."""
    return tuple(_Reader(words, keys, pauses).read()) if has_quantities(keys) else ()


def has_quantities(keys: Iterable[str]) -> bool:
    """False for a sentence with these keys that has no number, date or time."""
    return any(map(_may_begin, keys))


@lru_cache(maxsize=1 << 15)
def _may_begin(word: str) -> bool:
    return is_number(word) or word in english().months or word in english().weekdays or word in _OPENINGS


class _Reader:
    def __init__(self, words: Sequence[str], keys: Sequence[str], pauses: Collection[int]) -> None:
        self._pauses = pauses
        self._words = words
        self._keys = keys
        self._known = english()

    def read(self) -> list[Quantity]:
        found: list[Quantity] = []
        at = 0
        while at < len(self._keys):
            quantity = self._at(at)
            if quantity is not None:
                found.append(quantity)
            at = quantity.end if quantity is not None else at + 1
        return found

    def _at(self, at: int) -> Quantity | None:
        word, written = self._keys[at], self._words[at]
        if word in self._known.months and written[0].isupper():
            return self._named(at, "month", word)
        if written == "May" and at and (self._is_day(at - 1) or self._is_day(at + 1) or self._keys[at - 1] in _DATING):
            return self._named(at, "month", "may")
        if word in self._known.weekdays:
            return self._named(at, "weekday", word)
        if ":" in word and is_number(word):
            return self._named(at, "time", word)
        if is_number(word):
            return self._number(at)
        if word in {"every", "each", "once"}:
            start = at + 1 + (self._key(at + 1) in {"a", "an"})
            if (start > at + 1 or word != "once") and self._key(start) in self._known.units:
                return self._number(start - 1, one=True)
        if word == "one" and self._key(at + 1) in self._known.units:
            return self._number(at, one=True)
        return None

    def _named(self, at: int, kind: str, word: str) -> Quantity:
        return Quantity(at=at, end=at + 1, text=self._words[at], kind=kind, value=0.0, raw=word, nouns=frozenset())

    def _number(self, at: int, *, one: bool = False) -> Quantity:
        raw = "1" if one else self._keys[at]
        value, end, is_scaled = _float(raw), at + 1, self._words[at][-1:] in _SCALING
        if value in _TENS and not self._is_digits(at):
            ones = self._key(end)
            if len(ones) == 1 and ones.isdigit() and not self._is_digits(end):  # "twenty five"
                value, end, raw = value + int(ones), end + 1, str(int(value) + int(ones))
        while self._key(end) in self._known.scales and not self._is_digits(end):
            value, end, is_scaled = value * self._known.scales[self._key(end)], end + 1, True
        kind, size, end = self._unit(at, end)
        if not kind:
            kind = self._date_kind(at, end)
        return Quantity(
            at=at,
            end=end,
            text=self._text(at, end, counted=not kind),
            kind=kind,
            value=value * size,
            size=size,
            is_scaled=is_scaled,
            raw=raw,
            nouns=self._nouns(end),
        )

    def _unit(self, at: int, end: int) -> tuple[str, float, int]:
        units = self._known.units
        if at and self._words[at - 1] in {"$", "€", "£"}:
            return (*units[self._keys[at - 1]], end)
        place = end
        while self._key(place) in {_DEGREE, "us", "usa", "u"} or (
            self._words[at].lower() == "half" and self._key(place) in {"a", "an"}
        ):
            place += 1
        unit = self._key(place)
        if unit in {"$", "€", "£"} and is_number(self._key(place + 1)):
            return "", 1.0, end  # it belongs to the next number: "Season 2: $20,000"
        if unit in units and (len(unit) > 1 or self._words[place] in _SYMBOLS):
            kind, size = units[unit]
            return kind, size, place + 1
        return "", 1.0, end

    def _date_kind(self, at: int, end: int) -> str:
        if self._is_day(at) and (
            self._is_month(at - 1) or self._is_month(end) or (self._key(end) == "of" and self._is_month(end + 1))
        ):
            return "day of the month"
        if _YEAR.fullmatch(self._words[at]):
            return "year"
        return ""

    def _nouns(self, end: int) -> frozenset[str]:
        found: list[str] = []
        for place in range(end, min(len(self._keys), end + _NOUNS + 3)):
            word = self._keys[place]
            if is_number(word) or place in self._pauses or word in self._known.joins or len(found) == _NOUNS:
                break
            if is_content(word):
                found.append(word)
            elif word in self._known.auxiliaries:
                break
        return frozenset(found)

    def _text(self, at: int, end: int, *, counted: bool) -> str:
        if counted and is_content(self._key(end)):
            end += 1
        start = at - 1 if at and self._words[at - 1] in {"$", "€", "£"} else at
        text = " ".join(self._words[start:end])
        return text.replace("$ ", "$").replace("€ ", "€").replace("£ ", "£").replace(" %", "%")

    def _key(self, at: int) -> str:
        return self._keys[at] if 0 <= at < len(self._keys) else ""

    def _is_digits(self, at: int) -> bool:
        return self._words[at][0].isdigit()

    def _is_month(self, at: int) -> bool:
        return self._key(at) in self._known.months or (0 <= at < len(self._words) and self._words[at] == "May")

    def _is_day(self, at: int) -> bool:
        return self._key(at) in _DAYS


def _float(raw: str) -> float:
    try:
        return float(raw)
    except ValueError:
        return -1.0


def same(one: Quantity, other: Quantity) -> bool:
    """True where both say the same amount of the same."""
    if min(one.value, other.value) < 0:  # a version, an address
        return one.raw == other.raw
    if one.kind in DATES or other.kind in DATES:
        if one.kind == other.kind or not one.kind or not other.kind:
            return one.raw == other.raw
        return False
    if one.kind != other.kind:
        halves = {(one.text.lower(), other.kind, other.value), (other.text.lower(), one.kind, one.value)}
        is_half = any(text.startswith("half") and kind == "%" and value == _HALF for text, kind, value in halves)
        return is_half or ((not one.kind or not other.kind) and one.raw == other.raw)
    if one.value == other.value and not one.kind and "." in one.raw and "." in other.raw:
        return one.raw == other.raw  # versions: 3.10 is not 3.1
    most = max(abs(one.value), abs(other.value))
    converted = _CONVERTED if one.size != other.size else _EXACT
    return abs(one.value - other.value) <= converted * most or _rounds_to(one, other) or _rounds_to(other, one)


def _rounds_to(exact: Quantity, rounded: Quantity) -> bool:
    """Whether a number is the rounded form of another: "1.2 million" of 1,204,331."""
    digits = len(rounded.raw.replace(".", "").strip("0"))
    if not rounded.is_scaled or digits < _FEWEST_DIGITS:
        return False
    return math.isclose(float(f"{exact.value:.{digits - 1}e}"), rounded.value, rel_tol=_EXACT)
