"""What claims and contexts have in common: words, pairs and runs of three words, and in which sentences."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, pairwise
from typing import NamedTuple

from ragspan.judges.overlap.context_reader import Context, Pair, Place, Run
from ragspan.text.keys import content_of, is_number
from ragspan.text.sentences import Sentence

_COMMON = 20
"""Sentences of a word that tells little about any one of them."""
_GAP = 2
"""Numbers left free between two contexts, so that no window of three sentences spans both."""


class Telling(NamedTuple):
    """Words that few sentences have."""

    words: AbstractSet[str]
    planes: Sequence[int]
    """How many of them each sentence has."""


class SharedWords:
    """What some claims share with some contexts, found once for all questions about it."""

    def __init__(self, claims: Sequence[Sentence], contexts: Sequence[Context]) -> None:
        self.content = content_of(chain.from_iterable(claim.keys for claim in claims))
        """The keys of the claims' content words."""
        self.pairs = frozenset(chain.from_iterable(pairwise(claim.keys) for claim in claims))
        self.held_pairs = [context.shared_pairs(self.pairs) for context in contexts]
        """The pairs that each context has."""
        self.held = [context.held(self.content) for context in contexts]
        """The content words that each context has."""
        self._contexts = contexts
        self.firsts: list[int] = []
        """The number of the first sentence of each context."""
        self._sentences: dict[str, int] = {}
        number = 0
        for context, held in zip(contexts, self.held, strict=True):
            number += _GAP
            self.firsts.append(number)
            for word in held:
                self._sentences[word] = self._sentences.get(word, 0) | context.places[word] << number
            number += len(context)
        self._runs = self._held_runs(claims)

    def __contains__(self, word: str) -> bool:
        """Whether a context holds this content word of a claim."""
        return word in self._sentences

    def best_window(self, words: Iterable[str]) -> tuple[int, int | None]:
        """The most of these keys that three consecutive sentences of one context hold, and the index of that context.

        `(0, None)` where none holds any.
        """
        planes: list[int] = []
        for word in words:
            sentences = self._sentences.get(word)
            if sentences:
                _count(planes, sentences | sentences >> 1 | sentences >> 2)
        most, best = _most(planes)
        return (most, self.place(best).context) if most else (0, None)

    def closest(self, words: Iterable[str], most: int, *, least: int = 1) -> list[Place]:
        """The sentences that hold most of these keys, the best first, of equals the first; at most `most`, with `least` keys."""
        planes: list[int] = []
        for word in words:
            _count(planes, self._sentences.get(word, 0))
        found: list[Place] = []
        left = -1
        while len(found) < most:
            held, best = _most(planes, left)
            if held < least:
                break
            found.append(self.place(best))
            left &= ~(1 << best)
        return found

    def telling(self, words: Iterable[str]) -> Telling:
        """Where these words are that tell of a sentence: common words do not."""
        planes: list[int] = []
        found: set[str] = set()
        for word in words:
            sentences = self.sentences_with(word)
            if 0 < sentences.bit_count() <= _COMMON:
                found.add(word)
                _count(planes, sentences)
        return Telling(found, planes)

    def nearest(self, words: Iterable[str], asked: Telling) -> Place | None:
        """The sentence that has most of the words of a claim, and of its question, which count half; None where none has any.

        Common words do not count, and numbers twice.
        """
        planes = list(asked.planes)
        for word in words:
            sentences = self.sentences_with(word)
            times = 2 + 2 * is_number(word) - (word in asked.words) if 0 < sentences.bit_count() <= _COMMON else 0
            for plane in range(times.bit_length()):
                if times >> plane & 1:
                    _count(planes, sentences, plane)
        held, best = _most(planes)
        return self.place(best) if held else None

    def covered(self, keys: Sequence[str]) -> int:
        """How many of the words of a claim are in a run of three that a context has as well."""
        runs = zip(keys, keys[1:], keys[2:], strict=False)
        places = [at for at, run in enumerate(runs) if run in self._runs]
        return len({*places, *[at + 1 for at in places], *[at + 2 for at in places]})

    def has_sentence(self, keys: Sequence[str]) -> bool:
        """Whether the first of the sentences that hold most of a claim's content has the claim's keys, and no others."""
        return any(
            self._contexts[place.context].keys_of(place.sentence) == list(keys)
            for place in self.closest(content_of(keys), 1)
        )

    def sentences_with(self, word: str) -> int:
        """The sentences with a word, whether a claim has it or not, as the bits of an integer."""
        if word in self.content:
            return self._sentences.get(word, 0)
        found = 0
        for first, context in zip(self.firsts, self._contexts, strict=True):
            if word in context.places:
                found |= context.places[word] << first
        return found

    def place(self, number: int) -> Place:
        """Where the sentence with this number is."""
        # A window may begin before the first sentence of its context.
        context = bisect_right(self.firsts, number + _GAP) - 1
        return Place(context, number - self.firsts[context])

    def _held_runs(self, claims: Sequence[Sentence]) -> set[Run]:
        somewhere = frozenset().union(*self.held_pairs)
        beginning: dict[Pair, list[Run]] = {}
        for run in {run for claim in claims for run in zip(claim.keys, claim.keys[1:], claim.keys[2:], strict=False)}:
            if run[:2] in somewhere and run[1:] in somewhere:
                beginning.setdefault(run[:2], []).append(run)
        held: set[Run] = set()
        # Contexts that a claim may be copied from come first.
        for context, pairs in sorted(zip(self._contexts, self.held_pairs, strict=True), key=_count_pairs, reverse=True):
            begun = beginning.keys() & pairs if beginning else ()
            likely = [run for pair in begun for run in beginning[pair] if run[1:] in pairs and run not in held]
            if likely:
                held |= context.shared_runs(frozenset(likely))
        return held


def _count_pairs(context: tuple[Context, frozenset[Pair]]) -> int:
    return len(context[1])


# For each word, an integer has one bit for each sentence or window. Counts are kept as planes: the bits of plane n count
# 2**n. So a word costs a few operations, however many windows there are.


def _count(planes: list[int], bits: int, plane: int = 0) -> None:
    """Add 2**plane to the count of each of the bits."""
    while bits:
        planes += [0] * (plane + 1 - len(planes))
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
