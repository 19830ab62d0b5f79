"""Sentences of contexts and responses."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from ragspan.judges.overlap.languages.language import ENGLISH, Language
from ragspan.judges.overlap.text import readable

# One character each, with at most a few closing marks: linear for any run of them. Full stops of other scripts end a
# sentence whatever follows; one of ASCII after a letter of Chinese, Japanese or Thai does, too.
FULL_STOPS = "\u3002\uff01\uff1f\uff0e\uff61\u0964\u0965\u061f\u06d4\u0589\u1362\u1367\u104b\u17d4\u17d5\u0f0d\u0f0e\u1803\u1809\ua4ff"
WITHOUT_SPACES = "\u0e00-\u0eff\u3040-\u9fff"
BULLETS = "•▪●◦‣"
"""All three as a part of a character class."""
_BREAK = re.compile(  # that it begins with one class of characters lets the search pass over all others at once
    rf"""[.!?\u2026\n{FULL_STOPS}{BULLETS}]
    (?: (?<=[.!?\u2026])["')\]*_»]{{0,3}}(?=\s)
      | (?<=[{FULL_STOPS}])[\u300d\u300f\uff09\u300b"')\]]{{0,3}}
      | (?<=[{WITHOUT_SPACES}][.!?])
      | (?<=[\n{BULLETS}]) )""",
    re.VERBOSE,
)
MARKER = re.compile(r"\s*(?:[-*+>#]{1,6}\s|\(?\d{1,3}[.)]\s|\(?[^\W\d_][)]\s)")
_LAST_WORD = re.compile(r"[^\s(\[\"]{1,12}$")
_NEXT_WORD = re.compile(r"\s{1,4}([^\W\d_]{1,14})\b(?!\.)")
_INITIALS = re.compile(r"[^\W\d_]|[^\W\d_](?:\.[^\W\d_]){1,6}")
_LONGEST_ORDINAL = 2
EDGES = f" \t\r\n*_#|{BULLETS}"
"""What is no part of a sentence at its ends."""


def split_sentences(text: str, most: int = sys.maxsize, language: Language = ENGLISH) -> Iterator[str]:
    """The sentences of a text, list markers left out, each with at least one letter or digit.

    A sentence ends after `.`, `!` or `?` before a space, after the full stops of other scripts, at a line break, and before
    a bullet. A full stop after an abbreviation, an initial or a list number ends none, unless the next word can only begin
    a sentence. The text is expected to be `readable`. Of more than `most` sentences, what is left counts as one.
    """
    return filter(has_content, map(stripped, _pieces(text, most, language)))


def places_of(text: str, language: Language = ENGLISH) -> Iterator[tuple[int, int]]:
    """Where each sentence of a text begins and ends, in characters of the text as it is, `readable` or not."""
    even = readable(text)  # of the same length: it replaces characters one by one
    end = 0
    for sentence in split_sentences(even, language=language):
        start = even.index(sentence, end)
        end = start + len(sentence)
        yield start, end


def _pieces(text: str, most: int, language: Language) -> Iterator[str]:
    start, left = 0, most
    for match in _BREAK.finditer(text):
        if match[0][0] != "." or not _stands_inside(text, start, match, language):
            left -= 1
            if left <= 0:
                break
            yield text[start : match.end()]
            start = match.end()
    yield text[start:]


def stripped(piece: str) -> str:
    marker = MARKER.match(piece)
    return piece[marker.end() if marker else 0 :].strip(EDGES)


def has_content(sentence: str) -> bool:
    return any(map(str.isalnum, sentence))


def _stands_inside(text: str, start: int, match: re.Match[str], language: Language) -> bool:
    """True for the full stop of an abbreviation, an initial or a list number."""
    before = last_word(text, start, match.start())
    if before is None:
        return False
    word = before[0]
    if word.isdigit():
        if is_ordinal(word, language):
            return True
        return not text[start : before.start()].strip(EDGES)
    if word.lower() not in language.abbreviations and not is_initial(word):
        return False
    return not opens_sentence(text, match.end(), language)


def last_word(text: str, start: int, end: int) -> re.Match[str] | None:
    """What is written before a place, up to a space or an opening bracket."""
    return _LAST_WORD.search(text, max(start, end - 12), end)


def opens_sentence(text: str, at: int, language: Language) -> bool:
    """True where a capitalised word follows that can only begin a sentence."""
    following = _NEXT_WORD.match(text, at)
    return following is not None and following[1].istitle() and following[1].lower() in language.stop_words


def is_ordinal(digits: str, language: Language) -> bool:
    """True where a full stop makes a number an ordinal: "24. Mai"."""
    return language.has_ordinal_points and len(digits) <= _LONGEST_ORDINAL


def is_initial(word: str) -> bool:
    """True for "J" and "e.g"; not for a letter that is a word, such as the Russian "я"."""
    return _INITIALS.fullmatch(word) is not None and (len(word) > 1 or word.isupper())
