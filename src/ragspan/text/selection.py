"""Chooses the pieces of long texts that speak of what a response speaks of.

Neither age nor place tells what an answer rests on: it may be the newest result of a tool or the end of a page. Words do.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ragspan.text.keys import content_of
from ragspan.text.languages import ENGLISH, guess

_PIECE = 400
"""Characters of a piece at most."""
_ENDS = ("\n", ". ", "\N{IDEOGRAPHIC FULL STOP}", " ")
"""Where a piece may end, the best place first."""


class Piece(NamedTuple):
    """A part of one of the texts."""

    text: int
    """0-based, into the texts."""
    start: int
    end: int
    """In characters of that text."""


def select(texts: Sequence[str], response: str, most: int) -> list[Piece]:
    """The pieces that share the response's words, in order, `most` characters of them; neighbours are one piece.

    The rarest word comes first: the piece with most of the response's words of those that have it. Once all words have a
    piece, those with most of them fill the room. Texts that fit are whole.
    """
    if sum(map(len, texts)) <= most:
        return [Piece(index, 0, len(text)) for index, text in enumerate(texts) if text]
    pieces = [piece for index, text in enumerate(texts) for piece in _pieces(index, text)]
    language = (guess(response) or ENGLISH).quick
    said = content_of(language.keys(response))
    holders: defaultdict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        for word in said.intersection(language.keys(texts[piece.text][piece.start : piece.end])):
            holders[word].append(piece)
    worth: defaultdict[Piece, float] = defaultdict(float)
    for word in sorted(holders):
        for piece in holders[word]:
            worth[piece] += math.log(1 + len(pieces) / len(holders[word]))
    best_first = sorted(worth, key=lambda piece: (-worth[piece], piece))
    chosen: set[Piece] = set()
    for some in [*sorted(holders.values(), key=lambda some: (len(some), some)), *([piece] for piece in best_first)]:
        best = min(some, key=lambda piece: (-worth[piece], piece))
        if chosen.isdisjoint(some) and best.end - best.start <= most:
            chosen.add(best)
            most -= best.end - best.start
    found: list[Piece] = []
    for piece in sorted(chosen):
        if found and found[-1][::2] == (piece.text, piece.start):
            found[-1] = found[-1]._replace(end=piece.end)
        else:
            found.append(piece)
    return found


def _pieces(index: int, text: str) -> Iterator[Piece]:
    """The pieces of a text, each up to the end of a line, a sentence or a word."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            found = ((text.rfind(mark, start + _PIECE // 2, end), mark) for mark in _ENDS)
            end = next((place + len(mark) for place, mark in found if place >= 0), end)
        yield Piece(index, start, min(end, len(text)))
        start = end
