"""One sentence of English taken apart: its clauses, what they deny, its numbers with what they count or measure."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from ragspan.text.keys import content_of, is_content, is_number, key
from ragspan.text.lazy import Lazy
from ragspan.text.sentences import Sentence
from ragspan.text.vocabulary import pairs_of, rows_of, word_set, words_of

_MOST_WORDS = 120  # words of a sentence that are compared
_NEAR, _SOON, _NOUNS = 7, 4, 3
"""A comma begins a clause if a verb follows within `_NEAR` words; "and" also if a past form follows within `_SOON`. `_NOUNS` are counted."""
_REFUSING = frozenset({"failed", "fails", "fail", "refused", "refuses", "refuse", "declined", "ceased"})
_SIDES = dict.fromkeys(("under", "below", "before", "until"), "<") | dict.fromkeys(
    ("over", "above", "after", "since"), ">"
)
"""What words before a number or a date are compared by: its side."""
_DATING = word_set("in by until since from to of between and or before after till through on during")
_DAYS = frozenset(map(str, range(1, 32)))
_YEAR = re.compile(r"1\d{3}|20\d{2}|2100")
_ANSWERED = re.compile(r"\w+[.!] +(?!\d)")
_ABOUT = word_set("about around almost nearly approximately roughly circa ca some")
_BOUNDS, _ROUND = word_set("over than under above below just exceeding"), "00"
"""Words before a bound, as in "more than 6,000", which is near the amount if it is round, and how a round number ends."""
_FAHRENHEIT, _FREEZING = frozenset({"f", "fahrenheit"}), 32
_PLAIN_NUMBER = re.compile(r"[0-9]{1,64}(?:\.[0-9]{1,64})?")
_CURRENCIES = frozenset("$€£")
_LARGE, _POUND = 1e6, 453.6  # grams
_COINS = ({"cents", "euros"}, {"cents", "dollars"}, {"pence", "pounds sterling"}, {"pounds sterling", "grams"})
_CODES = frozenset({"EUR", "USD", "GBP", "CHF"})
_SYMBOLS = frozenset({"%", "h", "C", "F", "g", "m", "l", "L", "s", "V", "W"}) | _CURRENCIES
PRONOUNS = word_set("it they this these")
DATES = frozenset({"year", "day of the month", "month", "weekday", "time"})
"""Kinds of quantities that are compared as they are written."""
_EXACT, _CONVERTED, _ROUNDED, _ROUGHLY = 1e-9, 0.02, 0.005, 0.1
"""How far two amounts of one may be apart, as a share: in one unit, in two, of which one was converted, in millions, and where one is "about"."""


class EnglishWords:
    """Read once, by `english`."""

    def __init__(self) -> None:
        words: dict[str, str] = words_of("en/comparison")
        sets = {name: _keys(some.split()) for name, some in words.items()}
        self.negations, self.exceptions = sets["negations"], sets["exceptions"]
        """Words that turn the clause in which they stand, and that begin what is excepted: "every day except Monday"."""
        self.denying, self.auxiliaries = sets["denying"], sets["auxiliaries"]
        """Words of denial, exception and duty, which are compared by what they do and are not content; forms of "be", "can" and the like."""
        self.turns, self.months, self.weekdays = sets["turns"], sets["months"], sets["weekdays"]
        """Words that begin a clause: "but", "if"; names of months and days."""
        self.common_names = self.weekdays | sets["feasts"]
        self.breaks = self.turns | {"and", "or"} | self.exceptions
        self.may_deny = self.negations | self.exceptions | _keys(_REFUSING) | {"free", "exclud"}  # nothing else denies
        self.dated = self.months | self.weekdays | {"one", "may"}  # words that may be a number or a date
        self.harmless = frozenset((key(a), key(b)) for a, b in map(str.split, words["harmless"].split("|")))
        """A negation with the word after it, where it denies nothing: "not only"."""
        self.units: Mapping[str, tuple[str, float]] = {
            key(word): (dimension.replace("_", " "), float(size))
            for dimension, size, *names in rows_of("en/units")
            for word in names
        }
        """For the key of a unit, what it measures and how many of the base unit it is."""
        self.scales = {key(word): float(size) for word, size in pairs_of(words["scales"]).items()}
        """Words that multiply the number before them."""
        self.measuring = self.units.keys() | self.scales.keys()
        past = [form for _, *forms in rows_of("en/irregular_verbs") for form in forms]
        self.past = frozenset(past).union(words["unchanged_past"].split())
        """Past forms of irregular verbs, as they are written."""
        opposites: defaultdict[str, set[str]] = defaultdict(set)
        for line in rows_of("en/antonyms"):
            left, right = _keys(line[: line.index(":")]), _keys(line[line.index(":") + 1 :])
            for one, other in ((left, right), (right, left)):
                for word in one:
                    opposites[word] |= other - {word}
        for group in map(_keys, rows_of("en/exclusive")):
            for word in group:
                opposites[word] |= group - {word}
        self.opposites = {word: frozenset(others) for word, others in opposites.items()}
        """For a key, those that say the opposite, or exclude it."""


@cache
def english() -> EnglishWords:
    """The one for all."""
    return EnglishWords()


def _keys(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(key, words))


class Quantity(NamedTuple):
    """One number, date or time."""

    at: int  # place of the number among the words
    end: int
    text: str  # as it is written, with its unit or the word after it
    kind: str  # what it measures: "days", "dollars", one of `DATES`; empty for a count
    raw: str  # the key of the number itself
    value: float = 0.0  # in the base unit of its kind; below 0 for a version or an address
    size: float = 1.0  # how many of the base unit its unit is
    about: bool = False  # "about 1,500"
    nouns: frozenset[str] = frozenset()  # keys of the next content words: what is counted


class Clause(NamedTuple):
    """Words with one predicate."""

    start: int
    end: int
    own: frozenset[str]  # keys of its content words, without numbers
    inherited: frozenset[str]  # those of the clauses before, which may hold its subject or its verb
    negations: tuple[int, ...]  # places of the words that deny


class Facts:
    """What the comparison needs of one sentence. What few sentences need is found when it is first asked for.

    `before` is the content of the sentence before, where this one begins with a pronoun: "They are not paid out."
    """

    def __init__(self, sentence: Sentence, before: frozenset[str] = frozenset()) -> None:
        # An answering "No," says of the sentence whether it is so, and denies nothing in it.
        answers = sentence.words[:1] and sentence.words[0].lower() in {"yes", "no"}
        skipped = 1 if answers and (1 in sentence.pauses or _ANSWERED.match(sentence.text)) else 0
        self.text, self.words = sentence.text, sentence.words[skipped:_MOST_WORDS]
        self.pauses = {at - skipped: mark for at, mark in sentence.pauses.items() if skipped < at < _MOST_WORDS}
        keys = sentence.keys[skipped:_MOST_WORDS]
        self.keys = keys if _SIDES.keys().isdisjoint(keys) else tuple(map(compared, keys, (*keys[1:], "")))
        is_double = not {"without", "unless"}.isdisjoint(self.keys) and not {"not", "no", "never"}.isdisjoint(self.keys)
        self.may_deny = not is_double and not english().may_deny.isdisjoint(self.keys)
        self._before = before

    @Lazy
    def quantities(self) -> tuple[Quantity, ...]:
        """Its numbers, dates and times."""
        found: list[Quantity] = []
        dated = english().dated
        for at in [at for at, word in enumerate(self.keys) if word < ":" or word in dated]:  # figures and signs
            quantity = self._quantity(at) if not found or at >= found[-1].end else None
            if quantity is not None and found:
                last, joint = found[-1], self.keys[found[-1].end : quantity.at]
                is_half = quantity.raw == "0.5" and joint[:1] == ("and",) and not last.kind  # "two and a half hours"
                is_rest = quantity.kind == last.kind and quantity.size < last.size > quantity.value
                if is_half or (is_rest and joint in {(), ("and",)}):
                    found.pop()  # "2 h 15 min"; not "1 h (60 min)"
                    whole = last.value * (quantity.size if is_half else 1) + quantity.value
                    text = " ".join(self.words[last.at : quantity.end])
                    quantity = quantity._replace(at=last.at, text=text, value=whole)
            if quantity is not None and found and not (quantity.kind or quantity.nouns or found[-1].kind):
                quantity = quantity._replace(nouns=found[-1].nouns)  # "adults 20 items, children 30"
            found += [] if quantity is None else [quantity]
        return tuple(found)

    @Lazy
    def content(self) -> frozenset[str]:
        """Keys of its content words, without numbers and their units."""
        measured = [self.keys[one.at : one.end] for one in self.quantities if one.kind not in {"month", "weekday"}]
        told = [word for word in content_of(self.keys) - english().denying if not word[:1].isdigit()]
        return frozenset(told).difference(*measured)

    @Lazy
    def parts(self) -> tuple[int, ...]:
        """For each word the number of its part: parts end at commas, "and", "but", but not within "between 10 and 18"."""
        dates = english().months | english().weekdays
        joined = ["number" if is_number(word) else "date" if word in dates else "" for word in ("", *self.keys, "")]
        ends = (
            at in self.pauses or (word in english().breaks and not (joined[at] and joined[at] == joined[at + 2]))
            for at, word in enumerate(self.keys)
        )
        return tuple(accumulate(ends))

    def keys_of_part(self, number: int) -> list[str]:
        return [word for word, part in zip(self.keys, self.parts, strict=True) if part == number]

    @Lazy
    def clauses(self) -> tuple[Clause, ...]:
        """At least one, unless the sentence is empty."""
        keys = self.keys
        starts = [0, *filter(self._begins_clause, range(1, len(keys))), len(keys)]
        found, inherited = [], self._before
        for start, end in pairwise(starts):
            own = self.content.intersection(keys[start:end])
            negations = tuple(filter(self._denies, range(start, end))) if self.may_deny else ()
            found.append(Clause(start=start, end=end, own=own, inherited=inherited, negations=negations))
            inherited |= own
        return tuple(found)

    def clause_at(self, place: int) -> Clause:
        """The clause with the word at this place."""
        return next(clause for clause in self.clauses if clause.start <= place < clause.end)

    def _key(self, at: int) -> str:
        return self.keys[at] if 0 <= at < len(self.keys) else ""

    def _begins_clause(self, at: int) -> bool:
        known, keys = english(), self.keys
        mark, word = self.pauses.get(at), keys[at]
        if mark in {";", ":", "("} or word in known.turns or word in known.exceptions or (mark and word == "not"):
            return True
        joins = word in {"and", "or"}
        if word == "that" and self._key(at + 1) in known.auxiliaries:
            return True
        for place in range(at + 1, min(len(keys), at + _NEAR)) if mark == "," or joins else ():
            if keys[place] in {"and", "or"} or place in self.pauses:
                return False
            if keys[place] in known.auxiliaries:
                return True
            if joins and 1 < place - at < _SOON and is_past(self.words[place]):
                return is_content(keys[place - 1])
        return False

    def _denies(self, at: int) -> bool:
        known, word, after = english(), self.keys[at], self._key(at + 1)
        if word in known.exceptions:
            return self.words[at].lower() != "exception"
        pairs = {(word, after), (self._key(at - 1), word)}
        if word in known.negations and pairs.isdisjoint(known.harmless) and not is_number(after):
            # Not the "not" of "do not take more than 8", which says "at most".
            limits = zip(self.keys[at + 1 : at + _SOON + 1], self.keys[at + 2 : at + _SOON + 2], strict=False)
            return not any(one in {"exceed", "than"} and is_number(other) for one, other in limits)
        refuses = self.words[at].lower() in _REFUSING and after == "to" and not is_number(self._key(at + 2))
        return refuses or ((word, after) in {("free", "of"), ("exclud", "from")} and self._key(at + 2) != "cost")

    def _quantity(self, at: int) -> Quantity | None:
        word, written, known = self.keys[at], self.words[at], english()
        kind = "weekday" if word in known.weekdays else "time" if ":" in word and is_number(word) else ""
        is_dated = self._key(at - 1) in _DAYS | _DATING or self._key(at + 1) in _DAYS
        if (word in known.months and written[0].isupper()) or (written == "May" and at and is_dated):
            kind = "month"
        if kind:
            return Quantity(at=at, end=at + 1, text=written, kind=kind, raw=word)
        is_counted = self._key(at + 1) in known.units or self.keys[at + 1 : at + 4] == ("and", "a", "0.5")
        if not is_number(word) and (word != "one" or not is_counted):
            return None
        raw = "1" if word == "one" else word
        said = {word.lower() for word in self.words[max(0, at - 2) : at]}
        about = not _ABOUT.isdisjoint(said) or (raw.endswith(_ROUND) and not _BOUNDS.isdisjoint(said))
        value, end, size = float(raw) if _PLAIN_NUMBER.fullmatch(raw) else -1.0, at + 1, 1.0
        while self._key(end) in known.scales and self.words[end].isalpha():
            value, end = value * known.scales[self._key(end)], end + 1
        end += self._key(end) == "degre" and self._key(end + 1) in known.units
        unit = self._key(end)
        start = at - 1 if at and self.words[at - 1] in _CURRENCIES | _CODES else at
        if start < at:
            kind, size = known.units[self.keys[start]]
        # Not a letter that is a name, and not a sign that belongs to the next number: "Season 2: $20,000".
        elif unit in known.units and (
            (len(unit) > 1 or self.words[end] in _SYMBOLS)
            and not (unit in _CURRENCIES and is_number(self._key(end + 1)))
        ):
            (kind, size), end = known.units[unit], end + 1
            value -= _FREEZING if unit in _FAHRENHEIT else 0
        if not kind and raw in _DAYS and (self._is_month(at - 1) or self._is_month(end + (self._key(end) == "of"))):
            kind = "day of the month"
        elif not kind and not about and _YEAR.fullmatch(written):
            kind = "year"
        last = end + 1 if not kind and is_content(self._key(end) or "the") else end
        text = " ".join(self.words[start:last]).replace(" %", "%")
        text = text[0] + text[2:] if text[0] in _CURRENCIES else text
        code = f"{self.words[at - 1]}{written}" if at and not kind else ""
        text = code if code[:1].isalpha() and code in self.text else text  # "E7"
        counted = self._counted(end)
        return Quantity(
            at=at, end=end, text=text, kind=kind, value=value * size, size=size, raw=raw, about=about, nouns=counted
        )

    def _counted(self, end: int) -> frozenset[str]:
        nouns: list[str] = []
        for place in range(end, min(len(self.keys), end + 2 * _NOUNS)):
            noun = self.keys[place]
            if is_number(noun) or place in self.pauses or noun in {"and", "or"} or noun in english().auxiliaries:
                break
            nouns += [noun] if is_content(noun) else []
        return frozenset(nouns[:_NOUNS])

    def _is_month(self, at: int) -> bool:
        return self._key(at) in english().months or (0 <= at < len(self.words) and self.words[at] == "May")


def same(one: Quantity, other: Quantity) -> bool:
    """True where both say the same amount of the same."""
    if min(one.value, other.value) < 0 and not (one.kind and other.kind):  # a version, an address
        return one.raw == other.raw
    kinds = {one.kind, other.kind}
    if kinds in _COINS:
        whole, near = (_POUND, _CONVERTED) if "grams" in kinds else (100, _EXACT)  # of weight
        amounts = [each.value * (1 if each.kind in {"cents", "pence", "grams"} else whole) for each in (one, other)]
        return math.isclose(*amounts, rel_tol=near)
    if one.kind in DATES or other.kind in DATES or one.kind != other.kind:
        return one.raw == other.raw and (one.kind == other.kind or not one.kind or not other.kind)
    if one.value == other.value and not one.kind and "." in one.raw and "." in other.raw:
        return one.raw == other.raw  # versions: 3.10 is not 3.1
    is_large = min(one.value, other.value) >= _LARGE and len(one.raw) != len(other.raw)  # "8.3 million"
    near = _CONVERTED if one.size != other.size else _ROUNDED if is_large else _EXACT
    return math.isclose(one.value, other.value, rel_tol=_ROUGHLY if one.about or other.about else near)


def compared(word: str, after: str) -> str:
    """What a key is compared by, before another one."""
    is_limit = is_number(after) or after in _CURRENCIES or after in english().dated
    return _SIDES.get(word, word) if is_limit else word


def tells(word: str) -> bool:
    """True for the key of a word that is compared."""
    return is_content(word) and not is_number(word)


def is_past(word: str) -> bool:
    """True for what is written as the past of a verb."""
    return word.endswith("ed") or word.lower() in english().past
