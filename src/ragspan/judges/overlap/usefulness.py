"""Which passages an answer was made from, and how much of them, guessed from the words that they share."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ragspan.judges.overlap.evidence import Passage
from ragspan.judges.overlap.text import is_content

_NEAR_BEST = 0.8
"""A passage is useful that shares so much of what the best one shares with the answer ..."""
_FLOOR = 0.12
"""... if that is no less than what answers share with the passages of other questions, by chance (of 2)."""


def shared_with_answer(answer: Sequence[Sequence[str]], passages: Sequence[Passage]) -> list[float]:
    """For each passage the share of the answer's words plus that of its word pairs that it holds, 0..2.

    `answer` holds the keys of each sentence. Words count by their rarity among the passages.
    """
    words = frozenset(key for sentence in answer for key in sentence if is_content(key))
    pairs = frozenset(pair for sentence in answer for pair in pairwise(sentence))
    held = [words.intersection(passage.keys()) for passage in passages]
    frequency = Counter(key for keys in held for key in keys)
    rarity = {key: math.log((len(passages) + 1) / (frequency[key] + 0.5)) for key in words}
    whole = math.fsum(rarity.values())
    return [
        _share(math.fsum(map(rarity.__getitem__, keys)), whole)
        + _share(len(pairs.intersection(pairwise(passage.keys()))), len(pairs))
        for keys, passage in zip(held, passages, strict=True)
    ]


def are_useful(shared: Sequence[float]) -> list[bool]:
    """Whether each passage was useful, from what `shared_with_answer` says of all."""
    best = max(shared, default=0.0)
    return [share >= _FLOOR and share >= _NEAR_BEST * best for share in shared]


def conveyed_shares(answer: Sequence[Sequence[str]], passages: Sequence[Passage]) -> list[float]:
    """For each passage the share of its content words in sentences most of whose content words the answer has, 0..1."""
    words = frozenset(key for sentence in answer for key in sentence if is_content(key))
    return [_conveyed(words, passage) for passage in passages]


def held_shares(question: frozenset[str], passages: Sequence[Passage]) -> list[float]:
    """For each passage the share of the question's content words that it holds, 0..1; 0 where the question has none."""
    words = {key for key in question if is_content(key)}
    return [_share(len(words.intersection(passage.keys())), len(words)) for passage in passages]


def _conveyed(words: frozenset[str], passage: Passage) -> float:
    sentences = [[key for key in sentence if is_content(key)] for sentence in passage.sentences]
    conveyed = [sentence for sentence in sentences if 2 * len(words.intersection(sentence)) > len(set(sentence))]
    return _share(sum(map(len, conveyed)), sum(map(len, sentences)))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
