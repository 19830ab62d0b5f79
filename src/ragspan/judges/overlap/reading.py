"""Reads the sentences of contexts as keys, fast.

Texts of one kind repeat their chunks; a chunk is what is between two spaces. A reader remembers for each chunk the key of
its only word, so that one look into a dictionary replaces the regular expressions of `languages` and `sentences` for most of
a context. The result is theirs: where single chunks do not tell what they would say of the whole text, the reader gives up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from ragspan.judges.overlap.languages import Language
from ragspan.judges.overlap.sentences import (
    BULLETS,
    EDGES,
    FULL_STOPS,
    MARKER,
    WITHOUT_SPACES,
    has_content,
    is_initial,
    is_ordinal,
    last_word,
    opens_sentence,
    stripped,
)

_MAX_CHUNKS = 1 << 16
"""Chunks of one language that are remembered; then a reader forgets all of them."""
_LONGEST = 64
"""A longer chunk is hardly seen twice."""

_LINE_END = "\x00"  # a readable text has no such character
_BULLETS = re.compile(f"[{BULLETS}]")
_NOT_BY_CHUNKS = re.compile(rf"[{FULL_STOPS}{WITHOUT_SPACES}]|\S[{BULLETS}]")
"""What may end a sentence inside a chunk."""
_UNUSUAL_SPACE = re.compile(r"[^\S \t\r\n]")
_TWO_SPACES = re.compile(r"[^\S\n]{2}")
_MANY_SPACES = re.compile(r"[^\S\n]{5}")

_STOP = re.compile(r"""[.!?\u2026]["')\]*_»]{0,3}$""")
_JOINS = re.compile(r"[AaPp]\.?[Mm]\b|[Cc]ent\b")
_JOINS_ELSEWHERE = re.compile(r"[AaPp]\.?[Mm]\b|\d{3}(?!\d)")
_EDGE = re.compile(r"[^\W_]_[*_#|]*$")

_NEVER, _ALWAYS, _AFTER_WORDS, _BEFORE_OPENING, _LINE = range(5)
_DEPENDS = (_AFTER_WORDS, _BEFORE_OPENING)
"""Where a chunk ends a sentence: a number unless it is that of an item in a list, an abbreviation before a word that can
only begin a sentence. The last stands for the end of a line."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What a chunk is that is not just a word."""

    keys: tuple[str, ...] = ()
    stop: int = _NEVER
    is_marker: bool = False
    """At the beginning of a sentence it marks an item of a list."""
    may_join: bool = False
    """It may be one token with the chunk before: "5 pm"."""
    is_edge: bool = False
    """At the end of a sentence it may be other tokens: "21st_"."""

    is_odd: bool = False
    """Any of these."""


@dataclass(slots=True)
class ReadText:
    """The sentences of a text that have words."""

    keys: list[list[str]]
    """Of the words of each sentence, in order."""
    most_breaks: int
    """No fewer than the places where the text is cut."""
    lines: str
    spans: list[tuple[int, int]]
    """For each sentence the first of its chunks and the one after its last."""

    _chunks: list[str] | None = None

    def text(self, index: int) -> str:
        """A sentence, with single spaces."""
        if self._chunks is None:
            self._chunks = self.lines.split()
        start, end = self.spans[index]
        return stripped(" ".join(self._chunks[start:end]))


class _NotByChunksError(Exception):
    """Single chunks do not tell."""


class Reader:
    """Remembers chunks. Safe from any thread: what two threads do at once costs no more than reading a chunk twice."""

    def __init__(self, language: Language) -> None:
        self._language = language
        self._joins = _JOINS if language.code == "en" else _JOINS_ELSEWHERE
        self._keys: dict[str, str] = {}
        self._others: dict[str, _Chunk] = {_LINE_END: _Chunk(stop=_LINE)}

    def __len__(self) -> int:
        """How many chunks it knows."""
        return len(self._keys) + len(self._others)

    def read(self, text: str, most: int) -> ReadText | None:
        """The sentences of a readable text; None where single chunks do not tell, or there may be more than `most`."""
        lines = text.replace("\n", f" {_LINE_END} ")
        if not text.isascii():
            if _NOT_BY_CHUNKS.search(text):
                return None
            lines = _BULLETS.sub(f" {_LINE_END} ", lines)
        chunks = lines.split()
        if len(chunks) >= most:
            return None
        chunks.append(_LINE_END)
        read = ReadText(keys=[], most_breaks=len(chunks), lines=lines, spans=[])
        try:
            self._read(text, chunks, read)
        except _NotByChunksError:
            return None
        return read

    def _read(self, text: str, chunks: list[str], read: ReadText) -> None:
        found: list[Any] = list(map(self._keys.get, chunks))
        keys: list[str] = []
        start = first = done = 0  # the first chunks of the sentence with and without a marker, and the next one to read
        is_exact = True
        for at, chunk in self._others_among(chunks, found):
            keys += found[done:at]
            done = at + 1
            if not chunk.is_odd:
                keys += chunk.keys
            elif chunk.is_marker and at == start and _is_followed_by_space(text, chunks, at):
                first = done
            else:
                keys += chunk.keys
                joins = chunk.may_join and at > start and _may_be_joined(chunks[at - 1])
                is_exact = is_exact and not joins and not chunk.is_edge
            stop = chunk.stop
            if stop == _NEVER or (stop in _DEPENDS and not self._ends(text, chunks, start, at)):
                continue
            end = at if stop == _LINE else done
            if not is_exact:
                keys = self._exact_keys(text, chunks[start:end])
            if keys and (keys[0][0].isalnum() or any(map(has_content, chunks[first:end]))):
                read.keys.append(keys)
                read.spans.append((start, end))
            keys, start, first, is_exact = [], done, done, True

    def _others_among(self, chunks: Sequence[str], found: list[Any]) -> Iterator[tuple[int, _Chunk]]:
        """The chunks that are not just a word, with their places; fills in the keys of words that are new."""
        others = self._others
        at = 0
        with suppress(ValueError):
            while True:
                at = found.index(None, at)
                chunk = others.get(chunks[at]) or self._learn(chunks[at])
                if chunk.__class__ is _Chunk:
                    yield at, chunk
                else:
                    found[at] = chunk
                at += 1

    def _learn(self, chunk: str) -> Any:
        """The key of a word, or what else the chunk is."""
        keys = tuple(self._language.keys(chunk))
        stop = self._stop_of(chunk)
        is_whole_sentence = stop != _NEVER and chunk[0] == "("  # "(1." is no marker, for the sentence ends there
        odd = {
            "is_marker": not is_whole_sentence and MARKER.match(f"{chunk} ") is not None,
            "may_join": self._joins.match(chunk) is not None,
            "is_edge": _EDGE.search(chunk) is not None,
        }
        read = _Chunk(keys=keys, stop=stop, is_odd=any(odd.values()), **odd)
        if len(self) >= _MAX_CHUNKS:
            self._keys.clear()
            self._others = {_LINE_END: _Chunk(stop=_LINE)}
        is_word = len(keys) == 1 and stop == _NEVER and not read.is_odd
        if len(chunk) > _LONGEST:
            return keys[0] if is_word else read
        if is_word:
            return self._keys.setdefault(chunk, keys[0])
        return self._others.setdefault(chunk, read)

    def _stop_of(self, chunk: str) -> int:
        match = _STOP.search(chunk)
        if match is None:
            return _NEVER
        before = last_word(chunk, 0, match.start())
        if match[0][0] != "." or before is None:
            return _ALWAYS
        word = before[0]
        if word.isdigit():
            return _NEVER if is_ordinal(word, self._language) else _AFTER_WORDS
        return _BEFORE_OPENING if word.lower() in self._language.abbreviations or is_initial(word) else _ALWAYS

    def _ends(self, text: str, chunks: Sequence[str], start: int, at: int) -> bool:
        """Whether a sentence from the chunk `start` on ends with a number or an abbreviation, the chunk `at`."""
        chunk = chunks[at]
        stop = _STOP.search(chunk)
        before = last_word(chunk, 0, stop.start()) if stop else None
        if before is None:
            return True
        if before[0].isdigit():
            if not text.isascii() and _UNUSUAL_SPACE.search(text):
                raise _NotByChunksError
            return bool("".join([*chunks[start:at], chunk[: before.start()]]).strip(EDGES))
        if not opens_sentence(f" {chunks[at + 1]}", 0, self._language):
            return False
        if _MANY_SPACES.search(text):
            raise _NotByChunksError
        return True

    def _exact_keys(self, text: str, chunks: Sequence[str]) -> list[str]:
        """Those of a sentence, of which single chunks do not tell."""
        if _TWO_SPACES.search(text) or _UNUSUAL_SPACE.search(text):
            raise _NotByChunksError
        return self._language.keys(stripped(" ".join(chunks)))


def _is_followed_by_space(text: str, chunks: Sequence[str], at: int) -> bool:
    return at < len(chunks) - 2 or text[-1].isspace()


def _may_be_joined(chunk: str) -> bool:
    return chunk[-1].isdigit() or chunk.endswith(("per", "Per"))


@cache
def reader(language: Language) -> Reader:
    """The one for all texts in this language."""
    return Reader(language)
