"""The contexts of a record: their sentences as keys, read once and kept by their text, and an index of all of them.

What is read depends on the text and its language alone, so a kept context scores like a new one. There is no lock that a fork
could leave locked; at worst, two threads read a context twice.

For each word, an integer has one bit for each sentence. Counts are kept as planes: the bits of plane n count 2**n. So a word
costs a few operations, however many sentences there are.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import NamedTuple

from ragspan.judges.screen.facts import Facts
from ragspan.judges.screen.flags import Flag, read_structure
from ragspan.text.keys import content_of, is_number, readable
from ragspan.text.languages import Language, characters_read
from ragspan.text.lazy import Lazy
from ragspan.text.sentences import END, read_sentence, reader
from ragspan.turns import give_turn

MAX_CHARACTERS = 80_000
"""Characters of contexts that are read for one record; long contexts give way first."""
MAX_CONTEXTS = 1000
"""Contexts that are kept separate; beyond that, neighbours count as one."""
_ROOM, _BYTES, _BYTES_A_CHARACTER = 16 << 20, 2_000, 36
"""The memory of a generation of kept contexts, and that of a context with a few sentences that were taken apart."""
_REFERRING = frozenset({"it", "they", "he", "she", "them", "him", "this", "these", "its", "their", "his", "her"})
_GAP = 2
"""Numbers left free between two contexts, so that no window of three sentences spans both."""
_BEST, _CANDIDATES = 4, 3
"""Sentences that a claim is compared with, and in which a run of its words is looked for."""


class Context:
    """One context as it is compared: the keys of its sentences, and for each key the sentences that have it."""

    def __init__(self, text: str, language: Language) -> None:
        give_turn()
        even, known = readable(text), reader(language)
        structure = read_structure(even)
        self.structured = structure is not None
        """True for JSON: its sentences are statements made of paths and values."""
        self.flags: Sequence[Flag] = structure[1] if structure else ()
        self._text, self._language = even, language
        lines = [
            (line, [key for key in known.read(line) if key != END]) for line in (structure[0] if structure else ())
        ]
        self._stated = [line for line, keys in lines if keys]
        self._facts: dict[int, Facts] = {}
        self._lines: dict[int, str] = {}
        ended = [key for _, keys in lines for key in (*keys, END)] if structure else [*known.read(even), END]
        places: defaultdict[str, int] = defaultdict(int)
        bit, start, ends, words = 1, 0, [0], list[str]()
        while start < len(ended):
            end = ended.index(END, start)
            if end > start:
                sentence = ended[start:end]
                for key in sentence:
                    places[key] |= bit
                words += sentence
                ends.append(len(words))
                bit <<= 1
            start = end + 1
        # Tuples and dictionaries of plain values cost the garbage collector nothing.
        self.keys, self._ends = tuple(words), tuple(ends)
        """The keys of the words of all sentences, in order."""
        self.places = dict(places)
        """For each key the sentences that have it, as the bits of an integer."""

    def __len__(self) -> int:
        """How many sentences it has."""
        return len(self._ends) - 1

    def keys_of(self, index: int) -> tuple[str, ...]:
        """Those of a sentence, in order."""
        return self.keys[self._ends[index] : self._ends[index + 1]]

    def line(self, index: int) -> str:
        """The keys of a sentence, between spaces."""
        found = self._lines.get(index)
        if found is None:
            found = self._lines[index] = f" {' '.join(self.keys_of(index))} "
        return found

    @Lazy
    def _texts(self) -> Sequence[str]:
        found = self._stated if self.structured else reader(self._language).written(self._text)
        return [*found, *[""] * (len(self) - len(found))]

    def text_of(self, index: int) -> str:
        """A sentence, as it is written, on one line."""
        return self._texts[index]

    def facts(self, index: int) -> Facts:
        """A sentence of English taken apart; it is kept as long as the context is."""
        found = self._facts.get(index)
        if found is None:
            found = self._facts[index] = Facts(read_sentence(self.text_of(index), self._language))
        return found


class ContextReader:
    """Reads contexts, and keeps the last ones, because the same documents are retrieved again and again."""

    def __init__(self) -> None:
        # Two generations: a context that was used since the younger one began survives when the next one begins.
        self._younger: dict[tuple[Language, str], Context] = {}
        self._older: dict[tuple[Language, str], Context] = {}
        self._room = _ROOM

    def __reduce__(self) -> tuple[type[ContextReader], tuple[()]]:
        """A copy in another process begins with none."""
        return ContextReader, ()

    def read(self, text: str, language: Language) -> Context:
        """A context `within_bounds`."""
        known = language, text
        context = self._younger.get(known)
        if context is None:
            context = self._older.get(known) or Context(text, language)
            size = _BYTES + _BYTES_A_CHARACTER * len(text)
            self._room -= size
            if self._room < 0:
                self._older, self._younger, self._room = self._younger, {}, _ROOM - size
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


class Place(NamedTuple):
    """Where a sentence is."""

    context: int
    sentence: int


class Near:
    """A context sentence beside a claim.

    Args:
        context: it stands there.
        place: where it stands.
        share: the share of the claim's content words, by weight, that it holds, itself or by an opposite, 0..1.
    """

    def __init__(self, context: Context, place: Place, share: float) -> None:
        self.place, self.share, self._context = place, share, context
        self.keys = context.keys_of(place.sentence)

    @Lazy
    def facts(self) -> Facts:
        return self._context.facts(self.place.sentence)

    @Lazy
    def carried(self) -> frozenset[str]:
        """The content of the sentence before, where it has a pronoun that may mean something there."""
        refers = self.place.sentence and not _REFERRING.isdisjoint(self.keys)
        return content_of(self._context.keys_of(self.place.sentence - 1) if refers else ())


class Index(dict[str, int]):
    """For each word the sentences of all contexts that have it, as the bits of an integer."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        super().__init__()
        self.contexts = contexts
        self._firsts: list[int] = []
        self._prose = number = 0
        for context in contexts:
            number += _GAP
            self._firsts.append(number)
            self._prose |= 0 if context.structured else ((1 << len(context)) - 1) << number
            number += len(context)

    def __missing__(self, word: str) -> int:
        self.look_up({word})
        return self[word]

    def look_up(self, words: Iterable[str]) -> None:
        """Find many words at once, which is faster than one after the other."""
        found = dict.fromkeys(words, 0)
        for first, context in zip(self._firsts, self.contexts, strict=True):
            places = context.places
            for word in places.keys() & found.keys():
                found[word] |= places[word] << first
        self.update(found)

    def place(self, number: int) -> Place:
        """Where the sentence with this number is."""
        # A window may begin before the first sentence of its context.
        context = bisect_right(self._firsts, number + _GAP) - 1
        return Place(context, number - self._firsts[context])

    def keys_at(self, place: Place) -> tuple[str, ...]:
        return self.contexts[place.context].keys_of(place.sentence)

    def text_at(self, place: Place) -> str:
        return self.contexts[place.context].text_of(place.sentence)

    def best_window(self, words: Iterable[str]) -> tuple[int, int | None]:
        """The most of these keys that three consecutive sentences of one context hold, and the index of that context."""
        planes: list[int] = []
        for word in words:
            if sentences := self[word]:
                _count(planes, sentences | sentences >> 1 | sentences >> 2)
        most, best = _most(planes)
        return (most, self.place(best).context) if most else (0, None)

    def closest(self, words: Iterable[str], most: int = 1) -> list[Place]:
        """The sentences that hold most of these keys, the best first, of equals the first."""
        planes: list[int] = []
        for word in words:
            _count(planes, self[word])
        return [self.place(number) for _, number in _best_of(planes, most)]

    def covered(self, keys: Sequence[str]) -> int:
        """How many of the words of a claim are in a run of three that a sentence has as well."""
        found: set[int] = set()
        bits = [self[key] for key in keys]
        for at in range(len(keys) - 2):
            having = bits[at] & bits[at + 1] & bits[at + 2]
            if having:
                run = f" {keys[at]} {keys[at + 1]} {keys[at + 2]} "
                if any(run in self._line(number) for number in islice(numbers_of(having), _CANDIDATES)):
                    found.update((at, at + 1, at + 2))
        return len(found)

    def verbatim(self, keys: Sequence[str]) -> Place | None:
        """Where a context says a claim word for word."""
        having = -1 if keys else 0
        for key in keys:
            having &= self[key]
            if not having:
                return None
        line, numbers = f" {' '.join(keys)} ", islice(numbers_of(having), _CANDIDATES)
        return next((self.place(number) for number in numbers if self._line(number) == line), None)

    def near(self, content: Collection[str], opposites: Iterable[tuple[str, str]], least: float) -> list[Near]:
        """The few sentences of prose that hold most of some words, or their opposites, the best first; rare words count more.

        There are none if no sentence can hold the share `least` of them.
        """
        pairs = list(opposites)
        self.look_up({other for _, other in pairs}.difference(self))
        held = {word: self[word] for word in sorted(content)}
        weights = {word: self._weight(word) for word in held}
        total = sum(weights.values()) or 1
        for word, other in pairs:
            held[word] |= self[other]
        if sum(weights[word] for word, bits in held.items() if bits) < least * total:
            return []
        planes: list[int] = []
        for word, bits in held.items():
            # What a sentence with a pronoun speaks of may stand in the one before.
            carried = bits << 1 & self._referring if bits else 0
            _count(planes, (bits | carried) & self._prose, weights[word])
        best = [(self.place(number), weight / total) for weight, number in _best_of(planes, _BEST)]
        return [Near(self.contexts[place.context], place, share) for place, share in best]

    @Lazy
    def _referring(self) -> int:
        """The sentences with a pronoun, as bits."""
        self.look_up(_REFERRING)
        return reduce(or_, map(self.__getitem__, _REFERRING))

    def _line(self, number: int) -> str:
        """The keys of a sentence, between spaces."""
        context = bisect_right(self._firsts, number) - 1
        return self.contexts[context].line(number - self._firsts[context])

    def _weight(self, word: str) -> int:
        """How much a word counts, in eighths: less, the more sentences have it."""
        if is_number(word) or len(word) == 1 or word == "include":  # that stands for several keys
            return 2 if is_number(word) else 0
        return round(8 / (1 + math.log(max(1, (self[word] & self._prose).bit_count()))))


def numbers_of(bits: int) -> Iterator[int]:
    """The places of the bits that are set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def _count(planes: list[int], bits: int, weight: int = 1) -> None:
    """Add the weight to the count of each of the bits."""
    plane = 0
    while weight:
        carried, at = bits if weight & 1 else 0, plane
        while carried:
            if at >= len(planes):
                planes.extend([0] * (at + 1 - len(planes)))
            planes[at], carried = planes[at] ^ carried, planes[at] & carried
            at += 1
        weight >>= 1
        plane += 1


def _best_of(planes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """The highest counts with the numbers of their bits, of equals the first."""
    among = -1
    for _ in range(most):
        count, best = _most(planes, among)
        if not count:
            return
        yield count, best
        among &= ~(1 << best)


def _most(planes: Sequence[int], among: int = -1) -> tuple[int, int]:
    """The highest count among these bits, and the number of the first bit that has it; `(0, -1)` where all are 0."""
    most, best = 0, among
    for plane in range(len(planes) - 1, -1, -1):
        if planes[plane] & best:
            best &= planes[plane]
            most += 1 << plane
    return (most, (best & -best).bit_length() - 1) if most else (0, -1)
