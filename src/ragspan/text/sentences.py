"""The sentences of texts: where they stand, their words and their keys.

Texts repeat their chunks; a chunk is what is between two spaces. A `SentenceReader` remembers for each chunk its keys, and
whether a sentence ends with it, so one look into a dictionary replaces the regular expressions for most of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from sys import intern
from typing import Final

from ragspan.text.keys import content_of, in_one_form, is_content, readable
from ragspan.text.languages import ENGLISH, WITHOUT_SPACES, Language
from ragspan.turns import give_turn

_FULL_STOPS = "\u3002\uff01\uff1f\uff0e\uff61\u0964\u0965\u061f\u06d4\u0589\u1362\u1367\u104b\u17d4\u17d5\u0f0d\u0f0e\u1803\u1809\ua4ff"
"""Those of other scripts end a sentence whatever follows; a part of a character class, as the next."""
_BULLETS = "•▪●◦‣"
_CLOSING = r"""[\u300d\u300f\uff09\u300b"')\]]{0,3}"""
_CHUNK = re.compile(
    rf"""\n | [{_BULLETS}] | [^\s{_FULL_STOPS}{_BULLETS}]*[{_FULL_STOPS}]+{_CLOSING}
    | [^\s{_BULLETS}]*?[{WITHOUT_SPACES}][.!?] | [^\s{_FULL_STOPS}{_BULLETS}]+""",
    re.VERBOSE,
)
_STOP = re.compile(r"""[.!?\u2026]["')\]*_»]{0,3}$""")
_OTHER_STOP = re.compile(rf"""[{_FULL_STOPS}]{_CLOSING}$|[{WITHOUT_SPACES}][.!?]$""")
_APART = re.compile(rf"[{_FULL_STOPS}{_BULLETS}{WITHOUT_SPACES}]")
"""A text without one of these has its chunks between spaces."""
_MAY_END = re.compile(r"""[.!?]["')\]*_]{0,3}(?!\S)|\n|\Z""")  # in ASCII; and in any text:
_MAY_END_ANYWHERE = re.compile(
    rf"""[.!?\u2026]["')\]*_»]{{0,3}}(?!\S)|[{_FULL_STOPS}]+{_CLOSING}|(?<=[{WITHOUT_SPACES}])[.!?]|[\n{_BULLETS}]|\Z"""
)
_MARKERS = r"[ \t]*(?:(?:[-*+>#]{1,6}|\(?\d{1,3}[.)]|\(?[^\W\d_]\))[ \t]+)"
"""Of an item of a list, at the beginning of a line."""
_AT_BEGINNING, _AT_LINES = re.compile(f"{_MARKERS}*"), re.compile(f"\n{_MARKERS}+")
_NUMBER_OF_ITEM = re.compile(r"\d{1,2}\.")
_INITIALS = re.compile(r"\d{0,2}[^\W\d_](?:\.[^\W\d_]){1,6}")
_IN_NUMBERS = re.compile("(?<=\\d)[ \u00a0\u202f](?=\\d{3}(?!\\d))")
_LONGEST_ORDINAL = 2
_EDGES = f" \t\r\n*_#|{_BULLETS}"
"""What is not a part of a sentence at its ends."""
_LONGEST_WORD = 12  # characters before a full stop that tell whether it ends a sentence
_JOINED = frozenset(
    half + mark
    for half in ("am", "pm", "a.m", "p.m", "AM", "PM", "A.M", "P.M", "cent")
    for mark in ("", *""". , ., ; .; : ! ? .? ) .) ). ), .), )., " ." ," ",""".split())  # noqa: SIM905  shorter
)
"""Chunks that may be joined with the one before them."""
_MAX_CHUNKS, _LONGEST = 1 << 16, 64
"""Chunks of one language that are remembered; then a reader forgets all of them. A longer one is hardly seen twice."""
_BREAKS = frozenset({"", "\n", *_BULLETS})
END: Final = "\n"  # ends a sentence among keys, of which none has a space
_LINE_END: Final = (END,)
_PAUSES = frozenset(',;:()[]"')


@dataclass(frozen=True, kw_only=True, slots=True)
class Sentence:
    """A sentence with its words and their keys."""

    text: str  # as it is written
    words: tuple[str, ...]
    keys: tuple[str, ...]  # what each of the words is compared by
    pauses: Mapping[int, str] = field(default_factory=dict)
    """Commas, colons, brackets and dashes, by the place of the word that follows."""


class SentenceReader(dict[str, tuple[str, ...]]):
    """Remembers chunks: for each the tuple of its content keys, with `END` where it ends a sentence.

    Safe from any thread: at worst, two threads read a chunk twice.
    """

    def __init__(self, language: Language) -> None:
        super().__init__(dict.fromkeys(("\n", *_BULLETS), _LINE_END))
        self._language = language
        self._words: dict[str, tuple[list[str], tuple[str, ...], str, str]] = {}
        """The words of chunks and their keys, with the marks before and after them that part a sentence."""

    def read(self, text: str) -> list[str]:
        """The content keys of all sentences of a `readable` text; `END` follows each sentence, and may also follow none."""
        # Most chunks are function words and have no keys.
        return list(chain.from_iterable(filter(None, map(self.__getitem__, self._chunks(text)))))

    def written(self, text: str, index: int) -> str:
        """Of the sentences with content of a `readable` text the one at this index, on one line."""
        chunks = [*self._chunks(text), "\n"]
        start, has_content = 0, False
        for at, keys in enumerate(map(self.__getitem__, chunks)):
            if not keys:
                continue
            has_content = has_content or keys[0] is not END
            if keys[-1] is END:
                if has_content and not index:
                    return " ".join(chunks[start : at + 1]).strip(_EDGES)
                index -= has_content
                start, has_content = at + 1, False
        return ""

    def sentence(self, text: str) -> Sentence:
        """A text that is one sentence, with its words."""
        known, words, keys, pauses = self._words, list[str](), list[str](), dict[int, str]()
        for chunk in self._chunks(readable(text)):
            said, own, before, after = known.get(chunk) or self._with_words(chunk)
            if before and words:
                pauses[len(words)] = before
            words += said
            keys += own
            if after:
                pauses[len(words)] = after
        return Sentence(text=text, words=tuple(words), keys=tuple(keys), pauses=pauses)

    def ends(self, before: str, stop: str) -> bool:
        """Whether a sentence ends with a stop: not with an abbreviation, an initial or a number of a list."""
        word = before.lstrip("([\"'")
        if stop[0] != "." or not word:
            return True
        if word.isdigit():
            return not (self._language.has_ordinal_points and len(word) <= _LONGEST_ORDINAL)
        if word.lower() in self._language.abbreviations:
            return False
        return not (word.isupper() if len(word) == 1 else "." in word and _INITIALS.fullmatch(word) is not None)

    def _chunks(self, text: str) -> list[str]:
        """The chunks of a text with each amount in one form, without the markers of lists."""
        is_english = self._language.code == "en"
        text = text if is_english else _IN_NUMBERS.sub("", text)
        text = text[_after_markers(text, 0) :]
        text = _AT_LINES.sub("\n", text) if "\n" in text else text
        chunks = _parted(text)
        return chunks if not is_english or _JOINED.isdisjoint(chunks) else _parted(in_one_form(text))

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        # Each chunk and key is one object for all texts, so that dictionaries need no look at its letters.
        chunk = intern(chunk)
        keys = tuple([intern(key) for key in map(self._language.key, self._tokens(chunk)) if is_content(key)])
        stop = None if chunk[-1].isalnum() or chunk[-1] in ",;:" else _STOP.search(chunk)
        if stop is not None:
            is_end = self.ends(chunk[max(0, stop.start() - _LONGEST_WORD) : stop.start()], stop[0])
        else:
            is_end = not chunk.isascii() and _OTHER_STOP.search(chunk) is not None
        keys = (*keys, END) if is_end else keys
        if len(chunk) <= _LONGEST:
            if len(self) >= _MAX_CHUNKS:
                self.clear()
                self._words.clear()
                self.update(dict.fromkeys(("\n", *_BULLETS), _LINE_END))
            self[chunk] = keys
        return keys

    def _tokens(self, chunk: str) -> list[str]:
        bare = chunk[:-1] if chunk[-1] in ".,;:!?" else chunk
        is_word = len(bare) <= _LONGEST and bare.isascii() and bare.isalpha()
        return [bare] if is_word else self._language.tokens(chunk)

    def _with_words(self, chunk: str) -> tuple[list[str], tuple[str, ...], str, str]:
        words = self._tokens(chunk)
        last = chunk[-2] if len(chunk) > 1 and chunk[-1] in ".!?" else chunk[-1]
        before, after = chunk[0] if chunk[0] in _PAUSES or chunk in {"-", "--"} else "", last if last in _PAUSES else ""
        found = words, tuple(map(self._language.key, words)), before, after
        if len(chunk) <= _LONGEST:
            self._words[chunk] = found
        return found


def _parted(text: str) -> list[str]:
    if not text.isascii() and _APART.search(text):
        return _CHUNK.findall(text)
    lines = text.split("\n") if "\n" in text else ()
    return [chunk for line in lines for chunk in (*line.split(), "\n")] or text.split()


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
    even, known = readable(text), reader(language)  # of the same length: it replaces characters one by one
    start = _after_markers(even, 0)
    for stop in (_MAY_END if even.isascii() else _MAY_END_ANYWHERE).finditer(even):
        at, end = stop.span()
        is_break = stop[0] in _BREAKS
        if at < start:
            continue
        if not is_break and stop[0][0] in ".!?\u2026" and (end == len(even) or even[end].isspace()):
            before = even[max(start, at - _LONGEST_WORD) : at].split()[-1:]
            if not even[at - 1 : at].isspace() and not known.ends("".join(before), stop[0]):
                continue
        piece = even[start : at if is_break else end]
        bare = piece.strip(_EDGES)
        if any(map(str.isalnum, bare)) and not _NUMBER_OF_ITEM.fullmatch(bare):
            begins = start + piece.index(bare)
            yield begins, begins + len(bare)
        start = _after_markers(even, end) if is_break else end


def split_sentences(text: str, language: Language = ENGLISH) -> Iterator[str]:
    """The sentences of a `readable` text, list markers left out, each with at least one letter or digit."""
    return (text[start:end] for start, end in places_of(text, language))


def content_in(sentences: Iterable[Sentence]) -> frozenset[str]:
    """The keys of all of their content words."""
    return content_of(chain.from_iterable(sentence.keys for sentence in sentences))


def _after_markers(text: str, at: int) -> int:
    """Where a line begins behind the markers of a list."""
    markers = _AT_BEGINNING.match(text, at)
    return markers.end() if markers else at
