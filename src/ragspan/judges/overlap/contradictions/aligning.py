"""Which context sentences a claim rests on."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest

from ragspan.judges.overlap.alignment import Alignment
from ragspan.judges.overlap.contexts import Context, numbers_of
from ragspan.judges.overlap.contradictions.facts import SentenceFacts, facts_of_sentence
from ragspan.judges.overlap.contradictions.tables import english
from ragspan.judges.overlap.text import is_number

_BEST = 4
"""Sentences that a claim is compared with."""
_QUESTION = 0.3
"""What a word of the question counts beside one of the claim."""
_CARRIED = 0.6
"""What a word counts that stands in the sentence before one that begins with a pronoun."""
_ROUNDING = 1e-9
_REFERRING = frozenset({"it", "they", "he", "she", "them", "him"})
_MOST_PLACES = 200
"""A word in more sentences tells none of them from the others."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Aligned:
    """A context sentence beside a claim."""

    context: Context
    sentence: int
    share: float
    """Of the claim's content words, by weight, how many it holds, opposites included, 0..1."""
    score: float
    """The same weights summed, those of the question's words added."""

    @property
    def keys(self) -> Sequence[str]:
        """Of its words, as the context has them."""
        return self.context.keys_of(self.sentence)

    @property
    def carried(self) -> frozenset[str]:
        """Keys of the sentence before one with a pronoun, of which it may speak."""
        if not self.sentence or _REFERRING.isdisjoint(self.keys):
            return frozenset()
        return self.context.content_of(self.sentence - 1)

    @property
    def facts(self) -> SentenceFacts:
        """Found when they are first asked for, and kept with the context."""
        return self.context.fact(facts_of_sentence, self.sentence)


class Aligner:
    """Finds the context sentences that share most words with a claim; each claim looks at its own words only."""

    def __init__(self, contexts: Sequence[Context], alignment: Alignment) -> None:
        self._contexts = contexts
        self._alignment = alignment
        self._comparable = 0  # as bits: the sentences of prose, and of these the ones that begin with a pronoun
        self._referring = 0
        for context, first in zip(contexts, alignment.firsts, strict=True):
            if not context.structured:
                self._comparable |= ((1 << len(context)) - 1) << first
                self._referring |= context.referring << first
        self._found: dict[str, int] = {}
        self._weights: dict[str, float] = {}

    def __contains__(self, word: str) -> bool:
        return bool(self._places(word))

    def _places(self, word: str) -> int:
        """The sentences with a word, as bits."""
        places = self._found.get(word)
        if places is None:
            places = self._found[word] = self._alignment.sentences_with(word) & self._comparable
        return places

    def _aligned(self, number: int, *, share: float, score: float) -> Aligned:
        place = self._alignment.place(number)
        return Aligned(context=self._contexts[place.context], sentence=place.sentence, share=share, score=score)

    def best(self, content: Iterable[str], question: frozenset[str], least: float = 0.0) -> list[Aligned]:
        """The few best, the best first; none where nothing is shared, or clearly less than the share `least` by any."""
        words = sorted(content)
        total = sum(map(self.weight, words)) or 1.0
        if (
            least
            and math.fsum([self.weight(word) for word in words if self._is_held(word)]) / total < least - _ROUNDING
        ):
            return []
        shares = self._shares(words)
        scores = dict(shares)
        for word in question.difference(words):
            for number in _numbers(self._places(word)):
                if number in scores:
                    scores[number] += _QUESTION * self.weight(word)
        best = nlargest(_BEST, [(score, -number) for number, score in scores.items()])
        return [self._aligned(-number, share=shares[-number] / total, score=score) for score, number in best]

    def _is_held(self, word: str) -> bool:
        """Whether a context has the word or an opposite of it."""
        return bool(self._places(word)) or any(map(self._places, english().opposites.get(word, ())))

    def _shares(self, words: Iterable[str]) -> dict[int, float]:
        """By the numbers of the sentences, the weights of the words that each holds, itself or by an opposite."""
        shares: defaultdict[int, float] = defaultdict(float)
        opposites = english().opposites
        for word in words:
            weight = self.weight(word)
            held = found = self._places(word)
            for other in opposites.get(word, ()):
                found |= self._places(other)
            for number in _numbers(found):
                shares[number] += weight
            for number in _numbers(held << 1 & self._referring & ~held):
                shares[number] += _CARRIED * weight
        return shares

    def weight(self, word: str) -> float:
        """How much a word tells: less the more sentences have it."""
        weight = self._weights.get(word)
        if weight is None:
            weight = self._weights[word] = self._weighed(word)
        return weight

    def _weighed(self, word: str) -> float:
        if word == "include":
            return 0.0  # too common to be looked up
        if is_number(word):
            return 0.3
        return 1 / (1 + math.log(max(1, self._places(word).bit_count())))


def _numbers(bits: int) -> list[int]:
    """The numbers of the bits; none where there are very many."""
    return numbers_of(bits) if bits.bit_count() <= _MOST_PLACES else []
