"""Marks the sentences of a response that make unsupported claims.

A claim is a sentence of the response where the overlap judge found it, and a paraphrase of a part of one where a
language model did. So each claim goes to the sentence that has most of its words, if any has half of them; a claim that
finds no sentence is in the list of claims alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ragspan.judges.overlap.sentences import split_sentences
from ragspan.judges.overlap.text import is_content, keys, readable

_LEAST_SHARED = 0.5
"""Of a claim's words."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """A part of a response. All pieces together are the response, character by character."""

    text: str
    claims: tuple[int, ...] = ()
    """The numbers of the unsupported claims that the piece makes."""


def mark_claims(response: str, unsupported: Mapping[int, str]) -> list[Piece]:
    """The response in pieces, with the sentences marked that make the claims given by their numbers."""
    sentences = list(_places(response))
    words = [_words(response[start:end]) for start, end in sentences]
    claims_at: dict[int, list[int]] = {}
    for number, claim in unsupported.items():
        place = _closest(_words(claim), words)
        if place is not None:
            claims_at.setdefault(place, []).append(number)
    return list(_pieces(response, {sentences[place]: numbers for place, numbers in sorted(claims_at.items())}))


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Where each sentence begins and ends."""
    even = readable(text)  # of the same length: it replaces characters one by one
    position = 0
    for sentence in split_sentences(even):
        start = even.index(sentence, position)
        position = start + len(sentence)
        yield start, position


def _words(text: str) -> frozenset[str]:
    found = frozenset(keys(readable(text)))
    return frozenset(filter(is_content, found)) or found


def _closest(claim: frozenset[str], sentences: Sequence[frozenset[str]]) -> int | None:
    """The sentence with most words of the claim; of equals the one with the fewest others, then the first."""
    if not claim or not sentences:
        return None
    best = max(range(len(sentences)), key=lambda place: (len(claim & sentences[place]), -len(sentences[place]), -place))
    return best if len(claim & sentences[best]) >= _LEAST_SHARED * len(claim) else None


def _pieces(text: str, marked: Mapping[tuple[int, int], Sequence[int]]) -> Iterator[Piece]:
    position = 0
    for (start, end), numbers in marked.items():
        if start > position:
            yield Piece(text=text[position:start])
        yield Piece(text=text[start:end], claims=tuple(numbers))
        position = end
    if position < len(text):
        yield Piece(text=text[position:])
