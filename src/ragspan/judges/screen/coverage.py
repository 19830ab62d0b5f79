"""What a response and a question share with the contexts, guessed from words.

`cover` finds how much of what the contexts say about the question is in the response. It weights the contexts' sentences by
their share of the question's words, and the words by these sentences. So it finds the topic, not the facts: this is the
weakest of the embedded judge's answers. The other functions find which contexts a response was made from, how much of them,
and what they share with the question.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress

from ragspan.judges.screen.contexts import Context, numbers_of
from ragspan.judges.screen.evidence import Evidence
from ragspan.text.keys import content_of, is_content
from ragspan.text.turns import turn

_MAIN_WORDS = 25
_ALL_COUNT, _SOME_COUNT = 2, 12
"""Main words of which a full response has all, and from which on it has some."""
_GROUNDED = 0.7
"""The weight of the grounding."""
_MILDEST = 0.35
"""The exponent there: on mtrag the half of the scale then parts complete answers from others best."""
_MOST_RELEVANT = 15
"""Sentences whose words count."""
_NEAR_BEST = 0.8
"""A useful context shares at least this part of what the best one shares with the response, and at least `_FLOOR`."""
_FLOOR = 0.12
"""What responses share by chance with the contexts of other questions (of 2)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Which of the main words of the contexts a response has."""

    share: float
    """Of the main words, 0..1; 0 when the contexts have none."""
    words: int
    """How many main words there are."""
    left_out: str = ""
    """The sentence of the contexts with most of what is missing; empty where nothing is."""


def cover(response: Collection[str], contexts: Sequence[Context], question: frozenset[str]) -> Coverage:
    """What a response with these keys has of what the contexts say about a question with those keys, but for its own words."""
    main = main_words(contexts, question)
    main = [key for key in main if key not in question] or main
    missing = [key for key in main if key not in response]
    return Coverage(
        share=_share(len(main) - len(missing), len(main)),
        words=len(main),
        left_out=_left_out(missing, contexts),
    )


def completeness(coverage: Coverage, grounding: float) -> float:
    """How complete a response is, 0..1: what it covers and is grounded in.

    Of few main words, a sentence or two, a full response has most. Of many it has some, for other words say the same and not all
    matter: so the more words there are, the milder it is.
    """
    beyond = min(1.0, max(0, coverage.words - _ALL_COUNT) / (_SOME_COUNT - _ALL_COUNT))
    return float((coverage.share * grounding**_GROUNDED) ** (1 - (1 - _MILDEST) * beyond))


def main_words(contexts: Sequence[Context], question: frozenset[str]) -> list[str]:
    """The keys that matter most for the question, the weightiest first; without a question, for the contexts."""
    sentences = sum(map(len, contexts))
    asked = _rarities(_sentence_counts(contexts, content_of(question)), sentences)
    weights: dict[str, float] = {}
    for context, sentence, relevance in _most_relevant(contexts, dict(sorted(asked.items()))):
        for key in context.content_of(sentence):
            weights[key] = weights.get(key, 0.0) + relevance
    for key, rarity in _rarities(_sentence_counts(contexts, frozenset(weights)), sentences).items():
        weights[key] *= rarity
    least = sorted(weights.values())[-_MAIN_WORDS:][:1]
    heaviest = [key for key, weight in weights.items() if [weight] >= least]
    return sorted(heaviest, key=lambda key: (-weights[key], key))[:_MAIN_WORDS]  # ties in a fixed order


def _sentence_counts(contexts: Sequence[Context], keys: frozenset[str]) -> dict[str, int]:
    """In how many sentences each of the keys is, without those that no context has."""
    found: dict[str, int] = {}
    for context in contexts:
        turn()
        for key in context.held(keys):
            found[key] = found.get(key, 0) + context.places[key].bit_count()
    return found


def _rarities(counts: Mapping[str, int], among: int) -> dict[str, float]:
    """How much each key says: the more, the fewer of all places have it."""
    rarity_of = {count: math.log((among + 1) / (count + 0.5)) for count in set(counts.values())}
    return {key: rarity_of[count] for key, count in counts.items()}


def _most_relevant(contexts: Sequence[Context], asked: Mapping[str, float]) -> list[tuple[Context, int, float]]:
    """The sentences that have most of what is asked for, with the sum of its rarities; all, if none has any."""
    if not asked:
        return [(context, sentence, 1.0) for context in contexts for sentence in range(len(context))]
    found: dict[tuple[int, int], float] = {}
    for number, context in enumerate(contexts):
        turn()
        for key, rarity in asked.items():
            for sentence in numbers_of(context.places.get(key, 0)):
                place = number, sentence
                found[place] = found.get(place, 0.0) + rarity
    best = sorted(found.items(), key=lambda one: (-one[1], one[0]))[:_MOST_RELEVANT]
    return [(contexts[number], sentence, relevance) for (number, sentence), relevance in best]


def _left_out(missing: Sequence[str], contexts: Sequence[Context]) -> str:
    """The first of the sentences that have most of some words."""
    counts = Counter(
        (number, sentence)
        for key in missing
        for number, context in enumerate(contexts)
        for sentence in numbers_of(context.places.get(key, 0))
    )
    best = max(counts, key=lambda place: (counts[place], -place[0], -place[1]), default=None)
    return contexts[best[0]].text_of(best[1]) if best else ""


def shared_with_response(shared: Evidence, contexts: Sequence[Context]) -> list[float]:
    """For each context the share of the response's words plus that of its word pairs that it holds, 0..2.

    Words count by their rarity among the contexts.
    """
    frequency = Counter(chain.from_iterable(shared.held))
    rarity = _rarities({key: frequency[key] for key in shared.content}, len(contexts))
    whole = math.fsum(rarity.values())
    return [
        _share(math.fsum(map(rarity.__getitem__, keys)), whole) + _share(len(held_pairs), len(shared.pairs))
        for keys, held_pairs in zip(shared.held, shared.held_pairs, strict=True)
    ]


def are_useful(shared: Sequence[float]) -> list[bool]:
    """Whether each context was useful, by the figures of `shared_with_response`."""
    best = max(shared, default=0.0)
    return [share >= _FLOOR and share >= _NEAR_BEST * best for share in shared]


def conveyed_shares(words: frozenset[str], contexts: Sequence[Context]) -> list[float]:
    """For each context the share of its content words in sentences most of whose content words are among these, 0..1."""
    return [_conveyed(words, context) for context in contexts]


def held_shares(question: frozenset[str], contexts: Sequence[Context]) -> list[float]:
    """For each context the share of the question's content words that it holds, 0..1; 0 if the question has none."""
    words = content_of(question)
    return [_share(len(context.held(words)), len(words)) for context in contexts]


def _conveyed(words: frozenset[str], context: Context) -> float:
    sentences = range(len(context))
    counts = [sum(map(is_content, context.keys_of(index))) for index in sentences]
    conveyed = [2 * len(words & content) > len(content) for content in map(context.content_of, sentences)]
    return _share(sum(compress(counts, conveyed)), sum(counts))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
