"""Faithfulness: how many of the claims that the response makes do the contexts support?"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

from ragspan.judges.base import ClaimVerdict, Judge, Verifier
from ragspan.metrics._arguments import require_judge, require_threshold
from ragspan.metrics._scores import judged_score
from ragspan.metrics._verdicts import first_by_index, gap_failure, outcome_of
from ragspan.metrics.base import screen_answer
from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """The share of the response's claims that the contexts support, 0..1.

    The judge takes the response apart into claims and then gives one verdict on each. The denominator is the number of
    claims, not that of the verdicts that happened to come back: a claim without a verdict means that there is no score.
    A response without any claim, such as a greeting, is not applicable (`no_claims`).

    The threshold is higher than that of other metrics because half of an answer invented is no good answer: with the
    default one claim in five may be unsupported, and none of up to four.

    Source: faithfulness in Ragas, which divides by the verdicts returned and has NaN where there is no claim.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    judge: Judge
    _: KW_ONLY
    threshold: float = 0.8
    """Values from here on pass, 0..1."""
    name = "faithfulness"

    def __post_init__(self) -> None:
        require_judge("judge", self.judge, "extract_claims", "verify_claims")
        require_threshold(self.threshold)

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return screen_answer(record)

    async def score(self, record: RagRecord) -> Outcome:
        return self.screen(record) or await outcome_of(
            score_claims(record, self.judge, verifier=self.judge, threshold=self.threshold)
        )


async def score_claims(record: RagRecord, judge: Judge, *, verifier: Verifier, threshold: float) -> Outcome:
    """Faithfulness with the claims of one judge and the verdicts of another, or of the same."""
    claims = await judge.extract_claims(record)
    if not claims:
        return NotApplicable(reason="no_claims")
    by_index = first_by_index(await verifier.verify_claims(record, claims), len(claims))
    failure = gap_failure("claims", by_index, len(claims))
    if failure:
        return failure
    verdicts = [replace(by_index[index], claim=claim) for index, claim in enumerate(claims)]
    return judged_score(
        record,
        judge,
        value=supported_share(verdicts),
        explanation=_explanation(verdicts),
        threshold=threshold,
        evidence=verdicts,
        details={"claims": len(claims)},
        verifier=verifier,
    )


def supported_share(verdicts: Sequence[ClaimVerdict]) -> float:
    """Supported claims / claims (faithfulness as Ragas defines it)."""
    return sum(verdict.supported for verdict in verdicts) / len(verdicts)


def _explanation(verdicts: Sequence[ClaimVerdict]) -> str:
    unsupported = [verdict for verdict in verdicts if not verdict.supported]
    if not unsupported:
        weakest = min(verdicts, key=lambda verdict: 1.0 if verdict.probability is None else verdict.probability)
        return f"No unsupported claim was found ({len(verdicts)} compared){_reason(weakest)}."
    shown = [_shortened(verdict.claim or "") + _reason(verdict) for verdict in unsupported[:_SHOWN_CLAIMS]]
    if len(unsupported) > len(shown):
        shown.append(f"and {len(unsupported) - len(shown)} more")
    return f"{len(unsupported)} of {len(verdicts)} claims unsupported: {'; '.join(shown)}"


def _reason(verdict: ClaimVerdict) -> str:
    """Why, in brackets, from a judge that computes probabilities: it says what it compared in a few words."""
    return f" ({verdict.explanation})" if verdict.probability is not None and verdict.explanation else ""


def _shortened(claim: str) -> str:
    text = " ".join(claim.split())
    return text if len(text) <= _SHOWN_CHARS else textwrap.shorten(text, _SHOWN_CHARS, placeholder="...")


_SHOWN_CLAIMS = 5
_SHOWN_CHARS = 200
