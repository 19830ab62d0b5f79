"""Text as tokens, and tokens as keys: two spellings of one thing have the same key.

Each expression here takes time in proportion to the text, whatever the text is: none nests repetitions, and no token has
more than `_LONGEST` characters. Single tokens are normalised, because `unicodedata` takes quadratic time for a long run of
combining marks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache, lru_cache

from ragspan.text.vocabulary import CALENDAR, FUNCTION_WORDS, NEGATIONS, NUMBER_WORDS, rows_of, stemmer_of

_LONGEST = 64
"""Characters of a token; longer words and numbers are cut into pieces."""

# Marks that stand inside words: combining accents, soft hyphens, zero-width joiners.
_INSIDE = "\u0300-\u036f\u00ad\u200b-\u200d\u2060"
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"

_TOKEN = re.compile(
    rf"""
      (?!per\scent\b|Per\scent\b)[A-Za-z]{{2,{_LONGEST}}}(?=[\s.,;:)?!-])   # most words, the fast way
    | \d{{1,2}}:\d{{1,2}}(?::\d{{1,2}})?(?:\s?[AaPp]\.?[Mm]\b\.?)?   # 17:30, 5:30 p.m.
    | \d{{1,2}}\s?[AaPp]\.?[Mm]\b\.?                                 # 5 pm
    | \d{{1,3}}(?:,\d{{3}}){{1,8}}(?!\d)(?:\.\d{{1,{_LONGEST}}})?    # 1,234,567.89
    | \d{{1,{_LONGEST}}}(?:\.\d{{1,{_LONGEST}}})?(?:(?:st|nd|rd|th)\b)?   # 42, 3.50, 21st
    | [Pp]er\s?[Cc]ent\b | [%$€£]
    | (?:[^\W\d_]\.){{2,8}}                                          # U.S., e.g.
    | [{_IDEOGRAPH}]                                                 # a script without spaces
    | (?:[^\W\d_{_IDEOGRAPH}]{{1,{_LONGEST}}}[{_INSIDE}]{{0,{_LONGEST}}}){{1,4}}(?:'[^\W\d_]{{1,8}})?
    """,
    re.VERBOSE,
)

_TIME = re.compile(r"(\d{1,2})(?::(\d{1,2}))?(?::\d{1,2})?\s?(?:([ap])\.?m\.?)?")
_ORDINAL = re.compile(r"(?:st|nd|rd|th)$")
_INSIDE_MARKS = re.compile("[\u00ad\u200b-\u200d\u2060]")
_CLITICS = frozenset({"s", "re", "ll", "ve", "d", "m"})

MARK, NEGATION = "\u00b7", "\u00ac"
"""What the keys of function words and of negations begin with in languages other than English; the word follows."""
_MARKS = frozenset({MARK, NEGATION})

_ASCII = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-"}

_TYPOGRAPHIC = re.compile(f"[{''.join(_ASCII)}]")

# What no reader sees or no encoder takes: surrogates, controls, bidirectional marks.
_UNREADABLE = re.compile("[\ud800-\udfff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def readable(text: str) -> str:
    """The text with typographic quotes and dashes in ASCII; surrogates, controls and bidirectional marks as spaces."""
    if not text.isascii() and _TYPOGRAPHIC.search(text):
        for mark, plain in _ASCII.items():  # faster than a translation table
            text = text.replace(mark, plain)
    return _UNREADABLE.sub(" ", text)


def tokens(text: str) -> list[str]:
    """Words, numbers, times, `%` and currency signs, as they are written."""
    return _TOKEN.findall(text)


def keys(text: str) -> list[str]:
    return list(map(key, _TOKEN.findall(text)))


def key_by(stem: Callable[[str], str]) -> Callable[[str], str]:
    """A function from a token to its key, which remembers many tokens.

    A key is: for numbers and number words, digits without separators, ordinal suffix and idle zeros ("three", "3.0", "3rd" →
    "3"); for times, 24 hours ("5 p.m." → "17:00"); "not" for contractions with it; the full name of a month or day; the word
    itself for function words and negations; for all others the stem, or that of the first synonym.
    """

    @lru_cache(maxsize=1 << 15)
    def lower_key(token: str) -> str:
        word = _INSIDE_MARKS.sub("", unicodedata.normalize("NFKC", token)).lower()
        if word[:1].isdigit():
            return _number_key(word)
        if word.endswith("n't") or word == "cannot":
            return "not"
        head, apostrophe, tail = word.partition("'")
        if apostrophe and tail in _CLITICS:
            word = head
        word = word.replace(".", "")
        if "".join(word.split()) == "percent":
            return "%"
        if word in FUNCTION_WORDS:
            return word
        found = NUMBER_WORDS.get(word) or stem(CALENDAR.get(word, word))
        return _synonyms().get(found, found)

    def key(token: str) -> str:
        found = lower_key(token.lower())
        return "usa" if found == "us" and token[:2].isupper() else found  # the country, not the pronoun

    return key


def is_number(token_key: str) -> bool:
    return token_key[:1].isdigit()


def is_content(token_key: str) -> bool:
    """True for what can show where a sentence comes from: all but function words and negations."""
    return token_key not in FUNCTION_WORDS and token_key[:1] not in _MARKS


def content_of(token_keys: Iterable[str]) -> frozenset[str]:
    """The keys that are content."""
    found = frozenset(token_keys) - FUNCTION_WORDS
    return frozenset([one for one in found if one[0] not in _MARKS])


def is_negation(token_key: str) -> bool:
    """True for the key of a word that denies, in any language."""
    return token_key in NEGATIONS or token_key[:1] == NEGATION


def _number_key(word: str) -> str:
    if ":" in word or word.rstrip(".").endswith("m"):
        return _time_key(word)
    number = _ORDINAL.sub("", word).replace(",", "")
    whole, point, fraction = number.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (point + fraction if fraction else "")


def _time_key(word: str) -> str:
    match = _TIME.match(word)
    if match is None:
        return word
    hour, minute, half = int(match[1]), int(match[2] or 0), match[3]
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    return f"{hour}:{minute:02}"


@cache
def _synonyms() -> dict[str, str]:
    """For the stems of words with synonyms, and of irregular verbs, the one stem of their group."""
    rows = (list(map(_stem, line)) for line in reversed(rows_of("en/synonyms")))
    found = {stem: row[0] for row in rows for stem in row}
    for line in rows_of("en/irregular_verbs"):
        verb, *forms = map(_stem, line)
        for form in forms:
            found.setdefault(form, found.get(verb, verb))
    return found


_stem = stemmer_of("english")

key: Callable[[str], str] = key_by(_stem)
