"""The sentences of a context as an LLM judge is asked about them, each with its place in the text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ragspan.judges.overlap.sentences import places_of

MAX_SENTENCES = 100
"""Of one context; beyond that, neighbours count as one."""

_BEGINNING = 48
"""Characters of a sentence by which it can be found in its context."""
LONGEST_LINE = _BEGINNING + 16
"""Characters that the list holds for a sentence, its number included."""


def split_context(text: str, most: int = MAX_SENTENCES) -> list[str]:
    """The text in pieces, sentence by sentence, that make the whole text when put together again; none if it is blank."""
    starts = [start for start, _ in places_of(text)]
    pieces = [text[start:end] for start, end in pairwise([0, *starts[1:], len(text)])] if text.strip() else []
    at_a_time = -(-len(pieces) // min(most, MAX_SENTENCES)) or 1
    return ["".join(pieces[at : at + at_a_time]) for at in range(0, len(pieces), at_a_time)]


def list_sentences(contexts: Sequence[Sequence[str]]) -> str:
    """A line for each sentence: the context's number, the sentence's own, both from 1, and how it begins."""
    return "\n".join(
        f"{number}.{place} {_beginning(sentence)}"
        for number, sentences in enumerate(contexts, start=1)
        for place, sentence in enumerate(sentences, start=1)
    )


def used_share(sentences: Sequence[str], used: Sequence[int]) -> float:
    """The share of the text's characters in these sentences, numbered from 1; 0 where there is no text."""
    lengths = list(map(len, sentences))
    whole = sum(lengths)
    return sum(lengths[place - 1] for place in set(used)) / whole if whole else 0.0


def _beginning(sentence: str) -> str:
    words = " ".join(sentence.split())
    return words if len(words) <= _BEGINNING else f"{words[:_BEGINNING].rstrip()}..."
