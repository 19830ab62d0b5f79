"""How much of what the contexts say about the question is in the response, guessed from words.

The contexts' sentences are weighted by their share of the question's words, and the words of the contexts by the
sentences that have them. This finds the topic, not the facts: the weakest of the embedded judge's answers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from heapq import nlargest
from itertools import chain
from operator import or_

from ragspan.judges.overlap.contexts import Context

_MAIN_WORDS = 25
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
    return context.read_sentence(at).words[context.keys[at].index(key)]


def main_words(contexts: Sequence[Context], question: frozenset[str]) -> list[str]:
    """The keys that matter most for the question, the weightiest first; without a question, for the contexts."""
    sentences = sum(len(context.keys) for context in contexts)
    frequency = Counter(chain.from_iterable(chain.from_iterable(context.content for context in contexts)))
    rarity = {count: math.log((sentences + 1) / (count + 0.5)) for count in set(frequency.values())}
    asked = {key: rarity[frequency[key]] for key in question if key in frequency}
    weights: dict[str, float] = {}
    for context in contexts:
        for keys, relevance in _relevant(context, asked):
            for key in keys:
                weights[key] = weights.get(key, 0.0) + relevance * rarity[frequency[key]]
    least = nlargest(_MAIN_WORDS, weights.values())[-1] if weights else 0.0
    heaviest = [key for key, weight in weights.items() if weight >= least]
    return sorted(heaviest, key=lambda key: (-weights[key], key))[:_MAIN_WORDS]  # ties in a fixed order


def _relevant(context: Context, asked: Mapping[str, float]) -> Iterator[tuple[frozenset[str], float]]:
    """The content keys of each sentence that has any that is asked for, with the sum of the rarities of these.

    Where nothing is asked for, those of every sentence.
    """
    if not asked:
        yield from ((keys, 1.0) for keys in context.content)
        return
    left = reduce(or_, [context.places[key] for key in asked.keys() & context.places.keys()], 0)
    while left:
        first = left & -left
        left ^= first
        keys = context.content[first.bit_length() - 1]
        relevance = math.fsum([asked[key] for key in keys if key in asked])
        if relevance:
            yield keys, relevance
