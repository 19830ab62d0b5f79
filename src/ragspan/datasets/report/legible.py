"""Texts as a page may show them: what no encoder takes, or what would mislead a reader's eye, is made visible.

Escaping is not done here: it is the template's, for everything that it writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ragspan.judges.llm.fitting import fair_limit

_CONTROL_PICTURES = 0x2400
_DELETE, _DELETE_PICTURE = "\x7f", "\N{SYMBOL FOR DELETE}"
_DIRECTION = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Marks that turn the direction of what follows: with them a text may read otherwise than it is."""
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)


def legible(text: str) -> str:
    """The text with pictures for control characters, names for bidirectional marks, and no surrogates."""
    if text.isascii() and text.isprintable():
        return text
    return _UNSHOWABLE.sub(_visible, text.replace("\r\n", "\n").replace("\r", "\n"))


def _visible(match: re.Match[str]) -> str:
    character = match[0]
    if character == _DELETE:
        return _DELETE_PICTURE
    if character < " ":
        return chr(_CONTROL_PICTURES + ord(character))
    if character in "\u2028\u2029":
        return "\n"
    return f"[U+{ord(character):04X}]" if _DIRECTION.match(character) else "\N{REPLACEMENT CHARACTER}"


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
