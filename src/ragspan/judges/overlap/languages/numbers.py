"""Numbers as languages write them: their digits, separators and signs."""

from __future__ import annotations

import re
import unicodedata

_LONGEST = 64
_ORDINAL = r"(?:(?:st|nd|rd|th|er|ère|ème|º|ª|-(?:й|я|е|го|ом|му|ый|ой))\b)?"


def number_pattern(decimal: str, *, spaced: bool) -> str:
    """An expression for numbers of a language with this decimal sign, with spaces between thousands if `spaced`."""
    other = "," if decimal == "." else "."
    space = "\u00a0\u202f" + (r"\ " if spaced else "")
    return rf"""
          \d{{1,3}}(?:[{space}]\d{{3}}){{1,8}}(?!\d)(?:[.,]\d{{1,{_LONGEST}}})?
        | \d{{1,3}}(?:[{other}٬]\d{{2,3}}){{0,8}}[{other}٬]\d{{3}}(?![\d{other}])(?:[{decimal}٫]\d{{1,{_LONGEST}}})?
        | \d{{1,3}}(?:[{decimal}]\d{{3}}){{2,8}}(?![\d{decimal}])
        | \d{{1,{_LONGEST}}}[{decimal}٫]\d{{1,{_LONGEST}}}(?![{decimal}]\d)[万萬億亿]?
        | \d{{1,{_LONGEST}}}[{other}]\d{{1,2}}(?!\d|[{other}]\d)
        | \d{{1,{_LONGEST}}}(?:[万萬億亿]|{_ORDINAL})
    """


_GROUP = 3
_SIGN = re.compile(r"[.,٫٬\s]")
_TIME = re.compile(r"(\d{1,2})[:h](\d{2})(?::\d{2})?\s?(?:([ap])\.?m\.?)?$")
_DIGITS = re.compile(r"\d[\d.,٫٬\s]*")
_MYRIADS = {"万": 4, "萬": 4, "亿": 8, "億": 8}


def ascii_digits(word: str) -> str:
    """The word with the digits of all systems as those of ASCII."""
    return word if word.isascii() else "".join(str(unicodedata.digit(sign, sign)) for sign in word)


def canonical_number(word: str, decimal: str) -> str:
    """A number or a clock time without separators and idle zeros: "1.234,50" → "1234.5" where the comma is the sign.

    A sign before three digits separates thousands unless it is the decimal one; before others it begins a fraction.
    """
    time = _TIME.match(word)
    if time is not None:
        hour = int(time[1])
        return f"{hour % 12 + 12 * (time[3] == 'p') if time[3] else hour}:{time[2]}"
    match = _DIGITS.match(word)
    if match is None:
        return word
    digits = match[0].rstrip(".,٫٬ ")
    whole, fraction = _parts(digits, decimal)
    shift = _MYRIADS.get(word[match.end() :][:1])
    if shift:
        whole, fraction = whole + fraction[:shift].ljust(shift, "0"), fraction[shift:]
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + ("." + fraction if fraction else "")


def _parts(digits: str, decimal: str) -> tuple[str, str]:
    """What stands before the decimal sign and after it."""
    signs = list(_SIGN.finditer(digits))
    if not signs:
        return digits, ""
    last = signs[-1]
    after = digits[last.end() :]
    is_alone = sum(sign[0] == last[0] for sign in signs) == 1
    is_decimal = last[0] == "٫" or (is_alone and last[0] == decimal) or (last[0] in ".," and len(after) != _GROUP)
    if not is_decimal:
        return _SIGN.sub("", digits), ""
    return _SIGN.sub("", digits[: last.start()]), after


_HAN_DIGITS = {
    sign: value
    for value, signs in enumerate(["〇零", "一", "二两兩", "三", "四", "五", "六", "七", "八", "九"])
    for sign in signs
}
_HAN_TENS = {"十": 10, "百": 100, "千": 1000}
_HAN_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
HAN_NUMERALS = "".join([*_HAN_DIGITS, *_HAN_TENS, *_HAN_MYRIADS])
"""As a part of a character class."""
_NUMERALS = frozenset(HAN_NUMERALS)


def han_number(word: str) -> str | None:
    """A number in Chinese numerals in digits: "三十" → "30", "二〇二四" → "2024"; None for what is no number."""
    if not word or not _NUMERALS.issuperset(word):
        return None
    if all(sign in _HAN_DIGITS for sign in word):
        return "".join(str(_HAN_DIGITS[sign]) for sign in word).lstrip("0") or "0"
    total = part = digit = 0
    for sign in word:
        if sign in _HAN_DIGITS:
            digit = _HAN_DIGITS[sign]
        elif sign in _HAN_TENS:
            part, digit = part + (digit or 1) * _HAN_TENS[sign], 0
        else:
            total, part, digit = (total + part + digit or 1) * _HAN_MYRIADS[sign], 0, 0
    return str(total + part + digit)
