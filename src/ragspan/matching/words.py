"""The words of texts, where they stand, and an index of them.

Texts are compared by their words: without case, punctuation and white space, and without the escapes of JSON, Python, XML and web
pages. Every escape is decoded into as many characters as it has, so a word's place is the same in the text as it was.
Every step works on a short slice: a call into C keeps all other threads waiting.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from html.entities import html5
from itertools import compress
from typing import NamedTuple, TypeAlias

Span: TypeAlias = tuple[int, int]  # the first character, and the one after the last

MAX_CHARACTERS = 2_000_000  # of a text whose words are looked at
SHINGLE = 5  # words in a row that lead to the places where a text may be
_SLICE = 20_000
_FILL = "\u2060"
_MARKS = "\u00ad\u0300-\u036f\u3099\u309a\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff"
"""Characters that are part of a word and no letters."""
_ALONE = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
"""Letters of scripts that write no spaces between words: each is a word."""
_ascii_word = re.compile(r"[^\W_]{1,48}", re.ASCII)
_word = re.compile(rf"\w[\w{_MARKS}]{{0,47}}")
_word_or_letter = re.compile(rf"[{_ALONE}][\u3099\u309a]?|(?![{_ALONE}])\w(?:(?![{_ALONE}])[\w{_MARKS}]){{0,47}}")
_alone = re.compile(f"[{_ALONE}]")
_mark = re.compile(f"[{_MARKS}]")
_escape = re.compile(
    r"\\{1,8}(?:u([dD][89abAB][0-9a-fA-F]{2})\\{1,8}u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2}))|[nrtbf])"
    r"|&(?:amp;){0,3}(?:#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6})|([a-zA-Z][a-zA-Z0-9]{1,31}));"
)
_WHITE_SPACE = {"n": "\n", "r": "\n", "t": " ", "b": " ", "f": " "}


def words_of(text: str) -> list[str]:
    """The words of a text; of a very long one, of its beginning."""
    words: list[str] = []
    for piece in _slices(text):
        even = _even(piece)
        found = _pattern(even).findall(even)
        joined = "\n".join(found)
        if not joined.isascii() and _mark.search(joined):
            joined = _mark.sub("", unicodedata.normalize("NFC", joined))
        words += joined.casefold().split("\n") if found else ()
    return words


def has_words(text: str, least: int) -> bool:
    """Whether a text has so many words; only where white space tells too little, they are looked for."""
    return len(text.split(None, least)) >= least or (not text.isascii() and len(words_of(text[: 50 * least])) >= least)


def spans_of(text: str) -> list[Span]:
    """Where the words of a text stand in it."""
    spans: list[Span] = []
    start = 0
    for piece in _slices(text):
        even = _even(piece)
        spans += [(start + low, start + high) for low, high in map(re.Match.span, _pattern(even).finditer(even))]
        start += len(piece)
    return spans


def unescaped(text: str) -> str:
    """A text without the escapes of JSON, Python, XML and web pages."""
    return _escape.sub(_decoded, text) if "\\" in text or "&" in text else text


def _slices(text: str) -> Iterator[str]:
    """The text in short pieces, which end at white space where there is any near."""
    start, end_of_all = 0, min(len(text), MAX_CHARACTERS)
    while end_of_all - start > _SLICE:
        end = start + _SLICE
        space = max(text.rfind(" ", end - 1000, end), text.rfind("\n", end - 1000, end))
        yield text[start : space if space > start else end]
        start = space if space > start else end
    yield text[start:end_of_all]


def _pattern(even: str) -> re.Pattern[str]:
    if even.isascii():
        return _ascii_word
    return _word_or_letter if _alone.search(even) else _word


def _even(text: str) -> str:
    """A text without its escapes, and as long."""
    if "\\" in text or "&" in text:
        text = _escape.sub(_evened, text)
    return text.replace("_", " ")


def _evened(match: re.Match[str]) -> str:
    letter, length = _decoded(match), len(match[0])
    return letter + _FILL * (length - 1) if len(letter) == 1 and letter.isalnum() else " " * length


def _decoded(match: re.Match[str]) -> str:
    high, low, short, long, byte, decimal, hexadecimal, name = match.groups()
    if name is not None:
        return html5.get(f"{name};", match[0])
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    digits = short or long or byte or hexadecimal
    code = int(digits, 16) if digits else int(decimal) if decimal else 0
    if code:
        return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else match[0]  # noqa: PLR2004
    return _WHITE_SPACE.get(match[0][-1], match[0])


class Run(NamedTuple):
    """Words in a row that a text shares with the indexed ones."""

    start: int  # the place of the first word in the text
    position: int  # the place of that word in the index
    length: int

    @property
    def stop(self) -> int:
        return self.start + self.length

    @property
    def end(self) -> int:
        return self.position + self.length


class WordIndex:
    """The words of several texts in a row.

    Args:
        parts: the texts. Where a part is to have no words that anything is found in, it holds `HOLE`.
    """

    HOLE = "\U00020000"
    MAX_WORDS = 250_000
    _MAX_PLACES = 1000
    _MAX_WORK = 600_000  # words that are compared: about a twentieth of a second
    _BETWEEN = "\n"

    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = parts
        self.words: list[str] = []
        self._ends: list[int] = []
        for part in parts:
            if len(self.words) < self.MAX_WORDS:
                self.words += words_of(part)
            self.words.append(self._BETWEEN)
            self._ends.append(len(self.words))
        self.is_complete = len(self.words) < self.MAX_WORDS and max(map(len, parts), default=0) < MAX_CHARACTERS
        self.taken = bytearray(len(self.words))
        self.work = self._MAX_WORK
        self._spans: dict[int, list[Span]] = {}
        keys = _keys(self.words)
        self._first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
        self._more: dict[int, list[int]] = {}
        if len(self._first) < len(keys):
            for position, key in enumerate(keys):
                if self._first[key] != position and len(more := self._more.setdefault(key, [])) < self._MAX_PLACES:
                    more.append(position)

    def part_of(self, position: int) -> int:
        """The number of the text that has this word."""
        return bisect_right(self._ends, position)

    def span(self, position: int, end: int) -> Span:
        """The characters of these words in their part."""
        part = self.part_of(position)
        if part not in self._spans:
            self._spans[part] = spans_of(self._parts[part])
        first = self._ends[part - 1] if part else 0
        own = self._spans[part]
        return own[position - first][0], own[end - 1 - first][1]

    def is_free(self, position: int, length: int) -> bool:
        """Whether at most a tenth of these words is taken."""
        return self.taken.count(1, position, position + length) * 10 <= length

    def is_open(self, position: int, end: int) -> bool:
        """Whether these words are of one text, none of them is taken, and nothing was found between them."""
        closed = {self.HOLE, self._BETWEEN}
        return not self.taken.count(1, position, end) and closed.isdisjoint(self.words[position:end])

    def take(self, position: int, end: int) -> None:
        self.taken[position:end] = b"\x01" * (end - position)

    def places(self, words: Sequence[str]) -> list[int]:
        """Where all of these words stand in a row, free of others."""
        length = len(words)
        if not length:
            return []
        if length < SHINGLE:
            likely = self._places_of(words[0])
        else:
            keys = _keys(words)
            counts = {at: len(self._places_of_key(keys[at])) for at in {0, len(keys) // 2, len(keys) - 1}}
            at = min(counts, key=lambda at: counts[at])
            likely = [place - at for place in self._places_of_key(keys[at])]
        self.work -= len(likely)
        found: list[int] = []
        for place in likely:
            if self.work < 0:
                break
            if place >= 0 and self.words[place + length - 1 : place + length] == [words[-1]]:
                self.work -= length // 5
                if self.words[place : place + length] == words and (not found or place >= found[-1] + length):
                    found.append(place)
        return found

    def _places_of_key(self, key: int) -> Sequence[int]:
        return (self._first[key], *self._more.get(key, ())) if key in self._first else ()

    def _places_of(self, word: str) -> list[int]:
        places: list[int] = []
        at = -1
        while len(places) < self._MAX_PLACES:
            try:
                at = self.words.index(word, at + 1)
            except ValueError:
                break
            places.append(at)
        self.work -= len(self.words) // 50
        return places

    def runs(self, words: Sequence[str]) -> dict[int, list[Run]]:
        """By part, the runs of at least `SHINGLE` free words that a text shares with it, in the text's order."""
        keys = _keys(words)
        self.work -= len(keys) // 8
        found: dict[int, list[Run]] = {}
        stop, last = 0, -1
        for at in compress(range(len(keys)), map(self._first.__contains__, keys)):
            if at < stop:
                continue
            if self.work < 0:
                break
            places = self._places_of_key(keys[at])
            if len(places) > 1:  # the first free one after the last run, or else the first
                after = bisect_left(places, last)
                places = [*places[after : after + 8], *places[:4]]
            self.work -= len(places)
            place = next((one for one in places if not self.taken.count(1, one, one + SHINGLE)), None)
            if place is not None:
                run = Run(at, place, SHINGLE + self._shared(words, at + SHINGLE, place + SHINGLE))
                stop, last = run.stop, run.end
                found.setdefault(self.part_of(place), []).append(run)
        return found

    def _shared(self, words: Sequence[str], at: int, place: int) -> int:
        """How many free words a text has in common with the index from these places on."""
        ours, taken, length = self.words, self.taken, 0
        while at < len(words) and place < len(ours) and ours[place] == words[at] and not taken[place]:
            at, place, length = at + 1, place + 1, length + 1
        self.work -= length
        return length


def _keys(words: Sequence[str]) -> list[int]:
    """A number for the run of words at each place, the same for the same words in this process."""
    return list(map(hash, zip(*(words[shift:] for shift in range(SHINGLE)), strict=False)))
