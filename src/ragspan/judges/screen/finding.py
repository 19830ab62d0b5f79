"""What a screen can quote: the words of a response that the contexts contradict or lack."""

from __future__ import annotations

from dataclasses import dataclass

from ragspan.judges.screen.contexts import Place


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What a claim says, and what a context says in its place."""

    kind: str
    """`number`, `date`, `unit`, `absent number`, `equation`, `negation`, `opposite`, `name`, `role`, `order` or `flag`."""
    response: str
    """The claim's words."""
    context: str = ""
    """The context's words; empty where it says nothing of the kind."""
    place: Place | None = None
    """The sentence that has the context's side, or comes closest."""
