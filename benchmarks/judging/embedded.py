"""How many records a second the overlap judge scores on one processor.

Every text is different, and the words are as many and as unequally frequent as in English: the judge keeps the stems of
words that it has seen, and a small vocabulary would flatter it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from itertools import accumulate

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness

PASSAGES = 10
_KILOBYTE = 1000
_VOCABULARY = 20_000
_FUNCTION_WORDS = (
    "the",
    "of",
    "and",
    "to",
    "in",
    "a",
    "is",
    "that",
    "it",
    "was",
    "for",
    "on",
    "are",
    "with",
    "as",
    "be",
)
_SYLLABLES = [first + vowel + last for first in "bcdfglmnprstv" for vowel in "aeiou" for last in ("", "n", "r", "st")]
_ENDINGS = ("", "", "s", "ed", "ing", "tion", "al", "ly")


def rates(rounds: int, records: int) -> Iterator[float]:
    """Records a second of processor time in each round, all four metrics asked; the first round warms up and is not told."""
    made = records_of_english_like_words(seed=0)
    for number in range(rounds + 1):
        batch = [next(made) for _ in range(records)]
        started = time.process_time()
        asyncio.run(_score(batch))
        seconds = time.process_time() - started
        if number:
            yield records / seconds


async def _score(records: Sequence[RagRecord]) -> None:
    judge = OverlapJudge()
    metrics = (ContextAdherence(judge), Faithfulness(judge), Completeness(judge), ContextUtilization(judge))
    for record in records:
        for metric in metrics:
            await metric.score(record)


def records_of_english_like_words(seed: int) -> Iterator[RagRecord]:
    """Ten passages of a kilobyte, and an answer of six sentences, half of them copied."""
    draw = random.Random(seed)
    words = [_word(draw) for _ in range(_VOCABULARY)]
    frequencies = list(accumulate(1 / rank for rank in range(1, _VOCABULARY + 1)))

    def sentence() -> str:
        content = draw.choices(words, cum_weights=frequencies, k=9)
        mixed = [word for pair in zip(content, draw.choices(_FUNCTION_WORDS, k=9), strict=True) for word in pair]
        if draw.random() < 1 / 4:
            mixed[draw.randrange(len(mixed))] = str(draw.randrange(2, 5000))
        if draw.random() < 1 / 4:
            place = draw.randrange(len(mixed))
            mixed[place] = mixed[place].capitalize()
        return " ".join(mixed).capitalize() + "."

    while True:
        passages = [[sentence() for _ in range(_KILOBYTE // 80)] for _ in range(PASSAGES)]
        copied = [draw.choice(draw.choice(passages)) for _ in range(3)]
        yield RagRecord(
            question=sentence(),
            contexts=[" ".join(passage).ljust(_KILOBYTE)[:_KILOBYTE] for passage in passages],
            response=" ".join([*copied, *(sentence() for _ in range(3))]),
        )


def _word(draw: random.Random) -> str:
    return "".join(draw.choices(_SYLLABLES, k=draw.choice((2, 2, 3)))) + draw.choice(_ENDINGS)
