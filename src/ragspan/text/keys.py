"""Text as tokens, and English tokens as keys: two spellings of one thing have the same key.

Each expression here takes time in proportion to the text, whatever the text is: none nests repetitions, and no token but a run of
signs has more than `_LONGEST` characters. Single tokens are normalised, because `unicodedata` takes quadratic time for a long run of
combining marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Final

from Stemmer import Stemmer

from ragspan.text.vocabulary import CALENDAR, FUNCTION_WORDS, NEGATIONS, NUMBER_WORDS, rows_of
from ragspan.turns import with_turns

_LONGEST, _LONGEST_RUN = 64, 4096  # characters of a token; longer words, numbers and runs of signs are cut into pieces

HAN_KANA: Final = "\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
_SOUTH_EAST_ASIAN = "\u0e00-\u0e4f\u0e80-\u0ecf\u0edc-\u0eff\u1000-\u103f\u1050-\u108f\u1780-\u17d3\u17d7\u17dc\u17dd"
WITHOUT_SPACES: Final = HAN_KANA + _SOUTH_EAST_ASIAN
"""Letters of scripts that put no spaces between words; a part of a character class, as the next."""
_MARKS = (chr(at) for at in (*range(0x300, 0x1E00), *range(0xA800, 0xAC00)) if unicodedata.category(chr(at))[0] == "M")
MARKS: Final = "".join(_MARKS) + "\u00ad\u200b-\u200d\u2060"
"""Combining marks, soft hyphens and joiners, which are inside words."""

MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905  shorter
_DATE = re.compile(
    r"\d{4}(?:-(?:0[1-9]|1[0-2])-|/(?:0[1-9]|1[0-2])/)\d\d(?![\d/-])|\d{1,2}(?:/\d{1,2}/|\.\d{1,2}\.|-\d{1,2}-)(?:19|20)\d\d(?!\d)"
    r"|\d{1,2}/\d{1,2}/\d\d(?![\d/])"
)
"""Dates in digits: 2024-05-03, 3.5.2024, 5/3/24."""
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_ONES = "one|two|three|four|five|six|seven|eight|nine|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth"
_LETTER = rf"[^\W\d_{WITHOUT_SPACES}]"
_TOKEN = re.compile(
    rf"""
      (?=[\w.%٪％$€£¥₹₽₺₩₫฿₪])(?:
      (?=[\d.])(?:
        {_DATE.pattern}
      | \d{{1,2}}(?:[:.]\d{{1,2}})?(?::\d\d)?\s?[AaPp]\.?[Mm]\b\.?              # 5 pm, 7.20 a.m.
      | \d{{1,2}}[:hH]\d{{1,2}}(?::\d{{1,2}})?                               # 17:30, 17h30
      | \d{{1,3}}(?:\.\d{{1,3}}){{2,5}}(?![.,]?\d)                           # 10.0.0.12, 2.4.1
      | (?<![\d.])\.\d{{1,{_LONGEST}}}                                    # .5
      | (?<!\d)\d{{1,12}}(?:\.\d{{1,9}})?(?:[kKMB]|[bmt]n|B[Nn])\b           # 45k, 1.2bn
      | (?<=[$€£])\d{{1,12}}(?:\.\d{{1,9}})?m\b                              # £3m
      | \d{{1,3}}(?:[,٬\u00a0\u202f]\d{{3}}){{1,8}}(?!\d)(?:[.,٫]\d{{1,{_LONGEST}}})?  # 1,234,567.89
      | (?<!,)(?:\d{{1,3}}(?:\.\d{{3}}){{1,4}}|\d{{1,12}}),\d{{1,2}}(?![\d,])          # 49,90 and 1.249,90
      | \d{{1,{_LONGEST}}}(?:[.٫]\d{{1,{_LONGEST}}})?(?:(?:st|nd|rd|th|er|ère|ème|º|ª)\b)?  # 42, 3.50, 21st
      )
    | [\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,5}}              # an address of mail
    | (?i:(?:{_TENS})-(?:{_ONES}))\b
    | [%٪％$€£¥₹₽₺₩₫฿₪]
    | (?:{_LETTER}\.){{2,8}}                                                # U.S., e.g.
    | [{HAN_KANA}]{{1,{_LONGEST_RUN}}} | [{_SOUTH_EAST_ASIAN}]{{1,{_LONGEST_RUN}}}
    | (?:{_LETTER}{{1,{_LONGEST}}}[{MARKS}]{{0,{_LONGEST}}}){{1,16}}(?:'{_LETTER}{{1,16}})?
      )""",
    re.VERBOSE,
)

_SCALES = {"k": 3, "m": 6, "mn": 6, "b": 9, "bn": 9, "tn": 12}
_SCALED = re.compile(r"(\d+)(?:\.(\d+))?(k|mn|m|bn|b|tn)")
_TIME = re.compile(r"(\d{1,2})(?:[:.h](\d{1,2}))?(?::\d{1,2})?\s?(?:([ap])\.?m\.?)?")
_FIGURES, _SIGN, _GROUP = re.compile(r"[\d.,٫٬\s]*\d"), re.compile(r"[.,٫٬\s]"), 3
_ACCENTS = re.compile("(?<=[a-z])[\u0300-\u0308\u030a-\u030c\u0327\u0328]{1,4}")
_INSIDE_MARKS = re.compile("[\u00ad\u200b-\u200d\u2060]")
_CLITICS = frozenset({"s", "re", "ll", "ve", "d", "m"})

MARK, NEGATION = "\u00b7", "\u00ac"
"""What the keys of function words and of negations begin with in languages other than English; the word follows."""
_ENGLISH = Stemmer("english", 0)  # its own cache is none: keys are kept
_COMMON = set(FUNCTION_WORDS)
"""The keys without content: of English, and of all words of other languages that were read so far."""

_ASCII = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"}

# What no reader sees or no encoder takes: surrogates, controls, bidirectional marks.
_UNREADABLE = re.compile("[\ud800-\udfff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_PLAIN = bytes([*b"\t\n\r", *range(32, 127)])


def readable(text: str) -> str:
    """The text with typographic quotes and dashes in ASCII; surrogates, controls and bidirectional marks as spaces."""
    if text.isascii():
        return _UNREADABLE.sub(" ", text) if text.encode().translate(None, _PLAIN) else text
    for mark, plain in _ASCII.items():  # faster than a translation table
        text = text.replace(mark, plain)
    places = with_turns(range(0, 0 if text.replace("\n", "").isprintable() else len(text), _LONGEST_RUN))
    return "".join([_UNREADABLE.sub(" ", text[at : at + _LONGEST_RUN]) for at in places]) or text


_BETWEEN = re.compile(r" (?=[AaPp]\.?[Mm]\b)(?<=\d )")


def in_one_form(text: str) -> str:
    """The text with times, per cent and 401(k) as one word: "5 pm" as "5pm", "401(k)" as "401k"."""
    return _BETWEEN.sub("", text.replace("per cent", "percent").replace("401(k)", "401k"))


def tokens(text: str, *, months: bool = True) -> list[str]:
    """Words, numbers, times, `%` and currency signs, as they are written; dates in digits as day, month and year.

    Without the months, which are known in English only, as day and year.
    """
    found: list[str] = []
    for token in _TOKEN.findall(text):
        day, month, year = date_of(token)
        found += (day, *[MONTHS[month - 1]][:months], year) if month else (year,)
    return found


def date_of(token: str) -> tuple[str, int, str]:
    """Day, month and year of a date in digits; only a year, with the month 0, if it may have two months; any other token as a year."""
    if not token[0].isdigit() or not _DATE.fullmatch(token):
        return "", 0, token
    first, second, third = re.split("[./-]", token)
    third = f"20{third}" if len(third) == 2 and not token[:4].isdigit() else third  # noqa: PLR2004
    year, day, month = (first, third, int(second)) if token[:4].isdigit() else (third, first, int(second))
    if month > len(MONTHS) >= int(day):
        day, month = second, int(first)
    is_clear = "/" not in token or int(day) > len(MONTHS) or int(day) == month
    return (day, month, year) if is_clear and month <= len(MONTHS) else ("", 0, year)


def keys(text: str) -> list[str]:
    return list(map(key, tokens(in_one_form(text))))


@lru_cache(maxsize=1 << 15)
def key(token: str) -> str:
    """What a token is compared by.

    For numbers and number words, digits without separators, ordinal suffix and idle zeros ("three", "3.0", "3rd" → "3"); for
    times, 24 hours ("5 p.m." → "17:00"); "not" for contractions with it; the full name of a month or day; the word itself for
    function words and negations; for all others the stem, or that of the first synonym.
    """
    found = _lower_key(token.lower())
    return "usa" if found == "us" and token[:2].isupper() else found  # the country, not the pronoun


@lru_cache(maxsize=1 << 15)
def _lower_key(token: str) -> str:
    word = token
    if not token.isascii():
        word = _INSIDE_MARKS.sub("", unicodedata.normalize("NFKC", token)).lower()
        word = _ACCENTS.sub("", unicodedata.normalize("NFD", word))
    if word[:1].isdigit() or (word[:1] == "." and word[1:2].isdigit()):
        return number_key(word, ".")
    tens, hyphen, ones = word.partition("-")
    if hyphen and "@" not in word:  # "twenty-four"
        return str(int(NUMBER_WORDS[tens]) + int(NUMBER_WORDS.get(ones, "2" if ones == "second" else "1")))
    if word.endswith("n't") or word == "cannot":
        return "not"
    head, apostrophe, tail = word.partition("'")
    if apostrophe and tail in _CLITICS:
        word = head
    word = word.replace(".", "")
    if word in FUNCTION_WORDS:
        return word
    if word == "percent":
        return "%"
    found = NUMBER_WORDS.get(word) or _ENGLISH.stemWord(CALENDAR.get(word, word))
    return _synonyms().get(found, found)


def common(mark: str, word: str) -> str:
    """The key of a function word or a negation of another language, and remember that it has no content."""
    _COMMON.add(f"{mark}{word}")
    return f"{mark}{word}"


def is_number(token_key: str) -> bool:
    return token_key[:1].isdigit()


def is_content(token_key: str) -> bool:
    """True for what can show where a sentence comes from: all but function words and negations."""
    return token_key not in _COMMON


def content_of(token_keys: Iterable[str]) -> frozenset[str]:
    """The keys that are content."""
    return frozenset(token_keys) - _COMMON


def is_negation(token_key: str) -> bool:
    """True for the key of a word that denies, in any language."""
    return token_key in NEGATIONS or token_key[:1] == NEGATION


def number_key(word: str, decimal: str) -> str:
    """A number without separators and idle zeros: "1.234,50" → "1234.5" if the comma is the decimal sign; a time in 24 hours.

    Before three digits another sign separates thousands; before more or fewer it begins a fraction.
    """
    word = word if word.isascii() else "".join(str(unicodedata.digit(sign, sign)) for sign in word)
    figures = _FIGURES.match(word)
    digits = figures[0] if figures else word
    if digits != word:
        time, scaled = _TIME.fullmatch(word), _SCALED.fullmatch(word)
        if time is not None:
            hour, half = int(time[1]), time[3]
            return f"{hour % 12 + 12 * (half == 'p') if half else hour}:{int(time[2] or 0):02}"
        if scaled is not None:
            places, fraction = _SCALES[scaled[3]], scaled[2] or ""
            digits, decimal = f"{scaled[1]}{fraction[:places]:0<{places}}.{fraction[places:]}", "."
    signs = _SIGN.findall(digits)
    if signs.count(".") == len(signs) > 1 and decimal == ".":
        return digits  # a version, an address
    whole, fraction = digits, ""
    if signs:
        before, _, after = digits.rpartition(signs[-1])
        is_decimal = signs[-1] == "٫" or (signs[-1] == decimal and signs.count(decimal) == 1)
        if is_decimal or (signs[-1] in ".," and len(after) != _GROUP):
            # "3.10" is not "3.1"
            whole, fraction = before, after if decimal == "." and after.strip("0") else after.rstrip("0")
    return (_SIGN.sub("", whole).lstrip("0") or "0") + ("." + fraction if fraction else "")


@cache
def _synonyms() -> dict[str, str]:
    """For the stems of words with synonyms, and of irregular verbs, the one stem of their group."""
    rows = [list(map(_ENGLISH.stemWord, line)) for line in rows_of("en/synonyms")]
    found = {stem: row[0] for row in reversed(rows) for stem in row}
    for line in rows_of("en/irregular_verbs"):
        verb, *forms = map(_ENGLISH.stemWord, line)
        for form in forms:
            found.setdefault(form, found.get(verb, verb))
    return found
