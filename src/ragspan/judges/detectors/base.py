"""What a detector is asked and what it returns, and how findings become verdicts that metrics count."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ragspan.exceptions import JudgeError
from ragspan.judges.base import LANGUAGE, ClaimVerdict, Vote
from ragspan.judges.overlap.languages import languages_of
from ragspan.records import RagRecord

_TOLERANCE = 0.005
"""Processors and devices differ by less than a thousandth, loaders that are wrong by much more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """A text to check against the contexts: a claim, a sentence, or a whole response."""

    text: str
    start: int | None = None
    """Its place in the response, in characters; None for a claim in other words than the response's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What a detector says about a unit, or about a part of it."""

    unit: int
    """0-based, into the units that were asked about."""
    supported: bool
    probability: float | None = None
    """That the contexts support the text, 0..1; None where the detector gives no number."""
    start: int = 0
    """Where the text begins, in characters of the unit."""
    end: int | None = None
    """Where it ends; None is the unit's end."""
    context: int | None = None
    """0-based, the context that the finding rests on; None is all of them together."""
    explanation: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferencePair:
    """A pair whose probability the authors of a detector published."""

    premise: str
    hypothesis: str
    probability: float


class Detector(ABC):
    """Finds texts that the contexts do not support. It serves `Faithfulness(verifier=)` and `ContextAdherence`.

    A subclass implements `detect` and declares what it is. A unit is supported when all of its findings say so. A unit
    without any finding has no verdict: then there is no score, so that a detector that answers half never passes for one
    that found nothing.
    """

    name: str
    """Who judged, in every score; other weights have another name."""
    revision: str | None = None
    """Of the weights; None where only the server knows."""
    languages: frozenset[str] | None = None
    """ISO 639-1 codes that it was trained for; a response in another language is not applicable (`language`). None is any."""
    reference_pairs: Sequence[ReferencePair] = ()
    """Pairs that it has to give the published probabilities for before it scores anything."""
    _is_checked = False

    @abstractmethod
    async def detect(self, record: RagRecord, units: Sequence[Unit]) -> list[Finding]:
        """At least one finding for each unit that could be checked.

        Raises:
            JudgeError: nothing could be checked.
        """

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        """A verdict for each claim; none at all if the record has no context with text."""
        response = record.response or ""
        units = [Unit(text=claim, start=None if (at := response.find(claim)) < 0 else at) for claim in claims]
        findings = await self._findings(record, units)
        return [
            ClaimVerdict(
                index=index,
                supported=worst.supported,
                claim=claim,
                explanation=worst.explanation,
                probability=worst.probability,
            )
            for index, claim in enumerate(claims)
            if (worst := _worst(finding for finding in findings if finding.unit == index)) is not None
        ]

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        """The same vote `votes` times: whether the contexts support the response as a whole."""
        findings = await self._findings(record, [Unit(text=record.response or "", start=0)])
        worst = _worst(findings)
        if worst is None:
            return []
        vote = Vote(grounded=worst.supported, explanation=worst.explanation, probability=worst.probability)
        return [vote] * votes

    async def _findings(self, record: RagRecord, units: Sequence[Unit]) -> list[Finding]:
        if not units or not any(context.text.strip() for context in record.contexts or ()):
            return []
        self._require_language(record)
        await self._require_reference_values()
        return await self.detect(record, units)

    def _require_language(self, record: RagRecord) -> None:
        if self.languages is None:
            return
        found = languages_of(
            record.response or "", [context.text for context in record.contexts or ()], record.question or ""
        )
        for language in (found.response, found.contexts):
            if language.code not in self.languages:
                known = ", ".join(sorted(self.languages))
                raise JudgeError(LANGUAGE, f"{self.name} knows {known}, and not {language.name}")

    async def _require_reference_values(self) -> None:
        if self._is_checked or not self.reference_pairs:
            return
        probabilities = []
        for pair in self.reference_pairs:
            record = RagRecord(question="", contexts=[pair.premise], response=pair.hypothesis)
            worst = _worst(await self.detect(record, [Unit(text=pair.hypothesis, start=0)]))
            probabilities.append(math.nan if worst is None else _probability(worst))
        require_reference_values(probabilities, self.reference_pairs, name=self.name)
        self._is_checked = True


def _worst(findings: Iterable[Finding]) -> Finding | None:
    """The finding that decides: one that is not supported before all others, then the least probable."""
    return min(findings, key=lambda finding: (finding.supported, _probability(finding)), default=None)


def _probability(finding: Finding) -> float:
    return float(finding.supported) if finding.probability is None else finding.probability


def require_reference_values(probabilities: Sequence[float], references: Sequence[ReferencePair], *, name: str) -> None:
    """Raise unless the probabilities are the published ones of these pairs, in their order.

    A loader can go wrong without an error. Weights that went to the wrong place, another tokenizer or another prompt
    still give numbers between 0 and 1, and nothing else would show that they mean nothing.

    Raises:
        JudgeError: they are not (`hhem_reference_mismatch` for `hhem`).
    """
    differences = [
        abs(probability - reference.probability)
        for probability, reference in zip(probabilities, references, strict=True)
    ]
    wrong = sum(not difference <= _TOLERANCE for difference in differences)  # NaN is wrong, too
    if wrong:
        raise JudgeError(
            f"{name}_reference_mismatch",
            f"{wrong} of the {len(references)} published reference pairs get another probability, by up to "
            f"{max(differences):.3f}: these are not the weights and the tokenizer of the published {name}, or this device "
            "computes something else; a model of your own has no such pairs",
        )
