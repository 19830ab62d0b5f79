"""Which parts of a prompt may hold documents that count: those of this turn, not a model's words, and history hardly."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence

from ragspan_langchain.trace import PromptPart

_MAX_COMPARED = 20_000  # characters by which two messages are told apart


class Turn(enum.Enum):
    """Whose a part of a prompt is."""

    THIS = "this"
    """Of this turn: any document in it counts."""
    EARLIER = "earlier"
    """History: a document in it counts if this request found it, for programs put documents before the history, too."""
    SPOKEN = "spoken"
    """A model's words, which hold no documents even if they quote some."""


def turns_of(parts: Sequence[PromptPart], said: Said) -> list[Turn]:
    """The turns of a prompt's parts.

    An earlier turn ends with an assistant's message between two of a person's that no model gave in this request. Other
    assistant's messages that no model gave are of the program's making, and may hold documents.

    Args:
        parts: the prompt.
        said: what models said in this request.
    """
    people = [place for place, part in enumerate(parts) if part.role == "human"]
    made = {place for place, part in enumerate(parts) if part.role == "ai" and part.text not in said}
    end = max((place for place in made if people and people[0] < place < people[-1]), default=-1)

    def turn(place: int, role: str) -> Turn:
        if role == "ai":
            return Turn.THIS if place > end and place in made else Turn.SPOKEN
        return Turn.EARLIER if place < end and role != "system" else Turn.THIS

    return [turn(place, part.role) for place, part in enumerate(parts)]


class Said:
    """What models said; white space does not matter, for it differs between a reply and the message made of it."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = {_squeezed(text) for text in texts}
        self._known: dict[str, bool] = {}  # an agent's prompts repeat their parts

    def __contains__(self, text: str) -> bool:
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = _squeezed(text) in self._texts
        return known


def _squeezed(text: str) -> str:
    return "".join(text[:_MAX_COMPARED].split())
