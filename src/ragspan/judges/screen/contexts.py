"""The contexts of a record: their sentences as keys, read once and kept by their text.

What is read depends on the text and its language alone, so a kept context scores like a new one. There is no lock that a fork
could leave locked; at worst, two threads read a context twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from functools import reduce
from itertools import islice, pairwise
from operator import or_
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ragspan.judges.screen.structured import Flag, read_structure
from ragspan.text.keys import readable
from ragspan.text.languages import ENGLISH, Language, characters_read
from ragspan.text.lazy import Lazy
from ragspan.text.sentences import END, reader, written
from ragspan.text.turns import turn

MAX_CHARACTERS = 80_000
"""Characters of contexts that are read for one record; long contexts give way first."""
MAX_CONTEXTS = 1000
"""Contexts that are kept separate; beyond that, neighbours count as one."""
_BYTES, _BYTES_A_CHARACTER = 2_000, 36
"""The memory of a context with a few facts about its sentences."""

REFERRING = frozenset({"it", "they", "he", "she", "them", "him", "this", "these", "its", "their", "his", "her"})
_OPENING = 4
"""Words of a sentence among which a pronoun means something in the sentence before: "in 1911 it was stolen"."""

Pair: TypeAlias = tuple[str, str]
Run: TypeAlias = tuple[str, str, str]
_T = TypeVar("_T")


class Place(NamedTuple):
    """Where a sentence is."""

    context: int
    sentence: int


class Context:
    """One context as it is compared: the keys of its sentences, of which `END` follows each."""

    def __init__(
        self,
        keys: Sequence[str],
        *,
        language: Language = ENGLISH,
        text: str = "",
        sentences: Sequence[str] | None = None,
        flags: Sequence[Flag] | None = None,
    ) -> None:
        self.keys: list[str] = []
        """The keys of the words of all sentences, in order."""
        self._ends = [0]
        self.places: dict[str, int] = {}
        """For each key the sentences that have it, as the bits of an integer."""
        self._language, self._text, self._sentences = language, text, sentences
        self.structured = flags is not None
        """True for JSON: its sentences are statements made of paths and values."""
        self.flags = tuple(flags or ())
        self._pairs: frozenset[Pair] | None = None
        self._facts: dict[tuple[Callable[..., Any], int], Any] = {}
        turn()
        bit, places, held, start = 1, self.places, self.places.get, 0
        ended = [*keys, END]
        while start < len(ended):
            end = ended.index(END, start)
            if end > start:
                sentence = ended[start:end]
                for key in sentence:
                    places[key] = held(key, 0) | bit
                self.keys += sentence
                self._ends.append(len(self.keys))
                bit <<= 1
            start = end + 1

    def __len__(self) -> int:
        """How many sentences it has."""
        return len(self._ends) - 1

    def keys_of(self, index: int) -> list[str]:
        """Those of a sentence, in order."""
        return self.keys[self._ends[index] : self._ends[index + 1]]

    def content_of(self, index: int) -> frozenset[str]:
        """The content among the keys of a sentence."""
        return self._language.content_of(self.keys_of(index))

    @Lazy
    def referring(self) -> int:
        """The sentences with a pronoun among their first words, as bits."""
        having = reduce(or_, [self.places[word] for word in self.held(REFERRING)], 0)
        starts = self._ends
        return sum(
            [
                1 << at
                for at in numbers_of(having)
                if not REFERRING.isdisjoint(self.keys[starts[at] : starts[at] + _OPENING])
            ]
        )

    def held(self, keys: frozenset[str]) -> AbstractSet[str]:
        """Those of the keys that it has; this takes as many steps as the smaller set has keys."""
        return self.places.keys() & keys if len(keys) < len(self.places) else keys.intersection(self.places)

    def fact(self, find: Callable[[str, Language], _T], index: int) -> _T:
        """What `find` makes of a sentence and its language; it is found once, and kept as long as the context is."""
        known = find, index
        fact: _T | None = self._facts.get(known)
        if fact is None:
            fact = self._facts[known] = find(self.text_of(index), self._language)
        return fact

    def shared_pairs(self, wanted: frozenset[Pair]) -> frozenset[Pair]:
        """The pairs of keys that follow each other in it, across sentences as well."""
        if self._pairs is None:  # those of a context that is seen again are kept
            self._pairs = frozenset[Pair]()
            return wanted.intersection(pairwise(self.keys))
        if not self._pairs:
            self._pairs = frozenset(pairwise(self.keys))
        return wanted & self._pairs

    def shared_runs(self, wanted: frozenset[Run]) -> frozenset[Run]:
        """The runs of three keys that it has, across sentences as well."""
        return wanted.intersection(zip(self.keys, islice(self.keys, 1, None), islice(self.keys, 2, None), strict=False))

    def text_of(self, index: int) -> str:
        """A sentence, as it is written, on one line."""
        if self._sentences is None:
            self._sentences = written(self._text, self._language, len(self))
        return " ".join(self._sentences[index].split())

    def spelling(self, key: str) -> str:
        """A key that it has as the last sentence with it writes it."""
        tokens = self._language.tokens(self.text_of(self.places[key].bit_length() - 1))
        return next((token for token in tokens if self._language.key(token) == key), key)


def numbers_of(bits: int) -> list[int]:
    """The places of the bits that are set."""
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found


class ContextReader:
    """Reads contexts, and keeps the last ones, because the same documents are retrieved again and again."""

    def __init__(self, max_bytes: int = 32 << 20) -> None:
        self._max_bytes = max_bytes
        self._room = max_bytes // 2
        # Two generations: a context that was used since the younger one began survives when the next one begins.
        self._younger: dict[tuple[str, str], Context] = {}
        self._older: dict[tuple[str, str], Context] = {}

    def __len__(self) -> int:
        return len(self._younger.keys() | self._older.keys())

    def __reduce__(self) -> tuple[type[ContextReader], tuple[int]]:
        """A copy in another process begins with none."""
        return ContextReader, (self._max_bytes,)

    def read(self, texts: Sequence[str], language: Language = ENGLISH) -> tuple[Context, ...]:
        """One for each of the texts, which are `within_bounds`."""
        return tuple([self._one(text, language) for text in texts])

    def _one(self, text: str, language: Language) -> Context:
        turn()
        if not language.is_shared:
            return _read(text, language)
        known = language.code, text
        context = self._younger.get(known)
        if context is None:
            context = self._older.get(known) or _read(text, language)
            size = _BYTES + _BYTES_A_CHARACTER * len(text)
            self._room -= size
            if self._room < 0:
                self._older, self._younger, self._room = self._younger, {}, self._max_bytes // 2 - size
            self._younger[known] = context
        return context


def told_apart(texts: Sequence[str]) -> Sequence[str]:
    """The texts; neighbours are joined if there are more than `MAX_CONTEXTS`."""
    at_a_time = -(-len(texts) // MAX_CONTEXTS)
    if at_a_time <= 1:
        return texts
    return ["\n".join(texts[at : at + at_a_time]) for at in range(0, len(texts), at_a_time)]


def within_bounds(texts: Sequence[str]) -> list[str]:
    """The texts as far as they are read: separate ones, and `MAX_CHARACTERS` in all."""
    texts = told_apart(texts)
    return [text[:share] for text, share in zip(texts, characters_read(texts, MAX_CHARACTERS), strict=True)]


def _read(text: str, language: Language) -> Context:
    even = readable(text).rstrip()
    structure = read_structure(even)
    if structure is None:
        return Context(reader(language).read(even), language=language, text=even)
    stated = [(line, language.keys(line)) for line in structure.statements]
    stated = [one for one in stated if one[1]]
    return Context(
        [key for _, keys in stated for key in (*keys, END)],
        language=language,
        sentences=[line for line, _ in stated],
        flags=structure.flags,
    )
