"""English amounts in one form: number words that belong together, fractions, times, versions and currencies.

"One hundred and twenty" becomes "120", "two and a half" "2.5", "EUR 5" "€5". What is already in that form stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ragspan.text.vocabulary import NUMBER_WORDS, rows_of

_ORDINALS = [
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"),
    *("eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth"),
    *("nineteenth", "twentieth"),
]
_PLACES = {word: at for at, word in enumerate(_ORDINALS, 1)} | {"thirtieth": 30}
_VALUES = {"a": 1, "an": 1, "one": 1} | {word: int(digits) for word, digits in NUMBER_WORDS.items() if digits.isdigit()}
_HUNDRED = 100
_CARDINAL = "|".join(
    word for word, value in _VALUES.items() if value < _HUNDRED and word[0] != "a" and word not in {"twice", "thrice"}
)
_COUNT = rf"(?:{_CARDINAL}|\d{{1,4}})"
_SIGNS = {"usd": "$", "eur": "€", "gbp": "£"}
_UNITS = "|".join(sorted({re.escape(name) for _, _, *names in rows_of("en/units") for name in names if len(name) > 1}))

_Rule: TypeAlias = tuple[Sequence[str] | Callable[[str], object], re.Pattern[str], Callable[[re.Match[str]], str]]


def in_one_form(text: str) -> str:
    """The text with amounts in one form; sentences stay as many as they are."""
    if text in _plain or not _may_change(text):
        return text
    lowered, has_shape = text.lower(), _SHAPE.search(text) is not None
    for signs, pattern, form in _RULES:
        if (has_shape and signs(text)) if callable(signs) else any(sign in lowered for sign in signs):
            text = pattern.sub(form, text)
    return text


_TRIGGER = re.compile(
    r"hundred|dozen|half|third|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|teen|tie)th|-first|-second|o'clock|[0-9]\.[0-9]|usd|eur|gbp|v[0-9]|e-mail|wi-fi"
)
"""What some chunk of a text, in small letters, has that a rule changes; a chunk is what stands between spaces."""
_SPACED = re.compile("[0-9] [0-9]{3}")
_plain: set[str] = set()
"""Chunks without it. Safe from any thread: at worst, two look at one chunk."""
_MOST_CHUNKS, _LONGEST = 1 << 16, 64


def has_other_form(chunk: str) -> bool:
    """False for a chunk that no rule changes, unless it ends a number that is written with spaces."""
    if chunk in _plain:
        return False
    if _TRIGGER.search(chunk.lower()) is not None:
        return True
    _remember([chunk])
    return False


def _may_change(text: str) -> bool:
    chunks = text.split()
    if _plain.issuperset(chunks):
        return _SPACED.search(text) is not None
    new = [chunk for chunk in chunks if chunk not in _plain]
    plain = [chunk for chunk in new if _TRIGGER.search(chunk.lower()) is None]
    _remember(plain)
    return len(plain) < len(new) or _SPACED.search(text) is not None


def _remember(plain: Sequence[str]) -> None:
    if len(_plain) > _MOST_CHUNKS:
        _plain.clear()
    _plain.update([chunk for chunk in plain if len(chunk) <= _LONGEST])


_SHAPE = re.compile(r"[0-9](?:\.[0-9]|h[0-9]| [0-9]{3}| ?min)|[vV][0-9]| [IVX]{1,5}(?![A-Za-z])")
"""What an expression of a rule finds."""


def _value(word: str) -> int:
    return int(word) if word.isdigit() else _VALUES[word.lower()]


def _hundreds(found: re.Match[str]) -> str:
    rest = sum(_value(word) for word in re.split(r"[\s-]", found[2] or "") if word and word.lower() != "and")
    return str(100 * _value(found[1]) + rest)


def _decimal(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _with_part(found: re.Match[str]) -> str:
    return _decimal(_value(found[1]) + (0.5 if found[2].lower() == "half" else 0.25))


def _ordinal(found: re.Match[str]) -> str:
    if not found[1] and found.string[: found.start()].lower().endswith(("a ", "one ", "two ", "three ", "-")):
        return found[0]  # a fraction
    place = _PLACES[found[2].lower()] + (_VALUES[found[1].rstrip("-").lower()] if found[1] else 0)
    ending = {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th") if place not in {11, 12, 13} else "th"
    return f"{place}{ending}"


def _rule(signs: str | re.Pattern[str], pattern: str, form: str | Callable[[re.Match[str]], str]) -> _Rule:
    """`signs` are found quickly where the pattern may match: small letters of which there are some, or an expression."""
    compiled = re.compile(pattern, re.IGNORECASE)
    looked_for = signs.search if isinstance(signs, re.Pattern) else signs.split("|")
    return looked_for, compiled, form if callable(form) else lambda found: found.expand(form)


_ENDS = "third|ourth|ifth|ixth|venth|ighth|inth|tenth|elfth|eenth|ieth|-first|-second"
"""How ordinals end."""
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_RULES: Final[Sequence[_Rule]] = (
    _rule(
        "hundred",
        rf"\b(an?|{_COUNT})[ -]hundred(?:[ -](?:and[ -])?((?:{_TENS})[ -](?:{_CARDINAL})|{_CARDINAL}))?\b(?! million| thousand| billion)",
        _hundreds,
    ),
    _rule("dozen", rf"\b(an?|{_COUNT})[ -]dozen\b", lambda found: str(12 * _value(found[1]))),
    _rule("half|quarter", rf"\b({_COUNT}|one) and an? (half|quarter)\b", _with_part),
    _rule(
        "and a half",
        r"\b(?:an?|one) (hour|day|week|month|year|mile|metre|meter|kilometre|litre|cup|minute) and a half\b",
        r"1.5 \1s",
    ),
    _rule("and a half", rf"\b({_COUNT}) (\w{{3,12}}s) and a half\b", lambda found: f"{_value(found[1])}.5 {found[2]}"),
    _rule("y-", rf"\b({_TENS})-({'|'.join(_ORDINALS[:9])})\b", _ordinal),
    _rule(
        _ENDS,
        rf"\b()({'|'.join(_ORDINALS[2:])}|thirtieth)\b(?! of\b)",
        _ordinal,
    ),
    _rule("o'clock", r"\b(\d{1,2}) o'clock\b", r"\1:00"),
    _rule(
        re.compile(r"\d \d\d\d"), r"(?<![\d.,/-])(?<!\d )(\d{1,3}) (\d{3})(?: (\d{3}))?(?![\d/-])(?! ?-?\d)", r"\1\2\3"
    ),
    _rule("usd|eur|gbp", r"\b(USD|EUR|GBP) ?(?=\d)", lambda found: _SIGNS[found[1].lower()]),
    _rule(
        re.compile(r"\.\d{1,7}0"),
        r"(?<![\d.,:/-])(\d{1,9}\.\d{0,6}?[1-9])0+(?= ?%| ?(?:percent|per cent|euros?|dollars?|pounds?|kg|km|cm|mm|ml|g|m|l)\b)",
        r"\1",
    ),
    _rule(re.compile(r"[vV]\d"), r"\bv(?=\d)", "version "),
    _rule("e-mail|wi-fi", r"\b(e)-(mail)|\b(wi)-(fi)\b", lambda found: "".join(filter(None, found.groups()))),
)
