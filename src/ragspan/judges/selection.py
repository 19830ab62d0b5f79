"""Chooses what of long texts a judge reads: their beginnings, or the pieces that speak of what a response speaks of.

Neither age nor place tells what an answer rests on: it may be the newest result of a tool or the end of a page. Words do.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from ragspan.text.keys import content_of
from ragspan.text.languages import ENGLISH, guess
from ragspan.text.limits import beginning, fair_limit, size_of

_PIECES = re.compile(r"(?s).{200,400}(?:(?<=\n)|(?<=\. )|(?<=\u3002))|.{1,400}(?:(?<= )|\Z)|.{1,400}")
"""Pieces end after a line or a sentence, or else after a word."""


class Piece(NamedTuple):
    """A part of one of the texts."""

    text: int  # 0-based, into the texts
    start: int
    end: int  # in characters of that text


def select(texts: Sequence[str], response: str, most: int) -> list[Piece]:
    """The pieces with most of the response's words, `most` characters of them, in order; neighbours are one piece.

    Rare words count more. Texts that fit are whole.
    """
    if sum(map(len, texts)) <= most:
        return [Piece(index, 0, len(text)) for index, text in enumerate(texts) if text]
    pieces = [Piece(index, *found.span()) for index, text in enumerate(texts) for found in _PIECES.finditer(text)]
    language = guess(response) or ENGLISH
    said = content_of(language.keys(response))
    held = {piece: said.intersection(language.keys(texts[piece.text][piece.start : piece.end])) for piece in pieces}
    counts = Counter(chain.from_iterable(held.values()))
    worth = {word: math.log(1 + len(pieces) / count) for word, count in counts.items()}
    by_worth = sorted(filter(held.get, held), key=lambda one: (-math.fsum(map(worth.__getitem__, held[one])), one))
    chosen: list[Piece] = []
    for piece in by_worth:
        if piece.end - piece.start <= most:
            chosen.append(piece)
            most -= piece.end - piece.start
    joined: list[Piece] = []
    for piece in sorted(chosen):
        if joined and (joined[-1].text, joined[-1].end) == (piece.text, piece.start):
            joined[-1] = joined[-1]._replace(end=piece.end)
        else:
            joined.append(piece)
    return joined


def beginnings(texts: Sequence[str], room: int) -> list[str]:
    """The beginnings of texts that share a room; short ones stay whole."""
    limit = fair_limit([size_of(text) for text in texts], room)
    return [beginning(text, limit) for text in texts]
