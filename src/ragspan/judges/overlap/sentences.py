"""Sentences of passages and answers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from ragspan.judges.overlap.vocabulary import ABBREVIATIONS, STOP_WORDS

# One character each, with at most a few closing marks: linear for any run of them.
_BREAK = re.compile(r"""[.!?]["')\]*_]{0,3}(?=\s)|[\u3002\uff01\uff1f\n•▪●◦‣]""")
_MARKER = re.compile(r"\s*(?:[-*+>#]{1,6}\s|\(?\d{1,3}[.)]\s|\(?[A-Za-z]\)\s)")
_LAST_WORD = re.compile(r"[^\s(\[\"]{1,12}$")
_NEXT_WORD = re.compile(r"\s{1,4}([A-Z][a-z]{0,12})\b")
_INITIALS = re.compile(r"[A-Z]|[A-Za-z](?:\.[A-Za-z]){1,6}")
_EDGES = " \t\r\n*_#|•▪●◦‣"


def split_sentences(text: str, most: int = sys.maxsize) -> Iterator[str]:
    """The sentences of a text, list markers left out, each with at least one letter or digit.

    A sentence ends after `.`, `!` or `?` before a space, at a line break, and before a bullet. A full stop after an
    abbreviation, an initial or a list number ends none, unless the next word can only begin a sentence. The text is
    expected to be `readable`. Of more than `most` sentences, what is left counts as one.
    """
    return filter(_has_content, map(_stripped, _pieces(text, most)))


def _pieces(text: str, most: int) -> Iterator[str]:
    start, left = 0, most
    for match in _BREAK.finditer(text):
        if match[0][0] != "." or not _stands_inside(text, start, match):
            left -= 1
            if left <= 0:
                break
            yield text[start : match.end()]
            start = match.end()
    yield text[start:]


def _stripped(piece: str) -> str:
    marker = _MARKER.match(piece)
    return piece[marker.end() if marker else 0 :].strip(_EDGES)


def _has_content(sentence: str) -> bool:
    return any(map(str.isalnum, sentence))


def _stands_inside(text: str, start: int, match: re.Match[str]) -> bool:
    """True for the full stop of an abbreviation, an initial or a list number."""
    before = _LAST_WORD.search(text, max(start, match.start() - 12), match.start())
    if before is None:
        return False
    word = before[0]
    if word.isdigit():
        return not text[start : before.start()].strip(_EDGES)
    if word.lower() not in ABBREVIATIONS and not _INITIALS.fullmatch(word):
        return False
    following = _NEXT_WORD.match(text, match.end())
    return following is None or following[1].lower() not in STOP_WORDS
