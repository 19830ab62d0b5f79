"""Parts of an answer, by where they stand."""

from __future__ import annotations

from collections.abc import Iterable
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
