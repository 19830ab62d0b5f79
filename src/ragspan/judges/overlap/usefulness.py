"""Which contexts a response was made from, and how much of them, guessed from the words that they share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain, compress

from ragspan.judges.overlap.alignment import Alignment
from ragspan.judges.overlap.contexts import Context
from ragspan.judges.overlap.text import content_of, is_content

_NEAR_BEST = 0.8
"""A context is useful that shares so much of what the best one shares with the response ..."""
_FLOOR = 0.12
"""... if that is no less than what responses share with the contexts of other questions, by chance (of 2)."""


def shared_with_response(alignment: Alignment, contexts: Sequence[Context]) -> list[float]:
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
