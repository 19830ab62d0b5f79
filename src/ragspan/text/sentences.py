"""The sentences of texts: where they stand, their words and their keys.

Texts repeat their chunks; a chunk is what is between two spaces. A `SentenceReader` remembers for each chunk its keys, and
whether a sentence ends with it, so one look into a dictionary replaces the regular expressions for most of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, pairwise
from sys import intern
from typing import Final

from ragspan.text.keys import content_of, in_one_form, may_change, readable
from ragspan.text.languages.language import ENGLISH, WITHOUT_SPACES, Language
from ragspan.turns import give_turn

_FULL_STOPS = "\u3002\uff01\uff1f\uff0e\uff61\u0964\u0965\u061f\u06d4\u0589\u1362\u1367\u104b\u17d4\u17d5\u0f0d\u0f0e\u1803\u1809\ua4ff"
"""Those of other scripts end a sentence whatever follows; a part of a character class, as the next."""
_BULLETS = "•▪●◦‣"
_CHUNK = re.compile(
    rf"""\n | [{_BULLETS}] | [^\s{_FULL_STOPS}{_BULLETS}]*[{_FULL_STOPS}]+[\u300d\u300f\uff09\u300b"')\]]{{0,3}}
    | [^\s{_BULLETS}]*?[{WITHOUT_SPACES}][.!?] | [^\s{_FULL_STOPS}{_BULLETS}]+""",
    re.VERBOSE,
)
_PLAIN_CHUNK = re.compile(r"\n|\S+")
_MAY_END = re.compile(r"""(?<!\S)\S*[.!?]["')\]*_]{0,3}(?!\S)|\n|\Z""")
_STOP = re.compile(r"""[.!?\u2026]["')\]*_»]{0,3}$""")
_OTHER_STOP = re.compile(rf"""[{_FULL_STOPS}][\u300d\u300f\uff09\u300b"')\]]{{0,3}}$|[{WITHOUT_SPACES}][.!?]$""")
_MARKER = re.compile(r"[-*+>#]{1,6}|\(?\d{1,3}[.)]|\(?[^\W\d_][)]")
_NUMBER_OF_ITEM = re.compile(r"\d{1,2}\.")
_INITIALS = re.compile(r"\d{0,2}[^\W\d_](?:\.[^\W\d_]){1,6}")
_IN_NUMBERS = re.compile("(?<=\\d)[ \u00a0\u202f](?=\\d{3}(?!\\d))")
_LONGEST_ORDINAL = 2
_EDGES = f" \t\r\n*_#|{_BULLETS}"
"""What is not a part of a sentence at its ends."""
_LONGEST_WORD = 12
"""Characters before a full stop that tell whether it ends a sentence."""
_MAX_CHUNKS, _LONGEST = 1 << 16, 64
"""Chunks of one language that are remembered; then a reader forgets all of them. A longer one is hardly seen twice."""
END: Final = "\n"
"""Ends a sentence among keys, of which none has a space."""
_LINE_END: Final = (END,)
_PAUSES = frozenset(',;:()[]"')


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A sentence with its words and their keys."""

    text: str
    """As it is written."""
    words: tuple[str, ...]
    keys: tuple[str, ...]
    """What each of the words is compared by."""
    pauses: Mapping[int, str] = field(default_factory=dict)
    """Commas, colons, brackets and dashes, by the place of the word that follows."""


class SentenceReader(dict[str, tuple[str, ...]]):
    """Remembers chunks: for each the tuple of its keys, with `END` where it ends a sentence.

    Safe from any thread: at worst, two threads read a chunk twice.
    """

    def __init__(self, language: Language) -> None:
        self._language = language
        self._is_english = language.code == "en"
        self["\n"] = _LINE_END
        self._markers = {*_BULLETS}
        """Chunks that may mark an item of a list."""
        self._special = {*_BULLETS}
        """These, and chunks that are one with their neighbours or have another form."""
        self._words: dict[str, tuple[list[str], tuple[str, ...], str, str]] = {}
        """The words of chunks and their keys, with the marks before and after them that part a sentence."""

    def read(self, text: str) -> list[str]:
        """The keys of all sentences of a `readable` text; `END` follows each sentence, and may also follow none."""
        chunks = self._chunks(text)
        keys = list(chain.from_iterable(map(self.__getitem__, chunks)))
        if self._special.isdisjoint(chunks):
            return keys
        even = self._even(text)
        if even == text and self._markers.isdisjoint(chunks):
            return keys
        return [
            key for piece in self._pieces(even) for key in (*chain.from_iterable(map(self.__getitem__, piece)), END)
        ]

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Where the sentences of a `readable` text stand, without list markers; also those without a key."""
        if text.isascii() and not self._has_markers(text.split()):
            yield from self._plain_places(text)
            return
        start: int | None = None
        end, begins = 0, True
        for match in (_PLAIN_CHUNK if text.isascii() else _CHUNK).finditer(text):
            chunk = match[0]
            if chunk == "\n" or chunk in _BULLETS:
                if start is not None:
                    yield start, end
                start, begins = None, True
            elif not (begins and _MARKER.fullmatch(chunk)):
                start, end, begins = match.start() if start is None else start, match.end(), False
                if self[chunk][-1:] == _LINE_END:
                    yield start, end
                    start = None
        if start is not None:
            yield start, end

    def _plain_places(self, text: str) -> Iterator[tuple[int, int]]:
        """The same for a text in ASCII without list markers: it looks at stops only."""
        start = 0
        for match in _MAY_END.finditer(text):
            if match[0] in {"\n", ""} or END in self[match[0]]:
                if bare := text[start : match.end()].strip():
                    begin = text.index(bare, start)
                    yield begin, begin + len(bare)
                start = match.end()

    def _has_markers(self, chunks: list[str]) -> bool:
        learnt = list(map(self.__getitem__, chunks))  # before one asks which of them are markers
        return bool(learnt) and not self._markers.isdisjoint(chunks)

    def written(self, text: str) -> list[str]:
        """The sentences with keys of a `readable` text, on one line each."""
        even = text if self._special.isdisjoint(self._chunks(text)) else self._even(text)
        pieces = (piece for piece in self._pieces(even) if any(self[chunk] not in ((), _LINE_END) for chunk in piece))
        return [" ".join(piece).strip(_EDGES) for piece in pieces]

    def _pieces(self, text: str) -> Iterator[list[str]]:
        """The chunks of each sentence, without list markers."""
        chunks = self._chunks(text)
        if not self._has_markers(chunks):
            ends = [at for at, keys in enumerate(map(self.__getitem__, chunks), 1) if END in keys]
            return (chunks[start:end] for start, end in pairwise([0, *ends, len(chunks)]))
        return (self._chunks(text[start:end]) for start, end in self.places(text))

    def _even(self, text: str) -> str:
        """The text with each amount in one form."""
        return in_one_form(text) if self._is_english else _IN_NUMBERS.sub("", text)

    def sentence(self, text: str) -> Sentence:
        """A text that is one sentence, with its words."""
        words: list[str] = []
        keys: list[str] = []
        pauses: dict[int, str] = {}
        even = readable(text)
        chunks = self._chunks(even)
        learnt = list(map(self.__getitem__, chunks))  # before one asks which of them are special
        if learnt and self._is_english and not self._special.isdisjoint(chunks):
            chunks = self._chunks(in_one_form(even))
        for chunk in chunks:
            said, own, before, after = self._words.get(chunk) or self._with_words(chunk)
            if before and words:
                pauses[len(words)] = before
            words += said
            keys += own
            if after:
                pauses[len(words)] = after
        return Sentence(text=text, words=tuple(words), keys=tuple(keys), pauses=pauses)

    def _chunks(self, text: str) -> list[str]:
        if not text.isascii():
            return _CHUNK.findall(text)
        lines = text.split("\n") if "\n" in text else ()
        return [chunk for line in lines for chunk in (*line.split(), "\n")] or text.split()

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        # Each key is one object for all texts, so that dictionaries need no look at its letters.
        keys = tuple([intern(key) for key in self._language.keys(chunk)])
        if _MARKER.fullmatch(chunk):
            self._markers.add(chunk)
            self._special.add(chunk)
        elif may_change(chunk) if self._is_english else chunk[0].isdigit():
            self._special.add(chunk)
        if self._ends(chunk):
            keys = (*keys, END)
        if len(chunk) <= _LONGEST:
            if len(self) >= _MAX_CHUNKS:
                self.clear()
                self._words.clear()
                self._markers, self._special, self["\n"] = {*_BULLETS}, {*_BULLETS}, _LINE_END
            self[chunk] = keys
        return keys

    def _with_words(self, chunk: str) -> tuple[list[str], tuple[str, ...], str, str]:
        words, keys = self._language.tokens(chunk), self[chunk]
        last = chunk[-2] if len(chunk) > 1 and chunk[-1] in ".!?" else chunk[-1]
        before, after = chunk[0] if chunk[0] in _PAUSES or chunk in {"-", "--"} else "", last if last in _PAUSES else ""
        found = words, keys[:-1] if keys[-1:] == _LINE_END else keys, before, after
        if len(chunk) <= _LONGEST:
            self._words[chunk] = found
        return found

    def _ends(self, chunk: str) -> bool:
        """Whether a sentence ends with a chunk: not with an abbreviation, an initial or a number of a list."""
        match = None if chunk[-1].isalnum() or chunk[-1] in ",;:" else _STOP.search(chunk)
        if match is None:
            return not chunk.isascii() and _OTHER_STOP.search(chunk) is not None
        word = chunk[max(0, match.start() - _LONGEST_WORD) : match.start()].lstrip("([\"'")
        if match[0][0] != "." or not word:
            return True
        if word.isdigit():
            return not (self._language.has_ordinal_points and len(word) <= _LONGEST_ORDINAL)
        if word.lower() in self._language.abbreviations:
            return False
        return not (word.isupper() if len(word) == 1 else "." in word and _INITIALS.fullmatch(word) is not None)


def reader(language: Language) -> SentenceReader:
    """The one for all texts in this language."""
    if language.reader is None:
        language.reader = SentenceReader(language)
    known: SentenceReader = language.reader
    return known


def read_sentence(text: str, language: Language = ENGLISH) -> Sentence:
    """The sentence with its words."""
    give_turn()
    return reader(language).sentence(text)


def places_of(text: str, language: Language = ENGLISH) -> Iterator[tuple[int, int]]:
    """Where each sentence of a text begins and ends, in characters of the text as it is, `readable` or not.

    A sentence ends after `.`, `!` or `?` before a space, after the full stops of other scripts, at a line break, and before
    a bullet; not after an abbreviation, an initial or a list number. Each has at least one letter or digit.
    """
    even = readable(text)  # of the same length: it replaces characters one by one
    for start, end in reader(language).places(even):
        piece = even[start:end]
        bare = piece.strip(_EDGES)
        if any(map(str.isalnum, bare)) and not _NUMBER_OF_ITEM.fullmatch(bare):
            begins = start + piece.index(bare)
            yield begins, begins + len(bare)


def split_sentences(text: str, language: Language = ENGLISH) -> Iterator[str]:
    """The sentences of a `readable` text, list markers left out, each with at least one letter or digit."""
    return (text[start:end] for start, end in places_of(text, language))


def content_in(sentences: Iterable[Sentence]) -> frozenset[str]:
    """The keys of all of their content words."""
    return content_of(chain.from_iterable(sentence.keys for sentence in sentences))
