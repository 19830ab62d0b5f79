"""Which context sentences a claim rests on."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import nlargest

from ragspan.judges.overlap.context_reader import Context, numbers_of
from ragspan.judges.overlap.contradictions.facts import SentenceFacts
from ragspan.judges.overlap.english import english
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import is_number

_BEST = 4
"""Sentences that a claim is compared with."""
_CARRIED = 0.6
"""What a word counts for a sentence with a pronoun at its beginning, if the sentence before has it."""
_ROUNDING = 1e-9
_REFERRING = frozenset({"it", "they", "he", "she", "them", "him"})
_MOST_PLACES = 200
"""Sentences of a word that is looked up; a word in more of them does not help to choose."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Aligned:
    """A context sentence beside a claim."""

    context: Context
    sentence: int
    share: float
    """The share of the claim's content words, by weight, that it holds, itself or by an opposite, 0..1."""

    @property
    def keys(self) -> Sequence[str]:
        """The keys of its words."""
        return self.context.keys_of(self.sentence)

    @property
    def carried(self) -> frozenset[str]:
        """The content of the sentence before, where it has a pronoun that may mean something there."""
        if not self.sentence or _REFERRING.isdisjoint(self.keys):
            return frozenset()
        return self.context.content_of(self.sentence - 1)

    @property
    def facts(self) -> SentenceFacts:
        """Kept with the context."""
        return self.context.fact(SentenceFacts, self.sentence)


class Aligner:
    """Finds the context sentences that share most words with a claim."""

    def __init__(self, contexts: Sequence[Context], shared: SharedWords) -> None:
        self._contexts = contexts
        self._shared = shared
        self._comparable = 0
        """The sentences of prose, as bits."""
        self._referring = 0
        """Those with a pronoun among their first words."""
        for context, first in zip(contexts, shared.firsts, strict=True):
            self._comparable |= context.prose << first
            self._referring |= (context.referring & context.prose) << first
        self._found: dict[str, int] = {}
        self._weights: dict[str, float] = {}

    def __contains__(self, word: str) -> bool:
        return bool(self._places(word))

    def _places(self, word: str) -> int:
        """The sentences with a word, as bits."""
        places = self._found.get(word)
        if places is None:
            places = self._found[word] = self._shared.sentences_with(word) & self._comparable
        return places

    def best(self, content: Iterable[str], least: float = 0.0) -> list[Aligned]:
        """The few best, the best first; none if nothing is shared, or if no sentence can have the share `least`."""
        words = sorted(content)
        total = sum(map(self.weight, words)) or 1.0
        if (
            least
            and math.fsum([self.weight(word) for word in words if self._is_held(word)]) / total < least - _ROUNDING
        ):
            return []
        best = nlargest(_BEST, [(share, -number) for number, share in self._shares(words).items()])
        return [self._aligned(-number, share / total) for share, number in best]

    def _aligned(self, number: int, share: float) -> Aligned:
        place = self._shared.place(number)
        return Aligned(context=self._contexts[place.context], sentence=place.sentence, share=share)

    def _is_held(self, word: str) -> bool:
        """Whether a context has the word or an opposite of it."""
        return bool(self._places(word)) or any(map(self._places, english().opposites.get(word, ())))

    def _shares(self, words: Iterable[str]) -> dict[int, float]:
        """For the number of each sentence, the weight of the words that it holds, itself or by an opposite."""
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
        """How much a word counts: less, the more sentences have it."""
        weight = self._weights.get(word)
        if weight is None:
            weight = self._weights[word] = self._weighed(word)
        return weight

    def _weighed(self, word: str) -> float:
        if word == "include" or len(word) == 1:
            return 0.0  # too common to be looked up
        if is_number(word):
            return 0.3
        return 1 / (1 + math.log(max(1, self._places(word).bit_count())))


def _numbers(bits: int) -> list[int]:
    """The numbers of the bits; none where there are very many."""
    return numbers_of(bits) if bits.bit_count() <= _MOST_PLACES else []
