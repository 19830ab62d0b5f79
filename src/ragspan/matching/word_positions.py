"""Where the words of a text stand in it, in characters, through everything that was done to it to read them.

This is worked out where somebody asks, slice by slice: most texts are found as they are, and nobody asks.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import NamedTuple, TypeAlias

from ragspan.matching.normalization import (
    BARE_SLICE,
    LONG_SLICE,
    MAX_WORD,
    SLICE,
    Counts,
    Substitution,
    letters_of,
    slices,
    substitutions,
)

Span: TypeAlias = tuple[int, int]
"""The first character, and the one after the last."""

_ascii_word = re.compile(rf"[0-9A-Za-z]{{1,{MAX_WORD}}}")


class WordPositions:
    """The places of a text's words.

    Args:
        text: the text.
        counts: what `words_of` noted of it.
        bare: as for `words_of`.
    """

    def __init__(self, text: str, counts: Counts, *, bare: bool = False) -> None:
        self._bare = bare
        starts = [0, *accumulate(map(len, slices(text, BARE_SLICE if bare else LONG_SLICE)))]
        self._firsts: list[int] = []
        """The numbers of the first words of the short slices."""
        self._slices: list[tuple[int, int]] = []
        """By short slice, the number of the long one, and its own in that."""
        first = 0
        for number, own in enumerate(counts):
            for position, count in enumerate(own):
                self._firsts.append(first)
                self._slices.append((number, position))
                first += count
        self._text = text
        self._starts = starts
        self._long: dict[int, list[tuple[int, str, list[_Edits]]]] = {}
        self._known: dict[int, _WordsOfSlice] = {}
        self.count = first

    def span(self, first: int, end: int) -> Span:
        """Where the words from this number to the one before `end` stand."""
        return self._position(first)[0], self._position(end - 1)[1]

    def words_in(self, start: int, end: int) -> tuple[int, int]:
        """The numbers of the words that begin in this range of characters: the first one, and the one after the last."""
        return self._first_from(start), self._first_from(end)

    def _first_from(self, character: int) -> int:
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._position(middle)[0] < character else (low, middle)
        return low

    def _position(self, word: int) -> Span:
        at = bisect_right(self._firsts, word) - 1
        while at + 1 < len(self._firsts) and self._firsts[at + 1] <= word:
            at += 1
        number, position = self._slices[at]
        if number not in self._long:
            self._long[number] = list(self._short_slices(number))
        shift, short, edits = self._long[number][position]
        if at not in self._known:
            count = (self._firsts[at + 1] if at + 1 < len(self._firsts) else self.count) - self._firsts[at]
            self._known[at] = _WordsOfSlice(short, count)
        own, begin = self._known[at].span(word - self._firsts[at]), self._starts[number]
        first, last = shift + own[0], shift + own[1]
        if not edits:
            return begin + first, begin + last
        return begin + _before(edits, first), min(self._starts[number + 1], begin + _after(edits, last))

    def _short_slices(self, number: int) -> Iterator[tuple[int, str, list[_Edits]]]:
        text, edits = self._text[self._starts[number] : self._starts[number + 1]], []
        for substitution in substitutions(text, bare=self._bare):
            text, own = _edited(text, substitution)
            if own.starts:
                edits.append(own)
        start = 0
        for short in slices(text, SLICE):
            yield start, short, edits
            start += len(short)


class _Edits(NamedTuple):
    """What a substitution replaced, in order: where the new texts begin and end, and the old ones."""

    starts: list[int]
    new: list[Span]
    old: list[Span]


def _edited(text: str, substitution: Substitution) -> tuple[str, _Edits]:
    pattern, replace = substitution
    edits, pieces, at, length = _Edits([], [], []), [], 0, 0
    for match in pattern.finditer(text):
        written = replace(match)
        if written == match[0]:
            continue
        pieces += [text[at : match.start()], written]
        length += match.start() - at
        edits.starts.append(length)
        edits.new.append((length, length + len(written)))
        edits.old.append(match.span())
        length += len(written)
        at = match.end()
    return "".join([*pieces, text[at:]]), edits


def _before(edits: list[_Edits], character: int) -> int:
    """Where a character was before these substitutions."""
    for starts, new, old in reversed(edits):
        at = bisect_right(starts, character) - 1
        if at >= 0:
            character = old[at][0] if character < new[at][1] else character + old[at][1] - new[at][1]
    return character


def _after(edits: list[_Edits], end: int) -> int:
    """Where the character before `end` ended before these substitutions."""
    for starts, new, old in reversed(edits):
        at = bisect_right(starts, end - 1) - 1
        if at >= 0:
            end = old[at][1] if end - 1 < new[at][1] else end + old[at][1] - new[at][1]
    return end


class _WordsOfSlice:
    """Where the words of a slice begin and end; the whole slice where they are not as many as was counted.

    In plain text they are looked for up to the last one that was asked for: of many texts a prompt has the beginning.
    """

    def __init__(self, text: str, count: int) -> None:
        self._rest = map(re.Match.span, _ascii_word.finditer(text))
        self._spans: list[Span] = []
        if not text.isascii():
            spans = list(_spans_in(text))
            self._spans = spans if len(spans) == count else [(0, len(text))] * count

    def span(self, word: int) -> Span:
        if word >= len(self._spans):
            self._spans += islice(self._rest, word + 1 - len(self._spans))
        return self._spans[word]


def _spans_in(text: str) -> Iterator[Span]:
    """The places of the words of a slice without escapes."""
    start = length = 0
    end = 0
    for first, last in _clusters(text):
        for letter in letters_of(text[first:last]):
            if letter.isspace() or length == MAX_WORD:
                if length:
                    yield start, end
                length = 0
            if not letter.isspace():
                start = start if length else first
                length += 1
                end = last
    if length:
        yield start, end


def _clusters(text: str) -> Iterator[Span]:
    """Characters with the marks on them; vowels and ends of Korean syllables count as marks."""
    start = 0
    for position in range(1, len(text)):
        letter = text[position]
        if (
            letter.isascii()
            or position - start == MAX_WORD
            or not (unicodedata.combining(letter) or "\u1160" <= letter <= "\u11ff")
        ):
            yield start, position
            start = position
    if text:
        yield start, len(text)
