"""Who judges when the budget is spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

from ragspan.engine.budget import Budget
from ragspan.judges.base import ClaimVerdict, Judge, Verifier
from ragspan.judges.hhem import HHEMVerifier
from ragspan.judges.overlap import OverlapJudge
from ragspan.records import RagRecord


class ClaimsJudge:
    """The part of a judge that faithfulness asks: claims of the embedded judge, verdicts of a verifier."""

    def __init__(self, verifier: Verifier) -> None:
        self.name = verifier.name
        self._claims = OverlapJudge()
        self._verifier = verifier

    async def extract_claims(self, record: RagRecord) -> list[str]:
        return await self._claims.extract_claims(record)

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        return await self._verifier.verify_claims(record, claims)


def fallback_judge(budget: Budget) -> Judge | ClaimsJudge | None:
    """The judge that stands in for all that are paid for; None to skip their metrics."""
    fallback = budget.fallback
    if isinstance(fallback, str):
        if fallback == "skip":
            return None
        fallback = _NAMED[fallback]()
    return fallback if _is_judge(fallback) else ClaimsJudge(fallback)


def _is_judge(fallback: Judge | Verifier) -> TypeGuard[Judge]:
    return callable(getattr(fallback, "extract_claims", None))


_NAMED: dict[str, Callable[[], Judge | Verifier]] = {"overlap": OverlapJudge, "hhem": HHEMVerifier}
