"""Texts as a page may show them: in excerpts, legible.

Escaping is not done here: it is the template's, for everything that it writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ragspan.judges.llm.prompt_context import fair_limit
from ragspan.telemetry.values import legible


@dataclass(frozen=True, kw_only=True, slots=True)
class Excerpt:
    """A text as far as a page shows it."""

    shown: str
    """What is to be seen at once."""
    rest: str = ""
    """What can be unfolded."""
    omitted: int = 0
    """Characters that the page leaves out after that."""

    @property
    def folded(self) -> int:
        """Characters that can be unfolded."""
        return len(self.rest)


def excerpt(text: str, *, at_once: int, room: int) -> Excerpt:
    """The first `room` characters of a text, of which those from `at_once` on are folded away.

    The fold is at the end of a word where there is one nearby. A rest of a few words is not worth a fold.
    """
    text = text.strip()
    kept = text[:room]
    if len(kept) <= at_once + _NOT_WORTH_FOLDING:
        return Excerpt(shown=legible(kept), omitted=len(text) - len(kept))
    end = kept.rfind(" ", at_once - _NEARBY, at_once)
    fold = end + 1 if end > 0 else at_once
    return Excerpt(shown=legible(kept[:fold]), rest=legible(kept[fold:]), omitted=len(text) - len(kept))


def excerpts(texts: Sequence[str], *, at_once: int, room: int) -> list[Excerpt]:
    """Excerpts that together take at most `room` characters, which they share equally."""
    limit = fair_limit([len(text) for text in texts], room)
    return [excerpt(text, at_once=at_once, room=limit) for text in texts]


_NEARBY = 40
_NOT_WORTH_FOLDING = 120
