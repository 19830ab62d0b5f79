"""Finds the sentence of the response that makes a claim, and the sentences of the contexts that say the same, by their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragspan.text.keys import is_content, keys, readable
from ragspan.text.sentences import places_of

_LEAST_SHARED = 0.5
"""The share of a claim's words that its sentence has."""
_MOST_OF_RESPONSE, _MOST_OF_CONTEXTS = 30_000, 80_000
"""Characters that are looked through."""


class ContextPlace(NamedTuple):
    """A sentence of a context, in characters."""

    context: int
    """0-based, into the contexts."""
    start: int
    end: int


def locate(
    claims: Sequence[str], response: str, contexts: Sequence[str]
) -> Iterator[tuple[tuple[int, int] | None, list[ContextPlace]]]:
    """Of each claim where the sentence of the response begins and ends that has most of its words, None where none has half of them.

    And the sentence of the contexts with most of its words, and one with most of the others.
    """
    said = list(places_of(response[:_MOST_OF_RESPONSE]))
    own = [_words(response[start:end]) for start, end in said]
    shown: list[ContextPlace] = []
    left = _MOST_OF_CONTEXTS
    for index, text in enumerate(contexts):
        shown += [ContextPlace(index, start, end) for start, end in places_of(text[: max(left, 0)])]
        left -= len(text)
    held = [_words(contexts[place.context][place.start : place.end]) for place in shown]
    for words in map(_words, claims):
        place, missing = _closest(words, own), words
        parts: list[ContextPlace] = []
        for _ in range(2):
            if missing and (part := _closest(missing, held)) is not None:
                parts.append(shown[part])
                missing -= held[part]
        yield None if place is None else said[place], parts


def _words(text: str) -> frozenset[str]:
    found = frozenset(keys(readable(text)))
    return frozenset(filter(is_content, found)) or found


def _closest(claim: frozenset[str], sentences: Sequence[frozenset[str]]) -> int | None:
    """The sentence with most words of the claim; of equals the one with the fewest others, then the first."""
    best = max(range(len(sentences)), key=lambda at: (len(claim & sentences[at]), -len(sentences[at])), default=None)
    is_close = best is not None and claim and len(claim & sentences[best]) >= _LEAST_SHARED * len(claim)
    return best if is_close else None
