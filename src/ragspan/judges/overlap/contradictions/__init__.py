"""What a claim says otherwise than the contexts.

`comparing` asks for a claim of a response in English. `alignment` finds the context sentences that the claim rests on, and
`facts` takes both apart into clauses, `quantities` and names. Then each module looks for its kinds of contradiction. For
other languages it is `other_languages` alone, and for contexts that are JSON `flags`; for tables and records of any
kind `rows`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Contradiction:
    """What the response says, and what the context says in its place."""

    kind: str
    """`number`, `unit`, `date`, `negation`, `opposite`, `name`, `role`, `order`, `quantifier`, `modality`, `addition` or `row`."""
    response: str
    context: str
    """Empty where the context says nothing of the kind."""

    def __str__(self) -> str:
        if not self.context:
            return f'says "{self.response}", and the context does not'
        return f'says "{self.response}" where the context says "{self.context}"'
