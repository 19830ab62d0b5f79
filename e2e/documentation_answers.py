"""Answers about ragspan's own documentation, good and bad, as the demo's embedded model gives them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle

from ragspan import RagRecord, RetrievedContext
from ragspan.demo.corpus import Search, documentation
from ragspan.demo.extractive import answer
from ragspan.demo.script import Manner

MANNERS = (
    [Manner.GOOD],
    [Manner.GOOD],
    [Manner.INCOMPLETE],
    [Manner.GOOD],
    [Manner.GOOD, Manner.UNGROUNDED],
    [Manner.GOOD],
    [Manner.REFUSED],
    [Manner.GOOD],
    [Manner.UNGROUNDED],
)
"""Of one answer after another; one with two manners is half good and half not."""


def answered_questions() -> Iterator[RagRecord]:
    """A question about each part of the documentation, with what the search found and what the model made of it."""
    passages = documentation()
    search = Search(passages)
    parts = dict.fromkeys(passage.text.partition(": ")[0] for passage in passages)
    for number, (part, manners) in enumerate(zip(parts, cycle(MANNERS), strict=False), start=1):
        question = f"What is there to know about {part[:1].lower()}{part[1:]}?"
        found = [passage for passage, _ in search.find(question)]
        prompt = "\n".join(passage.text for passage in found)
        yield RagRecord(
            question=question,
            contexts=[
                RetrievedContext(text=passage.text, id=passage.id, source=passage.source, rank=rank)
                for rank, passage in enumerate(found)
            ],
            response=" ".join(answer(question, prompt, manner) for manner in manners),
            record_id=f"documentation-{number}",
        )
