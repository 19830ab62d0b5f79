"""The claims of one record against its contexts."""

from __future__ import annotations

from collections.abc import Sequence

from ragspan.judges.overlap.alignment import Alignment
from ragspan.judges.overlap.claims import Claim
from ragspan.judges.overlap.contexts import Context
from ragspan.judges.overlap.contradictions.additions import find_addition, find_replaced
from ragspan.judges.overlap.contradictions.aligning import Aligned, Aligner
from ragspan.judges.overlap.contradictions.arguments import find_other_argument
from ragspan.judges.overlap.contradictions.facts import SentenceFacts, compared, may_be_elsewhere, tells
from ragspan.judges.overlap.contradictions.finding import Contradiction
from ragspan.judges.overlap.contradictions.orders import find_swap
from ragspan.judges.overlap.contradictions.polarity import find_opposition
from ragspan.judges.overlap.contradictions.scope import find_other_scope
from ragspan.judges.overlap.contradictions.slots import find_other_name, find_other_quantity
from ragspan.judges.overlap.contradictions.tables import english
from ragspan.judges.overlap.languages import Language
from ragspan.judges.overlap.text import content_of, is_number


class Comparison:
    """Finds where claims contradict the contexts of one record."""

    def __init__(
        self,
        contexts: Sequence[Context],
        alignment: Alignment,
        question: frozenset[str],
        language: Language,
        *,
        lone: bool,
    ) -> None:
        """`alignment` is that of claims with these contexts. `question` holds the keys of the question; `lone` is True for a response of a sentence or two."""
        self._key = language.key
        self._tables = english()
        self._lone = lone
        self._aligner = Aligner(contexts, alignment)
        self._question = frozenset(
            word for word in map(compared, question) if tells(word) and (word in self._aligner or word == "include")
        )

    def contradictions(self, claim: Claim, absent: frozenset[str]) -> tuple[Contradiction, ...]:
        """What the claim says otherwise than the context sentences that it rests on.

        `absent` are the keys of its content words that neither the contexts nor the question hold.
        """
        if claim.text.endswith(":") or not (self._lone or _may_rest(claim, absent)):
            return ()
        facts = SentenceFacts(claim.text, self._key)
        if not self._lone and len(facts.content) < _FEW:
            return ()
        question = self._question if self._lone else frozenset[str]()
        sought = facts.content if len(facts.content) > 1 else facts.content | question
        enough = _ENOUGH if self._lone else _MOST
        aligned = self._aligner.best(sought, question, least=0.0 if self._lone else enough)
        if not aligned:
            return ()
        found = (
            [self._of_names(facts, aligned, absent), find_other_argument(facts, aligned, self._aligner)]
            if self._lone
            else []
        )
        near = [one for one in aligned if one.share >= enough]
        if near:
            found += [
                find_other_quantity(facts, aligned, question, self._aligner, enough=enough),
                find_opposition(
                    facts, aligned, question, self._tables, enough=enough, fewest=1 if self._lone else _FEW + 1
                ),
                find_swap(facts, aligned, self._tables) if self._lone else None,
                find_other_scope(facts, near) if self._lone else None,
            ]
        return tuple(one for one in found if one is not None)

    def _of_names(
        self, facts: SentenceFacts, aligned: Sequence[Aligned], absent: frozenset[str]
    ) -> Contradiction | None:
        """What is asked of responses of a sentence or two only, because it errs too often in long ones."""
        return (
            find_other_name(facts, aligned, self._question, self._aligner, enough=_ENOUGH)
            or find_addition(facts, aligned, absent)
            or find_replaced(facts, aligned, absent)
        )


def _may_rest(claim: Claim, absent: frozenset[str]) -> bool:
    """False for a claim that shares too little with any sentences, which is found out before it is taken apart."""
    if len(claim.keys) > _LONGEST:  # what is taken apart of it may share more than the whole
        return True
    missing = [word for word in absent - may_be_elsewhere() if not is_number(word)]
    return len(missing) <= (1 - _MOST) * (len(content_of(claim.keys)) + 1) + _ROUNDING


_LONGEST = 100
_ROUNDING = 1e-6
_ENOUGH, _MOST = 0.6, 0.8
_FEW = 3
