"""The sentences of texts, as they are written and as keys.

Texts repeat their chunks; a chunk is what is between two spaces. A `SentenceReader` remembers for each chunk its keys, and
whether a sentence ends with it, so one look into a dictionary replaces the regular expressions for most of a context.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from sys import intern
from typing import Final

from ragspan.text.amounts import has_other_form, in_one_form
from ragspan.text.keys import readable
from ragspan.text.languages.language import ENGLISH, Language
from ragspan.text.turns import turn

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
_LINE_END = "\x00"
_STOP = re.compile(r"""[.!?\u2026]["')\]*_»]{0,3}$""")
_INSIDE = re.compile(rf"([{_FULL_STOPS}][\u300d\u300f\uff09\u300b]{{0,3}}|(?<=[{_WITHOUT_SPACES}])[.!?])|[{_BULLETS}]")
"""What ends a sentence inside a chunk."""
_MARKERS = re.compile(r"^[ \t]{0,8}(?:[-*+>#]{1,6}|\(?\d{1,3}[.)])(?=[ \t])", re.MULTILINE)
_SPECIAL = re.compile(r"[AaPp]\.?[Mm]\b|cent\b|\(?\d{1,3}[.)]$")
_BEFORE_HALF_OF_DAY = re.compile(r"(?<=\d) (?=[AaPp]\.?[Mm]\b)")
_IN_NUMBERS = re.compile("(?<=\\d)[ \u00a0\u202f](?=\\d{3}(?!\\d))")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A sentence with its words and their keys."""

    text: str
    """As it is written."""
    words: tuple[str, ...]
    keys: tuple[str, ...]
    """What each of the words is compared by."""


def read_sentence(text: str, language: Language = ENGLISH) -> Sentence:
    """The sentence with its words."""
    turn()
    words = tuple(language.tokens(text))
    return Sentence(text=text, words=words, keys=tuple(map(language.key, words)))


def split_sentences(text: str, language: Language = ENGLISH) -> Iterator[str]:
    """The sentences of a `readable` text, list markers left out, each with at least one letter or digit.

    A sentence ends after `.`, `!` or `?` before a space, after the full stops of other scripts, at a line break, and before
    a bullet. A full stop after an abbreviation, an initial or a list number ends none, unless the next word can only begin
    a sentence.
    """
    return (one for one in map(_stripped, pieces_of(text, language)) if any(map(str.isalnum, one)))


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


def _stripped(piece: str) -> str:
    """The sentence of a piece, without list marker and edges."""
    marker = _MARKER.match(piece)
    return piece[marker.end() if marker else 0 :].strip(_EDGES)


def _stands_inside(text: str, start: int, match: re.Match[str], language: Language) -> bool:
    """True for the full stop of an abbreviation, an initial or a list number."""
    end = match.start()
    if end - max(text.rfind(" ", start, end), start - 1) > _LONGEST_WORD + 1:
        return False
    word = _last_word(text[max(start, end - _LONGEST_WORD) : end])
    if word.isdigit():
        is_ordinal = language.has_ordinal_points and len(word) <= _LONGEST_ORDINAL
        return is_ordinal or not text[start : match.start() - len(word)].strip(_EDGES)
    if not _is_shortened(word, language):
        return False
    following = _NEXT_WORD.match(text, match.end())
    return following is None or not following[1].istitle() or following[1].lower() not in language.stop_words


def _last_word(text: str) -> str:
    """The end of a text from the last space or opening bracket on."""
    word = text.rpartition(" ")[2]
    return word if word.isalnum() else re.split(r'[\s(\["]', word)[-1]


def _is_shortened(word: str, language: Language) -> bool:
    """True for abbreviations, "J" and "e.g"; not for a letter that is a word, such as the Russian "я"."""
    if word.lower() in language.abbreviations:
        return True
    return word.isupper() if len(word) == 1 else "." in word and _INITIALS.fullmatch(word) is not None


class SentenceReader(dict[str, tuple[str, ...]]):
    """Remembers chunks: for each the tuple of its keys, with `END` where it ends a sentence.

    Safe from any thread: at worst, two threads read a chunk twice.
    """

    def __init__(self, language: Language) -> None:
        self._language = language
        self._is_english = language.code == "en"
        self[_LINE_END] = (END,)
        self._special: set[str] = set()
        """Chunks that are one with their neighbours, have another form, or may mark an item of a list."""

    def read(self, text: str) -> list[str]:
        """The keys of all sentences; `END` follows each sentence, and may also follow none."""
        return list(chain.from_iterable(map(self.__getitem__, self.chunks(text))))

    def chunks(self, text: str) -> list[str]:
        """What is between spaces, with marks for line ends; what belongs together is one chunk, and no line has a mark of a list."""
        if not text.isascii():
            text = _INSIDE.sub(lambda stop: f"{stop[1]} " if stop[1] else f" {_LINE_END} ", text)
        found = text.replace("\n", f" {_LINE_END} ").split()
        if not all(map(self.__contains__, found)):
            for chunk in found:
                self.get(chunk) or self.__missing__(chunk)
        if self._special.isdisjoint(found) and _IN_NUMBERS.search(text) is None:
            return found
        text = in_one_form(text).replace("per cent", "percent") if self._is_english else _IN_NUMBERS.sub("", text)
        text = _MARKERS.sub("", _BEFORE_HALF_OF_DAY.sub("", text))
        return text.replace("\n", f" {_LINE_END} ").split()

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        # Each key is one object for all texts, so that dictionaries need no look at its letters.
        keys = tuple(map(intern, " ".join(self._language.keys(readable(chunk))).split()))
        if _SPECIAL.match(chunk) or (self._is_english and has_other_form(chunk)):
            self._special.add(chunk)
        if self._ends(chunk):
            keys = (*keys, END)
        if len(chunk) <= _LONGEST:
            if len(self) >= _MAX_CHUNKS:
                self.clear()
                self._special.clear()
                self[_LINE_END] = (END,)
            self[chunk] = keys
        return keys

    def _ends(self, chunk: str) -> bool:
        if chunk[-1] in _FULL_STOPS or (
            chunk[-1] in "\u300d\u300f\uff09\u300b" and any(map(chunk.__contains__, _FULL_STOPS))
        ):
            return True
        match = _STOP.search(chunk)
        if match is None:
            return False
        word = _last_word(chunk[max(0, match.start() - _LONGEST_WORD) : match.start()])
        if match[0][0] != "." or not word:
            return True
        if word.isdigit():
            return not (self._language.has_ordinal_points and len(word) <= _LONGEST_ORDINAL)
        return not _is_shortened(word, self._language)


def written(text: str, language: Language, count: int) -> list[str]:
    """The sentences with keys of a `readable` text, of which a `SentenceReader` finds so many."""
    found = [one for one in split_sentences(text, language) if language.keys(one)]
    if len(found) == count:
        return found
    known = reader(language)
    sentences: list[list[str]] = [[]]
    has_keys = False
    for chunk in known.chunks(text):
        keys = known[chunk]
        if chunk != _LINE_END:
            sentences[-1].append(chunk)
        has_keys = has_keys or any(key != END for key in keys)
        if keys[-1:] == (END,):
            sentences = [*sentences, []] if has_keys else [*sentences[:-1], []]
            has_keys = False
    return [" ".join(chunks).strip(_EDGES) for chunks in sentences][:count] + [""] * (count - len(sentences))


def reader(language: Language) -> SentenceReader:
    """The one for all texts in this language."""
    if language.reader is None:
        language.reader = SentenceReader(language)
    known: SentenceReader = language.reader
    return known
