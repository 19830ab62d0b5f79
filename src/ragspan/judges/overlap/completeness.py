"""How much of what the passages say about the question is in the answer, guessed from words.

The passages' sentences are weighted by their share of the question's words, and the words of the passages by the
sentences they stand in. This finds the topic, not the facts: the weakest of the embedded judge's answers.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain

from ragspan.judges.overlap.evidence import Passage
from ragspan.judges.overlap.vocabulary import FUNCTION_WORDS

_MAIN_WORDS = 25


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """Which of the main words of the passages an answer has."""

    share: float
    """Of the main words, 0..1; 0 when the passages have none."""
    missing: tuple[str, ...]
    """The others as the passages write them, the weightiest first."""


def cover(answer: Collection[str], passages: Sequence[Passage], question: frozenset[str]) -> Coverage:
    """What an answer with these keys has of what the passages say about a question with those keys."""
    main = main_words(passages, question)
    missing = [key for key in main if key not in answer]
    spellings = _spellings(frozenset(missing), passages)
    return Coverage(
        share=(len(main) - len(missing)) / len(main) if main else 0.0,
        missing=tuple(spellings[key] for key in missing),
    )


def _spellings(wanted: frozenset[str], passages: Sequence[Passage]) -> dict[str, str]:
    """Each key as a passage writes it."""
    return {
        key: words[keys.index(key)]
        for passage in passages
        for keys, words in zip(passage.sentences, passage.words, strict=True)
        for key in wanted.intersection(keys)
    }


def main_words(passages: Sequence[Passage], question: frozenset[str]) -> list[str]:
    """The keys that matter most for the question, the weightiest first; without a question, for the passages."""
    sentences = [frozenset(sentence) - FUNCTION_WORDS for passage in passages for sentence in passage.sentences]
    frequency = Counter(chain.from_iterable(sentences))
    rarity_of = {count: math.log((len(sentences) + 1) / (count + 0.5)) for count in set(frequency.values())}
    rarity = {key: rarity_of[count] for key, count in frequency.items()}
    asked = question & rarity.keys()
    weights: dict[str, float] = defaultdict(float)
    for sentence in sentences:
        relevance = math.fsum(rarity[key] for key in asked & sentence) if asked else 1.0
        if relevance:
            for key in sentence:
                weights[key] += relevance * rarity[key]
    return nsmallest(_MAIN_WORDS, weights, key=lambda key: (-weights[key], key))  # ties in a fixed order
