"""What a response and a question share with the contexts, guessed from words: completeness, and which contexts were used.

This is the weakest of the embedded judge's answers: it finds the topic, not the facts.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from itertools import chain

from ragspan.judges.screen.contexts import Context, Index
from ragspan.turns import with_turns

_MAIN_WORDS, _MOST_RELEVANT = 25, 15  # words that matter most, and sentences that they are taken from
_ALL_COUNT, _SOME_COUNT = 2, 12  # main words of which a full response has all, and from which on it has some
_GROUNDED = 0.7  # the weight of the grounding
_MILDEST = 0.35  # the exponent there: on mtrag the half of the scale then parts complete answers from others best
_NEAR_BEST, _FLOOR = 0.8, 0.12
"""A useful context shares at least this part of what the best one shares with the response, and at least the floor, which is what
responses share by chance with the contexts of other questions."""


def rate_coverage(
    response: Collection[str], index: Index, asked: frozenset[str], grounding: float
) -> tuple[float, str]:
    """How complete a response with these keys is, 0..1, and the sentence of the contexts with most of what it leaves out.

    That is what it has of the main words of the sentences with most of the question's words (without a question, of all), but for
    the question's own, and how well it is grounded. Of few main words a full response has most. Of many it has some, for other words
    say the same and not all matter: so the more words there are, the milder it is.
    """
    ranked = index.ranked(asked, _MOST_RELEVANT) or [(1, place) for place in range(len(index.sentences))]
    said = [(weight, place, dict.fromkeys(index.sentences[place])) for weight, place in with_turns(ranked)]
    weights: defaultdict[str, int] = defaultdict(int)
    for weight, _, keys in with_turns(said):
        for key in keys:
            weights[key] += weight
    main = sorted(weights, key=weights.__getitem__, reverse=True)[:_MAIN_WORDS]
    main = [key for key in main if key not in asked] or main
    missing = [key for key in main if key not in response]
    beyond = min(1.0, max(0, len(main) - _ALL_COUNT) / (_SOME_COUNT - _ALL_COUNT))
    value = _share(len(main) - len(missing), len(main)) * grounding**_GROUNDED
    lost = {key: weights[key] for key in missing}
    sums = [sum(map(lost.__getitem__, filter(lost.__contains__, keys))) for _, _, keys in with_turns(said)]
    left_out = index.texts[said[sums.index(max(sums))][1]] if missing and said else ""
    return float(value ** (1 - (1 - _MILDEST) * beyond)), left_out


def shared_with_response(content: frozenset[str], index: Index) -> list[float]:
    """For each context the share of the response's content words that it holds, by their rarity among the contexts, 0..1."""
    held, contexts = [content & held for held in with_turns(index.held)], index.contexts
    counts = Counter(chain.from_iterable(held))
    rarities = {count: math.log((len(contexts) + 1) / (count + 0.5)) for count in {0, *counts.values()}}
    rarity = {key: rarities[counts.get(key, 0)] for key in content}
    whole = math.fsum(rarity.values())
    return [_share(math.fsum(map(rarity.__getitem__, keys)), whole) for keys in held]


def are_useful(shared: Sequence[float]) -> list[bool]:
    """Whether each context was useful, by the figures of `shared_with_response`."""
    best = max(shared, default=0.0)
    return [share >= _FLOOR and share >= _NEAR_BEST * best for share in shared]


def conveyed_share(words: frozenset[str], context: Context) -> float:
    """The share of the content words of a context in sentences most of whose content words are among these, 0..1."""
    conveyed = sum(len(keys) for keys in context.keys if 2 * len(words.intersection(keys)) > len({*keys}))
    return _share(conveyed, sum(map(len, context.keys)))


def held_shares(asked: frozenset[str], index: Index) -> list[float]:
    """For each context the share of the question's content words that it holds, 0..1; 0 if the question has none."""
    return [_share(len(asked & held), len(asked)) for held in index.held]


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
