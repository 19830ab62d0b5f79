"""How much of what the contexts say about the question is in the response, guessed from words.

The contexts' sentences are weighted by their share of the question's words, and the words of the contexts by the
sentences that have them. This finds the topic, not the facts: the weakest of the embedded judge's answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, compress

from ragspan.judges.overlap.contexts import Context, numbers_of
from ragspan.judges.overlap.keys import content_of, is_content
from ragspan.judges.overlap.shared_words import SharedWords

_MAIN_WORDS = 25
_MOST_RELEVANT = 15
"""Sentences of which the words count."""
_MOST_NAMED = 9
"""More than an explanation lists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Which of the main words of the contexts a response has."""

    share: float
    """Of the main words, 0..1; 0 when the contexts have none."""
    missing: tuple[str, ...]
    """The weightiest of the others, as the contexts write them."""


def cover(response: Collection[str], contexts: Sequence[Context], question: frozenset[str]) -> Coverage:
    """What a response with these keys has of what the contexts say about a question with those keys."""
    main = main_words(contexts, question)
    missing = [key for key in main if key not in response]
    return Coverage(
        share=(len(main) - len(missing)) / len(main) if main else 0.0,
        missing=tuple([_spelling(key, contexts) for key in missing[:_MOST_NAMED]]),
    )


def _spelling(key: str, contexts: Sequence[Context]) -> str:
    """The key as the last sentence that has it writes it."""
    context = next(context for context in reversed(contexts) if key in context.places)
    at = context.places[key].bit_length() - 1
    sentence = context.sentence(at)
    return next((word for word, other in zip(sentence.words, sentence.keys, strict=True) if other == key), key)


def main_words(contexts: Sequence[Context], question: frozenset[str]) -> list[str]:
    """The keys that matter most for the question, the weightiest first; without a question, for the contexts."""
    rarity = _Rarity(contexts)
    asked = {key: rarity.of(count) for key, count in sorted(rarity.counts(content_of(question)).items())}
    weights: dict[str, float] = {}
    for context, sentence, relevance in _most_relevant(contexts, asked):
        for key in context.content_of(sentence):
            weights[key] = weights.get(key, 0.0) + relevance
    for key, count in rarity.counts(frozenset(weights)).items():
        weights[key] *= rarity.of(count)
    least = sorted(weights.values())[-_MAIN_WORDS:][:1]
    heaviest = [key for key, weight in weights.items() if [weight] >= least]
    return sorted(heaviest, key=lambda key: (-weights[key], key))[:_MAIN_WORDS]  # ties in a fixed order


def _most_relevant(contexts: Sequence[Context], asked: Mapping[str, float]) -> list[tuple[Context, int, float]]:
    """The sentences that have most of what is asked for, with the sum of the rarities of that; all where nothing is."""
    if not asked:
        return [(context, sentence, 1.0) for context in contexts for sentence in range(len(context))]
    found: dict[tuple[int, int], float] = {}
    for number, context in enumerate(contexts):
        for key, rarity in asked.items():
            for sentence in numbers_of(context.places.get(key, 0)):
                place = number, sentence
                found[place] = found.get(place, 0.0) + rarity
    best = sorted(found.items(), key=_by_relevance)[:_MOST_RELEVANT]
    return [(contexts[number], sentence, relevance) for (number, sentence), relevance in best]


def _by_relevance(found: tuple[tuple[int, int], float]) -> tuple[float, tuple[int, int]]:
    return -found[1], found[0]


class _Rarity:
    """How much a key tells by the number of sentences that have it."""

    def __init__(self, contexts: Sequence[Context]) -> None:
        self._contexts = contexts
        self._sentences = sum(map(len, contexts))
        self.of = cache(self._of_count)

    def counts(self, keys: frozenset[str]) -> dict[str, int]:
        """For those of the keys that contexts have, in how many sentences."""
        found: dict[str, int] = {}
        for context in self._contexts:
            for key in context.held(keys):
                found[key] = found.get(key, 0) + context.places[key].bit_count()
        return found

    def _of_count(self, count: int) -> float:
        return math.log((self._sentences + 1) / (count + 0.5))


# MERGED usefulness.py
# """Which contexts a response was made from, and how much of them, guessed from the words that they share."""

_NEAR_BEST = 0.8
"""A context is useful that shares so much of what the best one shares with the response ..."""
_FLOOR = 0.12
"""... if that is no less than what responses share with the contexts of other questions, by chance (of 2)."""


def shared_with_response(alignment: SharedWords, contexts: Sequence[Context]) -> list[float]:
    """For each context the share of the response's words plus that of its word pairs that it holds, 0..2.

    Words count by their rarity among the contexts.
    """
    words, pairs, held = alignment.content, alignment.pairs, alignment.held
    frequency = Counter(chain.from_iterable(held))
    rarity_of = {count: math.log((len(contexts) + 1) / (count + 0.5)) for count in {0, *frequency.values()}}
    rarity = {key: rarity_of[frequency[key]] for key in words}
    whole = math.fsum(rarity.values())
    return [
        _share(math.fsum(map(rarity.__getitem__, keys)), whole) + _share(len(held_pairs), len(pairs))
        for keys, held_pairs in zip(held, alignment.held_pairs, strict=True)
    ]


def are_useful(shared: Sequence[float]) -> list[bool]:
    """Whether each context was useful, from what `shared_with_response` says of all."""
    best = max(shared, default=0.0)
    return [share >= _FLOOR and share >= _NEAR_BEST * best for share in shared]


def conveyed_shares(words: frozenset[str], contexts: Sequence[Context]) -> list[float]:
    """For each context the share of its content words in sentences most of whose content words are among these, 0..1."""
    return [_conveyed(words, context) for context in contexts]


def held_shares(question: frozenset[str], contexts: Sequence[Context]) -> list[float]:
    """For each context the share of the question's content words that it holds, 0..1; 0 where the question has none."""
    words = content_of(question)
    return [_share(len(context.held(words)), len(words)) for context in contexts]


def _conveyed(words: frozenset[str], context: Context) -> float:
    sentences = range(len(context))
    counts = [sum(map(is_content, context.keys_of(index))) for index in sentences]
    conveyed = [2 * len(words & content) > len(content) for content in map(context.content_of, sentences)]
    return _share(sum(compress(counts, conveyed)), sum(counts))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
