"""The contexts of a record as they are compared: their sentences as keys, read once and kept by their text.

Guarantees:
- What is read of a text depends on nothing but the text and its language, so that a context that was kept scores as one that was not.
- No lock, so that a fork leaves none locked. What two threads do at once costs no more than doing it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar

from ragspan.judges.overlap.languages import ENGLISH, Language, characters_read
from ragspan.judges.overlap.reading import reader
from ragspan.judges.overlap.sentences import BULLETS, FULL_STOPS, split_sentences
from ragspan.judges.overlap.structured import Flag, read_structure
from ragspan.judges.overlap.text import readable

MAX_CHARACTERS = 80_000
"""Characters of contexts that are read for one record; long contexts give way first."""
MAX_CONTEXTS = 1000
"""Contexts that are told apart; beyond that, neighbours count as one."""
MAX_SENTENCES = 4096
"""Sentences of contexts that are told apart; beyond that, neighbours count as one."""

Pair: TypeAlias = tuple[str, str]
_T = TypeVar("_T")


class Place(NamedTuple):
    """Where a sentence is."""

    context: int
    sentence: int


@dataclass(frozen=True, slots=True)
class ContextSentence:
    """One sentence of a context."""

    text: str
    """As it is written, list markers left out."""
    words: tuple[str, ...]
    keys: tuple[str, ...]
    """What each of the words is compared by."""
    language: Language = ENGLISH
    """As which it was read."""


class Context:
    """One context as it is compared."""

    __slots__ = (
        "_facts",
        "_language",
        "_pairs",
        "_sentence",
        "_times_paired",
        "content",
        "flags",
        "keys",
        "most_breaks",
        "places",
        "structured",
    )

    def __init__(
        self,
        sentence: Callable[[int], str],
        keys: Sequence[Sequence[str]],
        *,
        language: Language = ENGLISH,
        structured: bool = False,
        flags: Sequence[Flag] = (),
        most_breaks: int = 0,
    ) -> None:
        self._sentence = sentence  # as it is written, which is asked of few
        self._language = language
        self.keys = keys
        """Of the words of each sentence, in order."""
        self.content = [language.content_of(sentence) for sentence in keys]
        """Of each sentence the keys with content, each once."""
        self.places = _places(self.content)
        """For each key with content the sentences that have it, as the bits of an integer."""
        self.structured = structured
        """True for JSON: its sentences are statements made of paths and values."""
        self.flags = tuple(flags)
        self.most_breaks = most_breaks
        """No fewer than the places where its text may be cut into sentences."""
        self._facts: dict[tuple[Callable[..., Any], int], Any] = {}
        self._pairs: frozenset[Pair] | None = None
        self._times_paired = 0

    def all_keys(self) -> Iterator[str]:
        """The keys of all sentences, in order."""
        return chain.from_iterable(self.keys)

    def all_words(self) -> Iterator[str]:
        """The words of all sentences, as they are written."""
        return chain.from_iterable(map(self._language.tokens, map(self._sentence, range(len(self.keys)))))

    def sentence(self, index: int) -> ContextSentence:
        text = self._sentence(index)
        words = tuple(self._language.tokens(text))
        return ContextSentence(text=text, words=words, keys=tuple(self.keys[index]), language=self._language)

    def read_sentence(self, index: int) -> ContextSentence:
        """The sentence with its words, kept, because one may be as long as the context."""
        return self.fact(_itself, index)

    def fact(self, find: Callable[[ContextSentence], _T], index: int) -> _T:
        """What `find` says of a sentence; found once, and kept as long as the context is.

        `find` is a module's function, and what it returns depends on the sentence alone.
        """
        known = find, index
        fact: _T | None = self._facts.get(known)
        if fact is None:
            fact = self._facts[known] = find(self.sentence(index))
        return fact

    def held(self, keys: frozenset[str]) -> AbstractSet[str]:
        """Those of the keys with content that it has, in as many steps as the fewer of both are."""
        return keys & self.places.keys() if len(keys) < len(self.places) else keys.intersection(self.places)

    def shared_pairs(self, wanted: frozenset[Pair]) -> set[Pair]:
        """Those of the pairs of keys that follow each other in it, across sentences as well."""
        if self._pairs is None:
            self._times_paired += 1
            if self._times_paired < _OFTEN:
                return set(wanted.intersection(pairwise(self.all_keys())))
            self._pairs = frozenset(pairwise(self.all_keys()))
        return set(wanted & self._pairs)

    def joined(self, size: int) -> Context:
        """The same with so many neighbours as one sentence."""
        groups = [slice(at, at + size) for at in range(0, len(self.keys), size)]
        places = range(len(self.keys))
        return Context(
            lambda index: " ".join(map(self._sentence, places[groups[index]])),
            [list(chain.from_iterable(self.keys[group])) for group in groups],
            language=self._language,
            structured=self.structured,
            flags=self.flags,
        )


def _itself(sentence: ContextSentence) -> ContextSentence:
    return sentence


_OFTEN = 2
"""A set of all pairs pays from the second question on, and most contexts are asked but once."""


def _places(sentences: Sequence[frozenset[str]]) -> dict[str, int]:
    places: dict[str, int] = {}
    bit = 1
    for content in sentences:
        for word in content:
            places[word] = places.get(word, 0) | bit
        bit <<= 1
    return places


class ContextReader:
    """Reads contexts, and keeps those that it read last, because the same documents are retrieved again and again."""

    def __init__(self, max_bytes: int = 32 << 20) -> None:
        self._max_bytes = max_bytes
        self._room = max_bytes // 2
        # Two generations: what was asked for since the younger one began survives when the next one begins.
        self._younger: dict[tuple[str, str], Context] = {}
        self._older: dict[tuple[str, str], Context] = {}

    def __len__(self) -> int:
        return len(self._younger.keys() | self._older.keys())

    def read(self, texts: Sequence[str], language: Language = ENGLISH) -> tuple[Context, ...]:
        """One for each text or, of more than `MAX_CONTEXTS`, for several, as far as `MAX_CHARACTERS` allow."""
        texts = told_apart(texts)
        shares = characters_read(texts, MAX_CHARACTERS)
        whole = sum(shares) or 1
        contexts = [
            self._one(text[:share], language, MAX_SENTENCES * share // whole)
            for text, share in zip(texts, shares, strict=True)
        ]
        joined = -(-sum(len(context.keys) for context in contexts) // MAX_SENTENCES)
        return tuple(contexts) if joined <= 1 else tuple(context.joined(joined) for context in contexts)

    def _one(self, text: str, language: Language, most: int) -> Context:
        """The context; of plain text with more than `most` sentences the last ones count as one."""
        known = language.code, text
        context = self._younger.get(known)
        if context is not None and context.most_breaks < most:
            return context
        context = self._older.get(known)
        if context is None or context.most_breaks >= most:
            context = _read(text, language, most)
        if context.most_breaks < most:
            self._keep(known, context)
        return context

    def _keep(self, known: tuple[str, str], context: Context) -> None:
        size = _BYTES + _BYTES_A_CHARACTER * len(known[1])
        self._room -= size
        if self._room < 0:
            self._older, self._younger, self._room = self._younger, {}, self._max_bytes // 2 - size
        self._younger[known] = context


_BYTES, _BYTES_A_CHARACTER = 2_000, 36
"""What a context takes, with its pairs and a few facts about its sentences."""


def told_apart(texts: Sequence[str]) -> Sequence[str]:
    """The texts, of which several are one where there are more than `MAX_CONTEXTS`."""
    at_a_time = -(-len(texts) // MAX_CONTEXTS)
    if at_a_time <= 1:
        return texts
    return ["\n".join(texts[at : at + at_a_time]) for at in range(0, len(texts), at_a_time)]


def read_contexts(texts: Sequence[str], language: Language = ENGLISH) -> tuple[Context, ...]:
    """The contexts of one record."""
    return ContextReader().read(texts, language)


def _read(text: str, language: Language, most: int) -> Context:
    text = readable(text)
    structure = read_structure(text)
    if structure is not None:
        statements = [sentence for one in structure.statements for sentence in split_sentences(one, language=language)]
        return _context(statements, language, structured=True, flags=structure.flags)
    read = reader(language).read(text, most)
    if read is not None:
        return Context(read.text, read.keys, language=language, most_breaks=read.most_breaks)
    sentences = split_sentences(text, most, language)
    return _context(sentences, language, most_breaks=sum(map(text.count, _BREAKS)))


def _context(sentences: Iterable[str], language: Language, **fields: Any) -> Context:
    read = [(sentence, keys) for sentence in sentences if (keys := language.keys(sentence))]
    texts = [sentence for sentence, _ in read]
    return Context(texts.__getitem__, [keys for _, keys in read], language=language, **fields)


_BREAKS = f".!?…\n{BULLETS}{FULL_STOPS}"
