"""What a claim says otherwise than the contexts.

`comparing` asks for a claim of a response in English. `alignment` finds the context sentences that the claim rests on, and
`facts` takes both apart into clauses, `quantities` and names. Then each module looks for its kinds of contradiction. For
other languages it is `other_languages` alone, and for contexts that are JSON `flags`; for tables and records of any
kind `rows`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragspan.judges.overlap.context_reader import Place


@dataclass(frozen=True, kw_only=True, slots=True)
class Contradiction:
    """What the response says, and what the context says in its place."""

    kind: str
    """`number`, `unit`, `date`, `negation`, `opposite`, `name`, `role`, `order`, `quantifier`, `modality`, `addition` or `row`."""
    response: str
    context: str
    """Empty where the context says nothing of the kind."""
    place: Place | None = None
    """The sentence that has the context's side."""
    faces: bool = False
    """The two sides are known to be counterparts: they can be set beside each other."""
