"""The embedded judge of one checkout, in a process of its own: it scores as many records as it is told to.

    python -m judging.embedded

It says after each batch how much processor time that took, its helper's included. No text is the same as another, or the
contexts are drawn from a collection, the first of them most often, as documents are retrieved. The words are as many and as
unequally frequent as in English: the judge remembers words, and a small vocabulary would flatter it.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from serving.processes import say
from serving.processor_time import descendants, of_process

from ragspan import RagRecord, ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness

CONTEXTS = 10
COLLECTION = 2_000
"""Contexts that are drawn from where they repeat."""
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


class Alone:
    """The metrics ask the judge where they are called."""

    def __init__(self) -> None:
        self._metrics = metrics()

    def score(self, records: Sequence[RagRecord]) -> float:
        started = time.process_time()
        asyncio.run(self._score(records))
        return time.process_time() - started

    async def _score(self, records: Sequence[RagRecord]) -> None:
        for record in records:
            for metric in self._metrics:
                await metric.score(record)


class InAnEngine:
    """An engine has its helper process judge; what it emits goes nowhere."""

    def __init__(self) -> None:
        self._engine = ScoringEngine(metrics=metrics(), emitters=[])

    def score(self, records: Sequence[RagRecord]) -> float:
        helpers, started = _seconds_of_helpers(), time.process_time()
        for record in records:
            self._engine.submit(record)
        self._engine.flush(300.0)
        own = time.process_time() - started  # without the look at the helper
        return own + _seconds_of_helpers() - helpers


def _seconds_of_helpers() -> float:
    return sum(map(of_process, descendants(os.getpid())))


PLACES: dict[str, Callable[[], Alone | InAnEngine]] = {"alone": Alone, "in an engine": InAnEngine}


def metrics() -> list[Any]:
    judge = OverlapJudge()
    return [ContextAdherence(judge), Faithfulness(judge), Completeness(judge), ContextUtilization(judge)]


def records_of_different_texts() -> Iterator[RagRecord]:
    text = Texts(seed=0)
    while True:
        yield text.record([text.context() for _ in range(CONTEXTS)])


def records_of_repeated_contexts() -> Iterator[RagRecord]:
    """The contexts of a collection, each as often as its place in it is small (Zipf's law)."""
    text = Texts(seed=0)
    collection = [text.context() for _ in range(COLLECTION)]
    frequencies = list(accumulate(1 / rank for rank in range(1, COLLECTION + 1)))
    while True:
        drawn: dict[int, None] = {}
        while len(drawn) < CONTEXTS:
            drawn[text.draw.choices(range(COLLECTION), cum_weights=frequencies)[0]] = None
        yield text.record([collection[place] for place in drawn])


TRAFFIC = {"all different": records_of_different_texts, "repeated": records_of_repeated_contexts}


class Texts:
    """Makes sentences of words that look like English, contexts of a kilobyte, and records."""

    def __init__(self, *, seed: int) -> None:
        self.draw = random.Random(seed)
        self._words = [_word(self.draw) for _ in range(_VOCABULARY)]
        self._frequencies = list(accumulate(1 / rank for rank in range(1, _VOCABULARY + 1)))

    def sentence(self) -> str:
        draw = self.draw
        content = draw.choices(self._words, cum_weights=self._frequencies, k=9)
        mixed = [word for pair in zip(content, draw.choices(_FUNCTION_WORDS, k=9), strict=True) for word in pair]
        if draw.random() < 1 / 4:
            mixed[draw.randrange(len(mixed))] = str(draw.randrange(2, 5000))
        if draw.random() < 1 / 4:
            place = draw.randrange(len(mixed))
            mixed[place] = mixed[place].capitalize()
        return " ".join(mixed).capitalize() + "."

    def context(self) -> list[str]:
        return [self.sentence() for _ in range(_KILOBYTE // 80)]

    def record(self, contexts: Sequence[Sequence[str]]) -> RagRecord:
        """An answer of six sentences, half of them copied."""
        copied = [self.draw.choice(self.draw.choice(contexts)) for _ in range(3)]
        return RagRecord(
            question=self.sentence(),
            contexts=[" ".join(context).ljust(_KILOBYTE)[:_KILOBYTE] for context in contexts],
            response=" ".join([*copied, *(self.sentence() for _ in range(3))]),
        )


def _word(draw: random.Random) -> str:
    return "".join(draw.choices(_SYLLABLES, k=draw.choice((2, 2, 3)))) + draw.choice(_ENDINGS)


def main() -> None:
    say(port=0)
    makers = {name: make() for name, make in TRAFFIC.items()}
    places: dict[str, Alone | InAnEngine] = {}
    for line in sys.stdin:
        told = json.loads(line)
        records = [next(makers[told["traffic"]]) for _ in range(told["records"])]
        place = places.get(told["place"]) or places.setdefault(told["place"], PLACES[told["place"]]())
        say(seconds=place.score(records))


if __name__ == "__main__":
    main()
