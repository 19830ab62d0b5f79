"""What claims and contexts have in common: words, pairs and runs of three words, and in which sentences."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, pairwise
from operator import or_

from ragspan.judges.screen.contexts import REFERRING, Context, Pair, Place, Run
from ragspan.judges.screen.english import english
from ragspan.judges.screen.facts import SentenceFacts
from ragspan.text.keys import content_of, is_number
from ragspan.text.lazy import Lazy
from ragspan.text.sentences import Sentence
from ragspan.text.turns import turn

_GAP = 2
"""Numbers left free between two contexts, so that no window of three sentences spans both."""
_BEST = 4
"""Sentences that a claim is compared with."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Aligned:
    """A context sentence beside a claim."""

    context: Context
    place: Place
    share: float
    """The share of the claim's content words, by weight, that it holds, itself or by an opposite, 0..1."""

    @property
    def keys(self) -> Sequence[str]:
        """The keys of its words."""
        return self.context.keys_of(self.place.sentence)

    @property
    def carried(self) -> frozenset[str]:
        """The content of the sentence before, where it has a pronoun that may mean something there."""
        if not self.place.sentence or REFERRING.isdisjoint(self.keys):
            return frozenset()
        return self.context.content_of(self.place.sentence - 1)

    @property
    def facts(self) -> SentenceFacts:
        """Kept with the context."""
        return self.context.fact(SentenceFacts, self.place.sentence)


class Evidence:
    """What some claims share with some contexts, found once for all questions about it."""

    def __init__(self, claims: Sequence[Sentence], contexts: Sequence[Context]) -> None:
        self.contexts = contexts
        self.content = content_of(chain.from_iterable(claim.keys for claim in claims))
        """The keys of the claims' content words."""
        self.pairs = frozenset(chain.from_iterable(pairwise(claim.keys) for claim in claims))
        self.held_pairs: list[frozenset[Pair]] = []
        """The pairs that each context has."""
        for context in contexts:
            turn()
            self.held_pairs.append(context.shared_pairs(self.pairs))
        self.held = [context.held(self.content) for context in contexts]
        """The content words that each context has."""
        self._firsts: list[int] = []
        self._sentences: dict[str, int] = {}
        self._prose = number = 0
        for context, held in zip(contexts, self.held, strict=True):
            turn()
            number += _GAP
            self._firsts.append(number)
            for word in held:
                self._sentences[word] = self._sentences.get(word, 0) | context.places[word] << number
            self._prose |= 0 if context.structured else ((1 << len(context)) - 1) << number
            number += len(context)
        self._runs = self._held_runs(claims)
        self._weights: dict[str, int] = {}

    def __contains__(self, word: str) -> bool:
        """Whether a context holds this content word of a claim."""
        return word in self._sentences

    def best_window(self, words: Iterable[str]) -> tuple[int, int | None]:
        """The most of these keys that three consecutive sentences of one context hold, and the index of that context."""
        planes: list[int] = []
        for word in words:
            sentences = self._sentences.get(word)
            if sentences:
                _count(planes, sentences | sentences >> 1 | sentences >> 2)
        most, best = _most(planes)
        return (most, self.place(best).context) if most else (0, None)

    def closest(self, words: Iterable[str], most: int = 1) -> list[Place]:
        """The sentences that hold most of these keys, the best first, of equals the first."""
        planes: list[int] = []
        for word in words:
            _count(planes, self._sentences.get(word, 0))
        found: list[Place] = []
        left = -1
        while len(found) < most:
            held, best = _most(planes, left)
            if not held:
                break
            found.append(self.place(best))
            left &= ~(1 << best)
        return found

    def covered(self, keys: Sequence[str]) -> int:
        """How many of the words of a claim are in a run of three that a context has as well."""
        runs = zip(keys, keys[1:], keys[2:], strict=False)
        places = [at for at, run in enumerate(runs) if run in self._runs]
        return len({*places, *[at + 1 for at in places], *[at + 2 for at in places]})

    def has_sentence(self, keys: Sequence[str]) -> bool:
        """Whether a context says a claim word for word: the first of the sentences that hold most of its content."""
        places = self.closest(content_of(keys))
        return any(self.contexts[place.context].keys_of(place.sentence) == list(keys) for place in places)

    def sentences_with(self, word: str) -> int:
        """The sentences with a word, whether a claim has it or not, as the bits of an integer."""
        if word in self.content:
            return self._sentences.get(word, 0)
        found = 0
        for first, context in zip(self._firsts, self.contexts, strict=True):
            if word in context.places:
                found |= context.places[word] << first
        return found

    def place(self, number: int) -> Place:
        """Where the sentence with this number is."""
        # A window may begin before the first sentence of its context.
        context = bisect_right(self._firsts, number + _GAP) - 1
        return Place(context, number - self._firsts[context])

    def aligned(self, content: Iterable[str], least: float = 0.0) -> list[Aligned]:
        """The few sentences of prose that hold most of some words, the best first; rare words count more.

        None if no sentence can hold the share `least` of them.
        """
        weights = {word: self._weight(word) for word in sorted(content)}
        held = {word: self._told_by(word) for word in weights}
        total = sum(weights.values()) or 1
        if sum(weights[word] for word, bits in held.items() if bits) < least * total:
            return []
        planes: list[int] = []
        for word, bits in held.items():
            for plane in range(weights[word].bit_length()):
                if weights[word] >> plane & 1:
                    _count(planes, bits, plane)
        found: list[Aligned] = []
        left = -1
        while len(found) < _BEST:
            share, number = _most(planes, left)
            if not share:
                break
            left &= ~(1 << number)
            place = self.place(number)
            found.append(Aligned(context=self.contexts[place.context], place=place, share=share / total))
        return found

    def _told_by(self, word: str) -> int:
        """The sentences of prose with a word or an opposite of it, or that refer to one with it by a pronoun, as bits."""
        own = self.sentences_with(word)
        found = own
        for other in english().opposites.get(word, ()):
            found |= self.sentences_with(other)
        return (found | own << 1 & self._referring) & self._prose

    @Lazy
    def _referring(self) -> int:
        """The sentences with a pronoun among their first words, as bits."""
        pairs = zip(self._firsts, self.contexts, strict=True)
        return reduce(or_, [context.referring << first for first, context in pairs], 0)

    def _weight(self, word: str) -> int:
        """How much a word counts, in eighths: less, the more sentences have it."""
        weight = self._weights.get(word)
        if weight is None:
            places = (self.sentences_with(word) & self._prose).bit_count()
            counts = (
                0.0
                if len(word) == 1 or word == "include"
                else 0.3
                if is_number(word)
                else 1 / (1 + math.log(max(1, places)))
            )
            weight = self._weights[word] = round(8 * counts)
        return weight

    def _held_runs(self, claims: Sequence[Sentence]) -> set[Run]:
        somewhere = frozenset().union(*self.held_pairs)
        beginning: dict[Pair, list[Run]] = {}
        for run in {run for claim in claims for run in zip(claim.keys, claim.keys[1:], claim.keys[2:], strict=False)}:
            if run[:2] in somewhere and run[1:] in somewhere:
                beginning.setdefault(run[:2], []).append(run)
        held: set[Run] = set()
        # Contexts that a claim may be copied from come first.
        ranked = sorted(zip(self.contexts, self.held_pairs, strict=True), key=lambda one: -len(one[1]))
        for context, pairs in ranked if beginning else ():
            if not pairs:
                break
            likely = [
                run
                for pair in beginning.keys() & pairs
                for run in beginning[pair]
                if run[1:] in pairs and run not in held
            ]
            if likely:
                held |= context.shared_runs(frozenset(likely))
        return held


# For each word, an integer has one bit for each sentence or window. Counts are kept as planes: the bits of plane n count
# 2**n. So a word costs a few operations, however many windows there are.


def _count(planes: list[int], bits: int, plane: int = 0) -> None:
    """Add 2**plane to the count of each of the bits."""
    while bits:
        while plane >= len(planes):
            planes.append(0)
        planes[plane], bits = planes[plane] ^ bits, planes[plane] & bits
        plane += 1


def _most(planes: Sequence[int], among: int = -1) -> tuple[int, int]:
    """The highest count among these bits, and the number of the first bit that has it; `(0, -1)` where all are 0."""
    most, best = 0, among
    for plane in reversed(range(len(planes))):
        if planes[plane] & best:
            best &= planes[plane]
            most += 1 << plane
    return (most, (best & -best).bit_length() - 1) if most else (0, -1)
