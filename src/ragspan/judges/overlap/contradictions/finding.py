"""A contradiction, as it is explained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Contradiction:
    """What the response says, and what the context says in its place."""

    kind: str
    """`number`, `unit`, `date`, `negation`, `opposite`, `name`, `role`, `order`, `quantifier`, `modality`, `addition` or
    `replacement`."""
    response: str
    context: str
    """Empty where the context says nothing of the kind."""

    def __str__(self) -> str:
        if not self.context:
            return f'says "{self.response}", and the context does not'
        return f'says "{self.response}" where the context says "{self.context}"'
