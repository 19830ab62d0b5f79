"""How languages are written: scripts, numbers, and words without spaces between them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from operator import add
from typing import Final

from ragspan.text.limits import fair_limit

_LETTERS: Final = {
    "latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff\ufb00-\ufb06\uff21-\uff3a\uff41-\uff5a",
    "cyrillic": "\u0400-\u052f",
    "greek": "\u0370-\u03ff\u1f00-\u1fff",
    "armenian": "\u0531-\u0587",
    "hebrew": "\u0590-\u05ff",
    "arabic": "\u0620-\u065f\u066e-\u06d3\u06d5-\u06ef\u06fa-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "devanagari": "\u0900-\u0963\u0970-\u097f",
    "bengali": "\u0980-\u09e3",
    "gurmukhi": "\u0a00-\u0a65",
    "gujarati": "\u0a80-\u0ae5",
    "oriya": "\u0b00-\u0b65",
    "tamil": "\u0b80-\u0be5",
    "telugu": "\u0c00-\u0c65",
    "kannada": "\u0c80-\u0ce5",
    "malayalam": "\u0d00-\u0d65",
    "sinhala": "\u0d80-\u0de5",
    "thai": "\u0e00-\u0e4f",
    "lao": "\u0e80-\u0ecf\u0edc-\u0eff",
    "burmese": "\u1000-\u103f\u1050-\u108f",
    "georgian": "\u10a0-\u10ff",
    "ethiopic": "\u1200-\u135f",
    "khmer": "\u1780-\u17d3\u17d7\u17dc-\u17dd",
    "hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
    "kana": "\u3040-\u30ff\uff66-\uff9f",
    "han": "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff",
}

HAN_KANA: Final = _LETTERS["han"] + _LETTERS["kana"]
SOUTH_EAST_ASIAN: Final = "".join(_LETTERS[script] for script in ("thai", "lao", "burmese", "khmer"))
WITHOUT_SPACES: Final = HAN_KANA + SOUTH_EAST_ASIAN
"""Letters of scripts that put no spaces between words. This and the two above are parts of a character class."""
WITHOUT_SPACES_NAMES: Final = frozenset({"han", "kana", "thai", "lao", "burmese", "khmer"})


def _ranges_of_marks() -> str:
    points = {at for at in (*range(0x300, 0x1E00), *range(0xA800, 0xAC00)) if unicodedata.category(chr(at))[0] == "M"}
    starts = sorted(at for at in points if at - 1 not in points)
    ends = sorted(at for at in points if at + 1 not in points)
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in zip(starts, ends, strict=True))


MARKS: Final = _ranges_of_marks() + "\u00ad\u200b-\u200d\u2060"
"""Combining marks, soft hyphens and joiners, which are inside words; a part of a character class."""

_RUN = re.compile("|".join(f"(?P<{name}>[{letters}]+)" for name, letters in _LETTERS.items()))
_NOT_LATIN = re.compile("[\u0370-\u1dff\u1f00-\u1fff\u3005-\ud7af\uf900-\ufeff\uff66-\uff9f]")
_SIGNS_OF_A_WORD = 3
"""A sign of Han, kana or Thai counts as so many letters."""


def characters_read(texts: Sequence[str], most: int) -> list[int]:
    """How many characters of each text are read if `most` may be read in all: short texts whole, long ones alike.

    A sign of Han, kana, Thai or Hangul counts as five letters, one of Devanagari as two: most are compared in two pairs.
    """
    lengths = [len(text) for text in texts]
    if _WEIGHT * sum(lengths) <= most:
        return lengths
    shares = _shares(lengths, most)
    whole = weight = sum(shares)
    for text, share in zip(texts, shares, strict=True):
        if not text.isascii():
            weight += (_WEIGHT - 1) * sum(map(len, _SIGNS.findall(text, 0, share)))
            weight += sum(map(len, _LETTERS_IN_PAIRS.findall(text, 0, share)))
    return _shares(lengths, most * whole // weight) if weight > most else shares


def _shares(lengths: Sequence[int], most: int) -> list[int]:
    limit = fair_limit(lengths, most)
    return [min(length, limit) for length in lengths]


_WEIGHT = 5
_SIGNS = re.compile(f"[{WITHOUT_SPACES}{_LETTERS['hangul']}]+")
_LETTERS_IN_PAIRS = re.compile(f"[{_LETTERS['devanagari']}]+")


def letters_by_script(text: str) -> dict[str, int]:
    """How many letters of each script a sample has; signs that say more than a letter count more.

    If it has Latin letters only, the count is 1.
    """
    if text.isascii() or not _NOT_LATIN.search(text):
        return {"latin": 1} if any(map(str.isalpha, text)) else {}
    counts: dict[str, int] = {}
    for match in _RUN.finditer(text):
        script = match.lastgroup or ""
        weight = _SIGNS_OF_A_WORD if script in WITHOUT_SPACES_NAMES else 1
        counts[script] = counts.get(script, 0) + weight * len(match[0])
    return counts


def main_script(counts: dict[str, int]) -> str | None:
    """The script of most of the letters; None without any. With a tenth of kana, Han is Japanese."""
    if not counts:
        return None
    main = max(counts, key=counts.__getitem__)
    if main == "han" and counts.get("kana", 0) * 10 > counts["han"]:
        return "kana"
    return main


_LONGEST = 64
_ORDINAL = r"(?:(?:st|nd|rd|th|er|ère|ème|º|ª|-(?:й|я|е|го|ом|му|ый|ой))\b)?"


def number_pattern(decimal: str, *, spaced: bool) -> str:
    """An expression for the numbers of a language with this decimal sign; `spaced`: with spaces between thousands."""
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
    """The word with the digits of any system in ASCII."""
    return word if word.isascii() else "".join(str(unicodedata.digit(sign, sign)) for sign in word)


def canonical_number(word: str, decimal: str) -> str:
    """A number or a clock time without separators and idle zeros: "1.234,50" → "1234.5" if the comma is the decimal sign.

    Before three digits another sign separates thousands; before more or fewer it begins a fraction.
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
_NUMERALS = frozenset([*_HAN_DIGITS, *_HAN_TENS, *_HAN_MYRIADS])


def han_number(word: str) -> str | None:
    """A number in Chinese numerals in digits: "三十" → "30", "二〇二四" → "2024"; None for what is not a number."""
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


_COUNTED = "年月日天号號个個人名件种種岁歳次回倍週周小时時分秒度元円块階层層位枚本台匹点點章条條项項家所国國季世届"
_NUMERAL = f"[{''.join(sorted(_NUMERALS))}]"
_NUMBER = rf"{_NUMERAL}{{2,16}}|(?<=第){_NUMERAL}|{_NUMERAL}(?=[{_COUNTED}])"
_CLUSTER = re.compile(rf"[^{MARKS}][{MARKS}]*")


def segments(run: str, whole: frozenset[str], kept: frozenset[str]) -> list[str]:
    """A run of signs cut up: numbers and the words of `whole` as they are, all else in pairs of neighbouring signs.

    Of Han and kana each sign is a token as well: a pair says more, but a sign is found where a pair is not ("购买" and "买").
    Words of `kept` hold one of `whole` and mean something else ("不同" is not a denial).
    """
    found: list[str] = []
    for match in _pattern(whole, kept).finditer(run):
        part = match[0]
        if match.lastgroup == "whole":
            found.append(part)
        else:
            found += pairs(part, with_signs=_HAN_OR_KANA.match(part) is not None)
    return found


def pairs(part: str, *, with_signs: bool = False) -> list[str]:
    """The pairs of neighbouring signs, each a letter with its marks; a single sign as it is."""
    signs: list[str] = _CLUSTER.findall(part) or [part]
    if len(signs) == 1:
        return signs
    joined = map(add, signs, islice(signs, 1, None))
    if not with_signs:
        return list(joined)
    found = list(chain.from_iterable(zip(signs, joined, strict=False)))
    found.append(signs[-1])
    return [one for one in found if one not in _NUMERALS]  # which are numbers by themselves


def without_repetition(tokens: Iterable[str]) -> Iterator[str]:
    """Tokens in their order, where pairs that overlap are joined to what was written: "购买", "买", "买后" → "购买后"."""
    joined = ""
    for token in tokens:
        if joined and token in joined:
            continue
        if joined and token.startswith(joined):
            joined = token
        elif joined and token[0] > _LAST_ALPHABETIC and token[0] == joined[-1]:
            joined += token[1:]
        else:
            if joined:
                yield joined
            joined = token
    if joined:
        yield joined


_LAST_ALPHABETIC = "\u0dff"
_HAN_OR_KANA = re.compile(f"[{HAN_KANA}]")


@cache
def _pattern(words: frozenset[str], kept: frozenset[str]) -> re.Pattern[str]:
    def any_of(some: frozenset[str]) -> str:
        return "|".join(map(re.escape, sorted(some, key=lambda word: (-len(word), word)))) or "(?!)"

    whole = f"{any_of(kept)}|{_NUMBER}|{any_of(words)}"
    return re.compile(f"(?P<whole>{whole})|(?:(?!{whole}).)+", re.DOTALL)
