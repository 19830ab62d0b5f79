"""Parts of an answer, by where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

PartKind: TypeAlias = Literal[
    "thought", "code_fence", "markup", "sources", "citation", "heading", "courtesy", "question", "framing"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A part of an answer that states no fact."""

    kind: PartKind
    start: int
    """In characters of the answer."""
    end: int


def marked(length: int, places: Iterable[tuple[int, int]]) -> bytearray:
    """One for each character that lies in one of the places, else 0."""
    marks = bytearray(length)
    for start, end in places:
        marks[start:end] = b"\1" * (min(end, length) - start)
    return marks


def found(pattern: re.Pattern[str], signs: Sequence[str], text: str) -> Iterator[re.Match[str]]:
    """The matches of an expression, of which a text with one has one of these signs, or without signs one that is not ASCII.

    Most texts need no further look.
    """
    may_match = any(map(text.__contains__, signs)) if signs else not text.isascii()
    return pattern.finditer(text) if may_match else iter(())
