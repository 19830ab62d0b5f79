"""Faithfulness: how many of the claims that the response makes do the contexts support?"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import ClassVar

from ragspan.judges.judge_catalogue import judge_part
from ragspan.judges.judge_protocols import ClaimVerdict, Judge, Verifier
from ragspan.metrics.causes import with_causes
from ragspan.metrics.evidence import EVIDENCE_SCREENS, is_judged_anyway, scored_share
from ragspan.metrics.metric import Guide, JudgedMetric, one_each, require_judge, screen_contexts
from ragspan.outcomes import NotApplicable, Outcome, Score
from ragspan.records import RagRecord
from ragspan.turns import with_turns

_SHOWN_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Faithfulness(JudgedMetric[Judge]):
    """The share of the response's claims that the contexts and the background support, 0..1.

    The judge takes the response apart into claims and then gives one verdict on each: supported, unsupported or unsure. The
    value is supported / (supported + unsupported); an unsure claim to which the judge gives a probability counts with that.
    If the unsure claims decide whether it passes, the score has no label, or without such probabilities there is none
    (`cannot_tell`). `details["unsure"]` counts them. A claim without a verdict means that there is no score. A response
    without any claim, such as a greeting, is not applicable (`no_claims`).

    The threshold is higher than that of other metrics because an answer that is half invented is not good: with the
    default of 0.8, a response of four claims or fewer must have all of them supported.

    Source: faithfulness in Ragas, which divides by the verdicts returned and has NaN where there is no claim.
    """

    threshold: float = 0.8
    """Values from here on pass, 0..1."""
    name = "faithfulness"
    guide = Guide(
        "Which of its claims do the contexts support?",
        "the explanation lists what to look for: inventions, knowledge from the model's training, or facts from"
        " documents that did not reach the prompt. With the default threshold of 0.8, a response of four claims or"
        " fewer must have all of them supported.",
    )
    questions: ClassVar[tuple[str, ...]] = ("extract_claims", "verify_claims")
    screens = EVIDENCE_SCREENS
    spares_right_refusals = True

    async def evaluate(self, record: RagRecord) -> Outcome:
        claims = await self.judge.extract_claims(record)
        without_documents = screen_contexts(record)
        if not claims:
            return without_documents or NotApplicable(reason="no_claims")
        verdicts, verifier = list[ClaimVerdict](), getattr(self, "verifier", self.judge)
        found = one_each(await verifier.verify_claims(record, claims), len(claims), "claims")
        for verdict, claim in with_turns(zip(found, claims, strict=True)):
            # A claim may have its support in background that the record could not keep.
            is_open = record.background_truncated and verdict.verdict == "unsupported"
            settled = replace(verdict, verdict="unsure", probability=None) if is_open else verdict
            verdicts.append(settled if settled.claim == claim else replace(settled, claim=claim))
        if without_documents and not is_judged_anyway(record) and not any(verdict.supported for verdict in verdicts):
            return without_documents
        names = list(map(_shown, verdicts))
        outcome = scored_share(self, record, verdicts, what="claims", names=names, verifier=verifier)
        if not isinstance(outcome, Score):
            return outcome
        return await with_causes(outcome, record, [one.claim or "" for one in verdicts if one.verdict == "unsupported"])


def _shown(verdict: ClaimVerdict) -> str:
    """The claim on one line, cut if it is long, and what the judge says of it."""
    claim, said = " ".join((verdict.claim or "").split()), " ".join((verdict.explanation or "").split())
    claim = claim if len(claim) <= _SHOWN_CHARS else f"{claim[: _SHOWN_CHARS - 3]}..."
    return f"{claim} ({said})" if said else claim


@dataclass(frozen=True, slots=True)
class FaithfulnessWithHHEM(Faithfulness):
    """The share of the response's claims that a classifier finds supported by the contexts, 0..1.

    As `Faithfulness`, but only the claims are the judge's: the verdicts are the verifier's, Vectara's HHEM or another
    classifier, which costs no tokens. `Score.judge` names the verifier.

    Source: faithfulness with HHEM in Ragas.

    Args:
        verifier: gives the verdicts; None makes a `HHEMVerifier` (`pip install 'ragspan[hhem]'`).

    Raises:
        ConfigurationError: as in `JudgedMetric`; or the package with HHEM is not installed.
    """

    verifier: Verifier | None = None
    _: KW_ONLY
    name: str = "faithfulness_hhem"
    """What the score is called; another detector in HHEM's place gets another name."""
    guide = Guide(
        "The same, by a classifier",
        "look at the claims that the explanation lists, and at the probabilities in evidence: near 0.5 the"
        " classifier is unsure. If faithfulness differs, read the claims on which they do.",
    )
    questions = ("extract_claims",)

    def __post_init__(self) -> None:
        JudgedMetric.__post_init__(self)
        if self.verifier is None:
            object.__setattr__(self, "verifier", judge_part("hhem")())
        require_judge("verifier", self.verifier, ["verify_claims"], metric=self.name)
