"""The contexts of a record: their sentences as keys, read once and kept by their text, and an index of all of them.

What is read depends on the text and its language alone, so a kept context scores like a new one. There is no lock that a fork
could leave locked; at worst, two threads read a context twice. For each word, an integer has one bit for each sentence. Counts are
kept as planes: the bits of plane n count 2**n. So a word costs a few operations, however many sentences there are.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from ragspan.judges.screen.facts import PRONOUNS, Facts, tells
from ragspan.judges.screen.flags import Flag, read_structure
from ragspan.text.keys import readable
from ragspan.text.languages import Language
from ragspan.text.sentences import Sentence, read_sentence, reader, split_sentences
from ragspan.turns import with_turns

MAX_CHARACTERS = 80_000  # characters of contexts that are read for one record; long contexts give way first
MAX_CONTEXTS = 1000  # contexts that are read for one record, the first ones
_MOST_KEPT, _LONGEST_KEPT, _MOST_SEEN = 1_500, 8_000, 10_000  # contexts in 10 MB, characters of one, hashes of all
_RARITY = [8, *(round(8 / (1 + math.log(held))) for held in range(1, 100))]
"""In eighths, by how many sentences have a word."""
_PLANES = [[plane for plane in range(4) if weight >> plane & 1] for weight in range(9)]  # of each weight
BEST = 4  # sentences that a claim is compared with


class Context:
    """One context as it is compared: the content keys of its sentences."""

    def __init__(self, text: str, language: Language) -> None:
        even, known = readable(text), reader(language)
        structure = read_structure(even)
        self.structured = structure is not None  # true for JSON: its sentences are statements made of paths and values
        self.flags: Sequence[Flag] = structure[1] if structure else ()
        self._language = language
        self._facts: dict[int, Facts] = {}
        read = known.with_content(split_sentences(even, language) if structure is None else with_turns(structure[0]))
        # Tuples of plain values cost the garbage collector nothing.
        self.texts, self.keys = tuple([text for text, _ in read]), tuple([keys for _, keys in read])
        """Its sentences with content, as they are written, and the keys of the content words of each, in order."""
        self.places: dict[str, int] = {}  # for each key its sentences, as bits
        for at, keys in enumerate(with_turns(self.keys)):
            bit = 1 << at
            for key in keys:
                self.places[key] = self.places.get(key, 0) | bit

    def facts(self, index: int) -> Facts:
        """A sentence of English taken apart, which is kept as long as the context is."""
        found = self._facts.get(index)
        if found is None:
            sentence = read_sentence(self.texts[index], self._language)
            before = self.keys[index - 1] if index and sentence.keys[0] in PRONOUNS else ()
            found = self._facts[index] = Facts(sentence, frozenset(filter(tells, before)))
        return found


_kept = lru_cache(maxsize=_MOST_KEPT)(Context)
_seen = set[int]()


def read_context(text: str, language: Language) -> Context:
    """A context; one that comes again is kept, because the same documents are retrieved again and again."""
    if len(text) > _LONGEST_KEPT or hash(text) not in _seen:
        if len(_seen) >= _MOST_SEEN:
            _seen.clear()
        _seen.add(hash(text))
        return Context(text, language)
    return _kept(text, language)


class Near(NamedTuple):
    """A context sentence beside a claim."""

    place: int
    share: float  # of the claim's content words, by weight, that it holds, itself or by an opposite, 0..1
    facts: Facts


class Index(dict[str, int]):
    """For each word the sentences of all contexts that have it, as the bits of an integer: the place of a sentence is its bit.

    A claim can contradict the first `documents` contexts; the others only add support.
    """

    def __init__(self, contexts: Sequence[Context], documents: int) -> None:
        super().__init__()
        self.contexts = contexts
        self.held: list[set[str]] = [set() for _ in contexts]
        """For each context those of the words that it has."""
        self.sentences: list[tuple[str, ...]] = []
        self.texts: list[str] = []
        """The keys and the text of the sentence at each place; empty between two contexts."""
        self._firsts: list[int] = []
        self._weights: dict[str, int] = {}
        self._prose = 0
        for at, context in enumerate(with_turns(contexts)):
            first = len(self.sentences) + 2
            self._firsts.append(first)
            self._prose |= 0 if context.structured or at >= documents else ((1 << len(context.keys)) - 1) << first
            self.sentences += ((), (), *context.keys)  # so that no window of three sentences spans two contexts
            self.texts += ("", "", *context.texts)

    def __missing__(self, word: str) -> int:
        self.look_up({word})
        return self[word]

    def look_up(self, words: Iterable[str]) -> None:
        """Find many words at once: each time, all contexts are gone through."""
        found = dict.fromkeys(words, 0)
        sought = frozenset(found)
        for first, context, held in zip(self._firsts, with_turns(self.contexts), self.held, strict=True):
            here = sought.intersection(context.places)
            held.update(here)
            for word in here:
                found[word] |= context.places[word] << first
        self.update(found)
        for word, bits in found.items():
            rarity = _RARITY[min((bits & self._prose).bit_count(), len(_RARITY) - 1)]
            # A number says little of what a sentence is about, a letter nothing.
            self._weights[word] = 2 if word[:1].isdigit() else 0 if len(word) == 1 else rarity

    def context_at(self, place: int) -> int:
        """The index of the context that a sentence, or a window that may begin before it, is in."""
        return bisect_right(self._firsts, place + 2) - 1

    def facts(self, place: int) -> Facts:
        context = self.context_at(place)
        return self.contexts[context].facts(place - self._firsts[context])

    def best_window(self, words: Iterable[str]) -> tuple[int, int | None]:
        """The most of these keys that three consecutive sentences of one context hold, and the index of that context."""
        planes = _counted([(bits | bits >> 1 | bits >> 2, 1) for word in words if (bits := self[word])])
        best = next(_best_of(planes, 1), None)
        return (best[0], self.context_at(best[1])) if best else (0, None)

    def closest(self, words: Iterable[str], most: int = 1) -> list[int]:
        """The sentences with most of these keys, of which rare ones count more; of equals the first."""
        return [place for _, place in self.ranked(words, most)]

    def ranked(self, words: Iterable[str], most: int) -> list[tuple[int, int]]:
        """The same sentences with the weight of the keys that they hold."""
        planes = _counted([(bits, self._weights[word]) for word in words if (bits := self[word])])
        return list(_best_of(planes, most))

    def verbatim(self, sentence: Sentence, content: Sequence[str], language: Language) -> int | None:
        """Where a context says a claim word for word."""
        having = -1 if content else 0
        for key in content:
            having &= self[key]
        if not having:
            return None
        place = (having & -having).bit_length() - 1
        if self.texts[place] == sentence.text:
            return place
        is_likely = self.sentences[place] == tuple(content)
        return place if is_likely and read_sentence(self.texts[place], language).keys == sentence.keys else None

    def near(self, content: Collection[str], opposites: Mapping[str, Iterable[str]], least: float) -> list[Near]:
        """The few sentences of prose that hold most of some words, or their opposites, the best first; rare words count more.

        There are none if no sentence holds the share `least` of them.
        """
        if opposites and (unknown := {*chain.from_iterable(opposites.values())}.difference(self)):
            self.look_up(unknown)
        held = {word: self[word] for word in content}
        weights = self._weights
        total = sum([weights[word] for word in held]) or 1
        for word, others in opposites.items():
            for other in others:
                held[word] |= self[other]
        if sum([weights[word] for word, bits in held.items() if bits]) < least * total:
            return []
        planes = _counted([(bits & self._prose, weights[word]) for word, bits in held.items()])
        best = [(place, weight / total) for weight, place in _best_of(planes, BEST)]
        return [Near(place, share, self.facts(place)) for place, share in best] if best and best[0][1] >= least else []


def _counted(weighted: Sequence[tuple[int, int]]) -> list[int]:
    """The planes of the counts of all bits, each with the weights of the integers that have it."""
    planes = [0] * (3 + len(weighted).bit_length())  # enough for so many of the highest weight
    for bits, weight in weighted:
        for plane in _PLANES[weight]:
            carried, at = bits, plane
            while carried:
                planes[at], carried = planes[at] ^ carried, planes[at] & carried
                at += 1
    return planes


def _best_of(planes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """The highest counts with the numbers of their bits, of equals the first."""
    among = -1
    for _ in with_turns(range(most)):
        count, best = 0, among
        for plane in reversed(planes):
            count += count
            if held := plane & best:
                best, count = held, count + 1
        if not count:
            return
        number = (best & -best).bit_length() - 1
        yield count, number
        among &= ~(1 << number)
