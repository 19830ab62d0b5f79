"""Reads the sentences of contexts as keys, fast.

Texts repeat their chunks; a chunk is what is between two spaces. A reader remembers for each chunk its keys, and whether a
sentence ends with it, so that one look into a dictionary replaces the regular expressions of `languages` and `sentences`
for most of a context. What a chunk says only beside others ("Mr.", "5 pm", "1.") is found out where it stands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragspan.judges.overlap.languages import Language
from ragspan.judges.overlap.sentences import (
    BULLETS,
    EDGES,
    FULL_STOPS,
    MARKER,
    WITHOUT_SPACES,
    is_initial,
    is_ordinal,
    last_word,
    opens_sentence,
    split_sentences,
    stripped,
)
from ragspan.judges.overlap.text import readable

_MAX_CHUNKS = 1 << 16
"""Chunks of one language that are remembered; then a reader forgets all of them."""
_LONGEST = 64
"""A longer chunk is hardly seen twice."""

_END = "\n"
"""Ends a sentence among keys, of which none has a space."""
_LINE_END = "\x00"
_BULLETS = re.compile(f"[{BULLETS}]")
_NOT_BY_CHUNKS = re.compile(rf"[{FULL_STOPS}{WITHOUT_SPACES}]|\S[{BULLETS}]|[^\S \t\r\n]")
"""What may end a sentence inside a chunk, and unusual spaces, which some languages write inside numbers."""

_STOP = re.compile(r"""[.!?\u2026]["')\]*_»]{0,3}$""")
_JOINS = re.compile(r"[AaPp]\.?[Mm]\b|[Cc]ent\b")
_JOINS_ELSEWHERE = re.compile(r"[AaPp]\.?[Mm]\b|\d{3}(?!\d)")

_NEVER, _ALWAYS, _AFTER_WORDS, _BEFORE_OPENING = range(4)
"""Where a chunk ends a sentence: a number unless it is that of an item in a list, an abbreviation before a word that can
only begin a sentence."""


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What a chunk is of which its neighbours decide."""

    keys: str
    stop: int
    is_marker: bool
    """At the beginning of a sentence it marks an item of a list."""
    may_join: bool
    """It may be one token with the chunk before: "5 pm"."""


class Reader(dict[str, Any]):
    """Remembers chunks: for each its keys, with `_END` where it ends a sentence, or a `_Chunk`.

    Safe from any thread: what two threads do at once costs no more than reading a chunk twice.
    """

    def __init__(self, language: Language) -> None:
        self._language = language
        self._joins = _JOINS if language.code == "en" else _JOINS_ELSEWHERE

    def read(self, text: str) -> list[str]:
        """The keys of each sentence that has any, with spaces between them."""
        chunks = _chunks(text)
        if chunks is None:
            return [keys for sentence in self._plainly(text) if (keys := " ".join(self._language.keys(sentence)))]
        found = list(map(self.__getitem__, chunks))
        try:
            keys = " ".join(found)
        except TypeError:  # of some their neighbours decide
            keys = " ".join(self._in_places(chunks, found))
        return [one for one in keys.split(_END) if one and not one.isspace()]

    def written(self, text: str) -> list[str]:
        """The same sentences as they are written, with single spaces."""
        chunks = _chunks(text)
        if chunks is None:
            return [sentence for sentence in self._plainly(text) if self._language.keys(sentence)]
        keys = self._in_places(chunks, list(map(self.__getitem__, chunks)))
        marked = [f"{chunk}{_END}" if _END in found else chunk for chunk, found in zip(chunks, keys, strict=True)]
        sentences = zip(readable(" ".join(marked)).split(_END), " ".join(keys).split(_END), strict=True)
        return [stripped(sentence) for sentence, found in sentences if found and not found.isspace()]

    def _plainly(self, text: str) -> list[str]:
        return list(split_sentences(readable(text), language=self._language))

    def _in_places(self, chunks: Sequence[str], found: list[Any]) -> list[str]:
        """The keys of each chunk, as it stands among the others."""
        for at, keys in enumerate(found):
            if keys.__class__ is _Chunk:
                found[at] = self._in_place(keys, at, chunks, found)
        return found

    def __missing__(self, chunk: str) -> Any:
        found = self._learnt(chunk)
        if len(chunk) <= _LONGEST:
            if len(self) >= _MAX_CHUNKS:
                self.clear()
            self[chunk] = found
        return found

    def _learnt(self, chunk: str) -> Any:
        if chunk == _LINE_END:
            return _END
        chunk = readable(chunk).strip()
        keys = " ".join(self._language.keys(chunk))
        stop = self._stop_of(chunk)
        is_whole_sentence = stop != _NEVER and chunk[0] == "("  # "(1." is no marker, for the sentence ends there
        is_marker = bool(keys) and not is_whole_sentence and MARKER.match(f"{chunk} ") is not None
        may_join = self._joins.match(chunk) is not None
        if is_marker or may_join or stop in {_AFTER_WORDS, _BEFORE_OPENING}:
            return _Chunk(keys, stop, is_marker, may_join)
        return keys + _END if stop == _ALWAYS else keys

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

    def _in_place(self, chunk: _Chunk, at: int, chunks: Sequence[str], found: list[Any]) -> str:
        """The keys of a chunk, and whether it ends a sentence, given those of the chunks before it."""
        keys = chunk.keys
        begins = not at or found[at - 1].endswith(_END)
        if chunk.is_marker and begins and at < len(chunks) - 1:
            return ""
        if chunk.may_join and not begins and _may_be_joined(chunks[at - 1]):
            first = at - 1
            while first and self._joins.match(chunks[first]) and _may_be_joined(chunks[first - 1]):
                first -= 1
            keys = " ".join(self._language.keys(" ".join(chunks[first : at + 1])))
            found[first:at] = [""] * (at - first)
        return keys + _END if self._ends(chunk, at, chunks, found) else keys

    def _ends(self, chunk: _Chunk, at: int, chunks: Sequence[str], found: Sequence[str]) -> bool:
        if chunk.stop == _BEFORE_OPENING:
            return at + 1 < len(chunks) and opens_sentence(f" {chunks[at + 1]}", 0, self._language)
        if chunk.stop == _AFTER_WORDS:
            start = at
            while start and not found[start - 1].endswith(_END):
                start -= 1
            before = "".join([*chunks[start:at], chunks[at].rstrip("0123456789.!?")])
            return bool(before.strip(EDGES))
        return chunk.stop == _ALWAYS


def _chunks(text: str) -> list[str] | None:
    """What is between spaces, with marks for line ends; None where single chunks do not tell the sentences."""
    lines = text.replace("\n", f" {_LINE_END} ")
    if not text.isascii():
        if _NOT_BY_CHUNKS.search(text):
            return None
        lines = _BULLETS.sub(f" {_LINE_END} ", lines)
    return lines.split()


def _may_be_joined(chunk: str) -> bool:
    return chunk[-1].isdigit() or chunk.endswith(("per", "Per"))


def reader(language: Language) -> Reader:
    """The one for all texts in this language."""
    if language.reader is None:
        language.reader = Reader(language)
    known: Reader = language.reader
    return known
