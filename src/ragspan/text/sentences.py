"""The sentences of texts: where they stand, their words and their keys.

Texts repeat their chunks; a chunk is what is between two spaces. A `SentenceReader` remembers the keys of each chunk, so one look
into a dictionary replaces the regular expressions for most of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain
from sys import intern
from typing import NamedTuple

from ragspan.text.keys import WITHOUT_SPACES, in_one_form, is_content, readable
from ragspan.text.languages import ENGLISH, Language
from ragspan.turns import give_turn, with_turns

_FULL_STOPS = "\u3002\uff01\uff1f\uff0e\uff61\u0964\u0965\u061f\u06d4\u0589\u1362\u1367\u104b\u17d4\u17d5\u0f0d\u0f0e\u1803\u1809\ua4ff"
"""Those of other scripts end a sentence whatever follows; a part of a character class, as the next."""
_BULLETS = "•▪●◦‣"
_STOPS = f".!?\u2026\n{_BULLETS}{_FULL_STOPS}"
_CLOSING = r"""[\u300d\u300f\uff09\u300b"')\]]{0,3}"""
_MARKERS = r"[ \t]*(?:(?:[-*+>#]{1,6}|\(?\d{1,3}[.)]|\(?[^\W\d_]\))[ \t]+)"
"""Of an item of a list, at the beginning of a line."""
_AT_BEGINNING = re.compile(f"{_MARKERS}*")
_NUMBER_OF_ITEM, _LONGEST_NUMBER = re.compile(r"\d{1,2}\."), 3
_IN_NUMBERS = re.compile("(?<=\\d)[ \u00a0\u202f](?=\\d{3}(?!\\d))")
_EDGES = f" \t\r\n*_#|{_BULLETS}"
"""What is not a part of a sentence at its ends."""
_SEVERAL, _MAY_BE_JOINED, _AROUND = " ", frozenset({"am", "pm", "a.m", "p.m", "cent"}), '.,;:!?()"'
"""In place of the keys of a chunk that has several or may belong to the number before it; such chunks, and marks around them."""
_MOST_KEYS, _MOST_WORDS, _LONGEST = 1 << 16, 1 << 14, 64
"""Chunks of one language whose content keys and whose words are remembered; then all are forgotten. A longer one is hardly seen twice."""
_PAUSES = frozenset(',;:()[]"')
_MANY = 200  # chunks of a sentence, among which others may get a turn


class Sentence(NamedTuple):
    """A sentence with its words and their keys."""

    text: str  # as it is written
    words: tuple[str, ...]
    keys: tuple[str, ...]  # what each of the words is compared by
    pauses: Mapping[int, str]
    """Commas, colons, brackets and dashes, by the place of the word that follows."""


class SentenceReader(dict[str, str]):
    """Remembers chunks of one language: for each its content key; empty for most, which are function words.

    Safe from any thread: at worst, two threads read a chunk twice.
    """

    def __init__(self, language: Language) -> None:
        self._language, self._is_english = language, language.code == "en"
        self._words: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, str] | None]] = {}
        """The words of chunks and their keys, with the marks before and after them that part a sentence."""

    def with_content(self, sentences: Iterable[str]) -> list[tuple[str, tuple[str, ...]]]:
        """Those of some `readable` sentences that have content, with their content keys."""
        found, read, is_english = [], self.__getitem__, self._is_english
        for text in sentences:
            chunks = (text if is_english else self._in_one_form(text)).split()
            keys = tuple(filter(None, map(read, chunks if len(chunks) < _MANY else with_turns(chunks))))
            if _SEVERAL in keys:
                known = [(chunk, self[chunk]) for chunk in self._in_one_form(text).split()]
                parts = [self._read(chunk) if key == _SEVERAL else [key] for chunk, key in known if key]
                keys = tuple(chain.from_iterable(parts))
            if keys:
                found.append((text, keys))
        return found

    def sentence(self, text: str) -> Sentence:
        """A `readable` text that is one sentence, with its words."""
        words, keys, pauses = list[str](), list[str](), dict[int, str]()
        for chunk in self._in_one_form(text).split():
            said, compared, marks = self._words.get(chunk) or self._with_words(chunk)
            if marks and marks[0] and words:
                pauses[len(words)] = marks[0]
            words += said
            keys += compared
            if marks and marks[1]:
                pauses[len(words)] = marks[1]
        return Sentence(text, tuple(words), tuple(keys), pauses)

    def _in_one_form(self, text: str) -> str:
        """The text with each amount as one chunk."""
        return in_one_form(text) if self._is_english else _IN_NUMBERS.sub("", text)

    def __missing__(self, chunk: str) -> str:
        if len(chunk) > _LONGEST:
            return _SEVERAL
        if len(self) >= _MOST_KEYS:
            self.clear()
        keys = self._read(chunk)
        is_plain = len(keys) <= 1 and chunk.strip(_AROUND).lower() not in _MAY_BE_JOINED
        self[intern(chunk)] = found = "".join(keys) if is_plain else _SEVERAL
        return found

    def _read(self, chunk: str) -> list[str]:
        # Each key is one object for all texts, so that dictionaries need no look at its letters.
        tokens = with_turns(self._tokens(chunk))
        return [intern(key) for key in map(self._language.key, tokens) if is_content(key)]

    def _tokens(self, chunk: str) -> list[str]:
        bare = chunk[:-1] if chunk[-1] in ".,;:!?" else chunk
        is_word = len(bare) <= _LONGEST and bare.isascii() and bare.isalpha()
        return [bare] if is_word else self._language.tokens(chunk)

    def _with_words(self, chunk: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, str] | None]:
        give_turn()
        words = tuple(self._tokens(chunk))
        last = chunk[-2] if len(chunk) > 1 and chunk[-1] in ".!?" else chunk[-1]
        before, after = chunk[0] if chunk[0] in _PAUSES or chunk in {"-", "--"} else "", last if last in _PAUSES else ""
        found = words, tuple(map(self._language.key, words)), (before, after) if before or after else None
        if len(self._words) >= _MOST_WORDS:
            self._words.clear()
        if len(chunk) <= _LONGEST:
            self._words[chunk] = found
        return found


@cache
def _ends_in(language: Language, stops: str) -> re.Pattern[str]:
    """Where sentences of a language end: at breaks and full stops, but for abbreviations, initials and its ordinal numbers."""
    abbreviations: dict[int, list[str]] = {}  # an expression that looks behind has one length
    for word in language.abbreviations:
        abbreviations.setdefault(len(word), []).extend(map(re.escape, (word, word.title())))
    kept = [rf"\b(?:{'|'.join(words)})" for words in abbreviations.values()]
    kept += [r"[\s(\[\"'][A-Z\u00c0-\u00deА-Я]", r"^[A-Z]", r"\.[^\W\d_]"]
    kept += [r"[\s(]\d", r"[\s(]\d\d", r"^\d", r"^\d\d"] if language.has_ordinal_points else []
    stop = "".join(rf"(?<!{word}\.)" for word in kept)
    # Quick: a word that is longer than all abbreviations is none.
    stop = rf"(?:(?<=[^\W\d_]{{{max(abbreviations, default=1) + 1}}}.)|{stop})"
    breaks = rf"(?<=[\n{_BULLETS}])"
    others = "" if stops.isascii() else rf"(?<=[{WITHOUT_SPACES}].)|(?<=[{_FULL_STOPS}])[{_FULL_STOPS}]*{_CLOSING}|"
    return re.compile(rf"""([{stops}](?:{breaks}|{others}{stop}["')\]*_»]{{0,3}}(?!\S)))(?:{breaks}(?:{_MARKERS})+)?""")


reader = cache(SentenceReader)
"""The one for all texts in a language."""


def read_sentence(text: str, language: Language = ENGLISH) -> Sentence:
    """A `readable` sentence with its words."""
    give_turn()
    return reader(language).sentence(text)


def places_of(text: str, language: Language = ENGLISH) -> Iterator[tuple[int, int]]:
    """Where each sentence of a text begins and ends, in characters of the text as it is, `readable` or not.

    A sentence ends after `.`, `!` or `?` before a space, after the full stops of other scripts, at a line break, and before
    a bullet; not after an abbreviation, an initial or a list number. Each has at least one letter or digit.
    """
    even, end = readable(text), 0  # of the same length: it replaces characters one by one
    for sentence in split_sentences(even, language):
        begins = even.index(sentence, end)
        end = begins + len(sentence)
        yield begins, end


def split_sentences(text: str, language: Language = ENGLISH) -> Iterator[str]:
    """The sentences of a `readable` text, list markers left out, each with at least one letter or digit."""
    markers = _AT_BEGINNING.match(text)
    start = markers.end() if markers else 0
    # Where a text has full stops alone, they are found without a look at each character.
    stops = _STOPS if not text.isascii() else ".!?\n" if any(map(text.__contains__, "!?\n")) else "."
    for stop in with_turns(chain(_ends_in(language, stops).finditer(text, start), [None])):
        bare = text[start : stop.end(1) if stop else None].strip(_EDGES)
        if (bare[:1].isalnum() or any(map(str.isalnum, bare))) and not (
            len(bare) <= _LONGEST_NUMBER and _NUMBER_OF_ITEM.fullmatch(bare)
        ):
            yield bare
        start = stop.end() if stop else start
