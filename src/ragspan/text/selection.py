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
    pieces = [Piece(index, *place) for index, text in enumerate(texts) for place in _places(text)]
    language = (guess(response) or ENGLISH).quick
    said = content_of(language.keys(response))
    shared = [said.intersection(language.keys(texts[piece.text][piece.start : piece.end])) for piece in pieces]
    return _joined(pieces[at] for at in sorted(_chosen(pieces, shared, most)))


def _chosen(pieces: Sequence[Piece], shared: Sequence[frozenset[str]], most: int) -> set[int]:
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for at, words in enumerate(shared):
        for word in words:
            holders[word].append(at)
    weight = {word: math.log(1 + len(pieces) / len(places)) for word, places in holders.items()}
    worth = [math.fsum(weight[word] for word in words) for words in shared]
    by_worth = sorted((at for at in range(len(pieces)) if worth[at]), key=lambda at: (-worth[at], at))
    chosen: set[int] = set()
    left = most
    for places in [*sorted(holders.values(), key=lambda places: (len(places), places)), *([at] for at in by_worth)]:
        best = max(places, key=lambda at: (worth[at], -at))
        length = pieces[best].end - pieces[best].start
        if chosen.isdisjoint(places) and length <= left:
            chosen.add(best)
            left -= length
    return chosen


def _places(text: str) -> Iterator[tuple[int, int]]:
    """The places of the text's pieces, each up to the end of a line, a sentence or a word."""
    start = 0
    while start < len(text):
        end = start + _PIECE
        if end < len(text):
            found = ((text.rfind(mark, start + _PIECE // 2, end), mark) for mark in _ENDS)
            end = next((place + len(mark) for place, mark in found if place >= 0), end)
        yield start, min(end, len(text))
        start = end


def _joined(pieces: Iterator[Piece]) -> list[Piece]:
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if last is not None and (last.text, last.end) == (piece.text, piece.start):
            found[-1] = last._replace(end=piece.end)
        else:
            found.append(piece)
    return found
