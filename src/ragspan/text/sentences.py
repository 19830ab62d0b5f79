"""The sentences of texts, as they are written and as keys.

Texts repeat their chunks; a chunk is what is between two spaces. A `SentenceReader` remembers for each chunk its keys, and
whether a sentence ends with it. So one look into a dictionary replaces the regular expressions here and in `languages` for
most of a context. Where the neighbours of a chunk decide ("Mr.", "5 pm", "1."), they are looked at each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from sys import intern
from typing import Any, Final

from ragspan.text.amounts import has_other_form, in_one_form, may_end_number
from ragspan.text.keys import readable
from ragspan.text.languages.language import ENGLISH, HUNDREDTHS, Language

# A break is one character with at most a few closing marks, so that any run of them takes linear time. Full stops of other
# scripts end a sentence whatever follows; so does one of ASCII after a letter of Chinese, Japanese or Thai.
_FULL_STOPS = "\u3002\uff01\uff1f\uff0e\uff61\u0964\u0965\u061f\u06d4\u0589\u1362\u1367\u104b\u17d4\u17d5\u0f0d\u0f0e\u1803\u1809\ua4ff"
_WITHOUT_SPACES = "\u0e00-\u0eff\u3040-\u9fff"
_BULLETS = "•▪●◦‣"
"""All three as a part of a character class."""
_BREAK = re.compile(  # begins with one class of characters, so that the search passes quickly over all others
    rf"""[.!?\u2026\n{_FULL_STOPS}{_BULLETS}]
    (?: (?<=[.!?\u2026])["')\]*_»]{{0,3}}(?=\s)
      | (?<=[{_FULL_STOPS}])[\u300d\u300f\uff09\u300b"')\]]{{0,3}}
      | (?<=[{_WITHOUT_SPACES}][.!?])
      | (?<=[\n{_BULLETS}]) )""",
    re.VERBOSE,
)
_MARKER = re.compile(r"\s*(?:[-*+>#]{1,6}\s|\(?\d{1,3}[.)]\s|\(?[^\W\d_][)]\s)")
_LONGEST_WORD = 12
"""Characters before a full stop that tell whether it ends a sentence."""
_NEXT_WORD = re.compile(r"\s{1,4}([^\W\d_]{1,14})\b(?!\.)")
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_]){1,6}")
_LONGEST_ORDINAL = 2
_EDGES = f" \t\r\n*_#|{_BULLETS}"
"""What is not a part of a sentence at its ends."""

_MAX_CHUNKS = 1 << 16
"""Chunks of one language that are remembered; then a reader forgets all of them."""
_LONGEST = 64
"""A longer chunk is hardly seen twice."""

END: Final = "\n"
"""Ends a sentence among keys, of which none has a space."""
_ENDED = (END,)
_LINE_END = "\x00"
_BULLET = re.compile(f"[{_BULLETS}]")
_NOT_BY_CHUNKS = re.compile(rf"[{_FULL_STOPS}{_WITHOUT_SPACES}]|\S[{_BULLETS}]|[^\S \t\r\n]")
"""What may end a sentence inside a chunk, and unusual spaces, which some languages write inside numbers."""

_STOP = re.compile(r"""[.!?\u2026]["')\]*_»]{0,3}$""")
_NUMBER_AT_END = re.compile(rf"[^\s(\[\"]{{1,12}}{_STOP.pattern}")
_JOINS = re.compile(r"[AaPp]\.?[Mm]\b|[Cc]ent\b")
_JOINS_ELSEWHERE = re.compile(rf"[AaPp]\.?[Mm]\b|Uhr\b|\d{{3}}(?!\d)|(?i:{'|'.join(HUNDREDTHS)})\b")

_NEVER, _ALWAYS, _AFTER_WORDS, _BEFORE_OPENING = range(4)
"""When a chunk ends a sentence. `_AFTER_WORDS`: a number does, unless it numbers an item of a list. `_BEFORE_OPENING`: an
abbreviation does before a word that can only begin a sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A sentence with its words and their keys."""

    text: str
    """As it is written."""
    words: tuple[str, ...]
    keys: tuple[str, ...]
    """What each of the words is compared by."""
    read: str = ""
    """The text that these words are of, where that is another one: see `abbreviations`."""


def read_sentence(text: str, language: Language = ENGLISH) -> Sentence:
    """The sentence with its words."""
    words = tuple(language.tokens(text))
    return Sentence(text=text, words=words, keys=tuple(map(language.key, words)))


def split_sentences(text: str, language: Language = ENGLISH) -> Iterator[str]:
    """The sentences of a text, list markers left out, each with at least one letter or digit.

    A sentence ends after `.`, `!` or `?` before a space, after the full stops of other scripts, at a line break, and before
    a bullet. A full stop after an abbreviation, an initial or a list number ends none, unless the next word can only begin
    a sentence. The text should be `readable`.
    """
    return filter(_has_content, map(stripped, pieces_of(text, language)))


def written(text: str, language: Language, count: int) -> list[str]:
    """The sentences with keys of a `readable` text, of which a `SentenceReader` finds so many."""
    found = list(split_sentences(text, language))
    if len(found) != count:
        found = [one for one in map(stripped, pieces_of(text, language)) if "".join(language.keys(one)).strip()]
    return found + [""] * (count - len(found))


def places_of(text: str, language: Language = ENGLISH) -> Iterator[tuple[int, int]]:
    """Where each sentence of a text begins and ends, in characters of the text as it is, `readable` or not."""
    even = readable(text)  # of the same length: it replaces characters one by one
    end = 0
    for sentence in split_sentences(even, language=language):
        start = even.index(sentence, end)
        end = start + len(sentence)
        yield start, end


def pieces_of(text: str, language: Language) -> Iterator[str]:
    """The sentences of a text with all that is between them."""
    start = 0
    for match in _BREAK.finditer(text):
        if match[0][0] != "." or not _stands_inside(text, start, match, language):
            yield text[start : match.end()]
            start = match.end()
    yield text[start:]


def stripped(piece: str) -> str:
    """The sentence of a piece, without list marker and edges."""
    marker = _MARKER.match(piece)
    return piece[marker.end() if marker else 0 :].strip(_EDGES)


def _has_content(sentence: str) -> bool:
    return any(map(str.isalnum, sentence))


def _stands_inside(text: str, start: int, match: re.Match[str], language: Language) -> bool:
    """True for the full stop of an abbreviation, an initial or a list number."""
    word = _last_word(text, start, match.start())
    if word.isdigit():
        if _is_ordinal(word, language):
            return True
        return not text[start : match.start() - len(word)].strip(_EDGES)
    if word.lower() not in language.abbreviations and not _is_initial(word):
        return False
    return not _opens_sentence(text, match.end(), language)


def _last_word(text: str, start: int, end: int) -> str:
    """The last characters before a place, up to a space or an opening bracket; empty where there is none."""
    found = text[max(start, end - _LONGEST_WORD) : end]
    if not found or found[-1].isspace():
        return ""
    word = found.split()[-1]
    for opening in '(["':
        word = word[word.rfind(opening) + 1 :]
    return word


def _opens_sentence(text: str, at: int, language: Language) -> bool:
    """True where a capitalised word follows that can only begin a sentence."""
    following = _NEXT_WORD.match(text, at)
    return following is not None and following[1].istitle() and following[1].lower() in language.stop_words


def _is_ordinal(digits: str, language: Language) -> bool:
    """True where a full stop makes a number an ordinal: "24. Mai"."""
    return language.has_ordinal_points and len(digits) <= _LONGEST_ORDINAL


def _is_initial(word: str) -> bool:
    """True for "J" and "e.g"; not for a letter that is a word, such as the Russian "я"."""
    if len(word) == 1:
        return word.isupper()
    return "." in word and _INITIALS.fullmatch(word) is not None


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk whose keys or end depend on its neighbours."""

    keys: tuple[str, ...]
    stop: int
    is_marker: bool
    """At the beginning of a sentence it marks an item of a list."""
    may_join: bool
    """It may be one token with the chunk before: "5 pm"."""
    has_form: bool
    """With the chunks beside it, it may be an amount that has another form: "two and a half"."""
    may_follow: bool
    """After a chunk that ends with a digit, it may be the rest of a number: "1 500"."""

    def may_have_form(self, chunks: Sequence[str], at: int) -> bool:
        """False where it belongs to no amount that has another form."""
        return self.has_form or (self.may_follow and at > 0 and chunks[at - 1][-1].isdigit())


class SentenceReader(dict[str, Any]):
    """Remembers chunks: for each the tuple of its keys, with `END` where it ends a sentence, or a `_Chunk`.

    Safe from any thread: at worst, two threads read a chunk twice.
    """

    def __init__(self, language: Language) -> None:
        self._language = language
        self._joins = _JOINS if language.code == "en" else _JOINS_ELSEWHERE

    def read(self, text: str) -> list[str]:
        """The keys of all sentences; `END` follows each sentence, and may also follow none."""
        chunks = _chunks(text)
        if chunks is None:
            return [key for _, keys in self.plainly(text) for key in (*keys, END)]
        found = list(map(self.__getitem__, chunks))
        with suppress(TypeError):  # some are a `_Chunk`
            return list(chain.from_iterable(found))
        places = _places_of_chunks(found)
        if any(found[at].may_have_form(chunks, at) for at in places):
            chunks = _chunks(in_one_form(text)) or []
            found = list(map(self.__getitem__, chunks))
            places = _places_of_chunks(found)
        for at in places:
            found[at] = self._in_place(found[at], at, chunks, found)
        return list(chain.from_iterable(found))

    def keys_of(self, chunk: str) -> tuple[str, ...]:
        """The keys of a chunk by itself."""
        found = self[chunk]
        return found.keys if isinstance(found, _Chunk) else found

    def plainly(self, text: str) -> Iterator[tuple[str, list[str]]]:
        """The sentences of a text that have keys, each with its keys; read without a look at chunks."""
        for sentence in split_sentences(readable(text), self._language):
            if keys := " ".join(self._language.keys(sentence)).split():
                yield sentence, keys

    def __missing__(self, chunk: str) -> Any:
        found = self._learnt(chunk)
        if len(chunk) <= _LONGEST:
            if len(self) >= _MAX_CHUNKS:
                self.clear()
            self[chunk] = found
        return found

    def _learnt(self, chunk: str) -> Any:
        if chunk == _LINE_END:
            return _ENDED
        chunk = readable(chunk).strip()
        is_english = self._language.code == "en"
        has_form, may_follow = is_english and has_other_form(chunk), is_english and may_end_number(chunk)
        keys = self._keys(chunk)
        stop = self._stop_of(chunk)
        is_whole_sentence = stop != _NEVER and chunk[0] == "("  # "(1." is not a marker, for the sentence ends there
        is_marker = bool(keys) and not is_whole_sentence and _MARKER.match(f"{chunk} ") is not None
        may_join = self._joins.match(chunk) is not None
        if is_marker or may_join or has_form or may_follow or stop in {_AFTER_WORDS, _BEFORE_OPENING}:
            return _Chunk(keys, stop, is_marker, may_join, has_form, may_follow)
        return keys + _ENDED if stop == _ALWAYS else keys

    def _keys(self, text: str) -> tuple[str, ...]:
        """Each as the one object for all texts, so that dictionaries need no look at its letters."""
        return tuple(map(intern, " ".join(self._language.keys(text)).split()))

    def _stop_of(self, chunk: str) -> int:
        match = _STOP.search(chunk)
        if match is None:
            return _NEVER
        word = _last_word(chunk, 0, match.start())
        if match[0][0] != "." or not word:
            return _ALWAYS
        if word.isdigit():
            return _NEVER if _is_ordinal(word, self._language) else _AFTER_WORDS
        return _BEFORE_OPENING if word.lower() in self._language.abbreviations or _is_initial(word) else _ALWAYS

    def _in_place(self, chunk: _Chunk, at: int, chunks: Sequence[str], found: list[Any]) -> tuple[str, ...]:
        """The keys of a chunk, and whether it ends a sentence, given those of the chunks before it."""
        keys = chunk.keys
        begins = not at or found[at - 1][-1:] == _ENDED
        if chunk.is_marker and begins and at < len(chunks) - 1:
            return ()
        if chunk.may_join and not begins and _may_be_joined(chunks[at - 1]):
            first = at - 1
            while first and self._joins.match(chunks[first]) and _may_be_joined(chunks[first - 1]):
                first -= 1
            keys = self._keys(" ".join(chunks[first : at + 1]))
            found[first:at] = [()] * (at - first)
        return keys + _ENDED if self._ends(chunk, at, chunks, found) else keys

    def _ends(self, chunk: _Chunk, at: int, chunks: Sequence[str], found: Sequence[tuple[str, ...]]) -> bool:
        if chunk.stop == _BEFORE_OPENING:
            return at + 1 < len(chunks) and _opens_sentence(f" {chunks[at + 1]}", 0, self._language)
        if chunk.stop == _AFTER_WORDS:
            start = at
            while start and found[start - 1][-1:] != _ENDED:
                start -= 1
            before = "".join([*chunks[start:at], _NUMBER_AT_END.sub("", chunks[at])])
            return bool(before.strip(_EDGES))
        return chunk.stop == _ALWAYS


def _chunks(text: str) -> list[str] | None:
    """What is between spaces, with marks for line ends; None where single chunks do not show the sentences."""
    lines = text.replace("\n", f" {_LINE_END} ")
    if not text.isascii():
        if _NOT_BY_CHUNKS.search(text):
            return None
        lines = _BULLET.sub(f" {_LINE_END} ", lines)
    return lines.split()


def _places_of_chunks(found: Sequence[Any]) -> list[int]:
    return [at for at, one in enumerate(found) if one.__class__ is _Chunk]


def _may_be_joined(chunk: str) -> bool:
    return chunk[-1].isdigit() or chunk.endswith(("per", "Per"))


def reader(language: Language) -> SentenceReader:
    """The one for all texts in this language."""
    if language.reader is None:
        language.reader = SentenceReader(language)
    known: SentenceReader = language.reader
    return known
