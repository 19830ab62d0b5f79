"""Faithfulness with the verdicts of a classifier: claims from a language model, verdicts without one."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from ragspan.judges.base import Judge, Verifier
from ragspan.metrics._arguments import require_judge, require_threshold
from ragspan.metrics._verdicts import outcome_of
from ragspan.metrics.base import screen_answer
from ragspan.metrics.faithfulness import score_claims
from ragspan.outcomes import NotApplicable, Outcome
from ragspan.records import RagRecord


@dataclass(frozen=True, slots=True)
class FaithfulnessWithHHEM:
    """The share of the response's claims that a classifier finds supported by the contexts, 0..1.

    As `Faithfulness`, but only the claims are the judge's: the verdicts are the verifier's, Vectara's HHEM or another
    classifier, which costs no tokens. `Score.judge` names the verifier.

    Source: faithfulness with HHEM in Ragas.

    Raises:
        ConfigurationError: an argument is wrong; the message names it.
    """

    judge: Judge
    verifier: Verifier
    _: KW_ONLY
    threshold: float = 0.8
    """Values from here on pass, 0..1."""
    name: str = "faithfulness_hhem"
    """What the score is called; another detector in HHEM's place gets another name."""

    def __post_init__(self) -> None:
        require_judge("judge", self.judge, "extract_claims")
        require_judge("verifier", self.verifier, "verify_claims")
        require_threshold(self.threshold)

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return screen_answer(record)

    async def score(self, record: RagRecord) -> Outcome:
        return self.screen(record) or await outcome_of(
            score_claims(record, self.judge, verifier=self.verifier, threshold=self.threshold)
        )
