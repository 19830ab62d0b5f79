"""What HHEM and the small judges share: how their verdicts become those that metrics count, and what is checked before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ragspan.exceptions import JudgeError
from ragspan.judges.background import as_evidence, shown_background
from ragspan.judges.judge_protocols import LANGUAGE, ClaimVerdict, Vote
from ragspan.records import RagRecord
from ragspan.text.languages import languages_of

_ORDER = ("unsupported", "unsure", "supported")
_TOLERANCE = 0.005
"""Results of processors and devices differ by less than a thousandth, those of a wrong loader by much more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReferencePair:
    """A pair whose probability the authors of a detector published."""

    premise: str
    hypothesis: str
    probability: float


class Detector(ABC):
    """Finds texts that the contexts do not support: a judge for adherence and faithfulness, and a verifier.

    A subclass implements `detect` and sets the attributes below. If a text has several verdicts, the worst counts. If one has
    none, there is no score: a detector that answers half of the questions must not pass for one that found nothing.
    """

    name: str
    """The judge's name in every score; other weights need another name."""
    languages: frozenset[str] | None = None
    """ISO 639-1 codes that it was trained for; None is any. To a response in another language it does not apply (`language`)."""
    reads_whole = True
    """Whether it votes on the response as a whole; else on its sentences, of which the worst counts."""

    @abstractmethod
    async def detect(self, record: RagRecord, texts: Sequence[str]) -> list[ClaimVerdict]:
        """At least one verdict for each text that could be checked, by index.

        Args:
            record: at least one of its contexts has text.
            texts: claims, or the whole response.

        Raises:
            JudgeError: nothing could be checked.
        """

    async def extract_claims(self, record: RagRecord) -> list[str]:
        """The sentences of the response that state something, as the embedded judge has them."""
        from ragspan.judges import OverlapJudge

        return await OverlapJudge().extract_claims(record)

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        """A verdict for each claim; none at all if the record has neither a context with text nor background."""
        return [replace(verdict, claim=claims[verdict.index]) for verdict in await self._verdicts(record, claims)]

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        """The same vote `votes` times: whether contexts and background support the response."""
        texts = [record.response or ""] if self.reads_whole else await self.extract_claims(record)
        verdicts = await self._verdicts(record, texts)
        worst = _worst(verdicts)
        if worst is None or len(verdicts) < len(texts):
            return []
        vote = Vote(grounded=worst.supported, explanation=worst.explanation, probability=worst.probability)
        return [vote] * votes

    async def _verdicts(self, record: RagRecord, texts: Sequence[str]) -> list[ClaimVerdict]:
        """The worst verdict on each text, by the contexts; what they do not support may have its support in the background.

        Background only adds: of a text's two verdicts the better one counts.
        """
        found = await self._worst_by(record, texts)
        shown = shown_background(record)
        open_texts = [index for index in range(len(texts)) if index not in found or not found[index].supported]
        if not shown or not open_texts:
            return list(found.values())
        further = await self._worst_by(as_evidence(record, shown), [texts[index] for index in open_texts])
        for place, verdict in further.items():
            index = open_texts[place]
            better = replace(verdict, index=index)
            found[index] = max(found.get(index, better), better, key=_rank)
        return [found[index] for index in sorted(found)]

    async def _worst_by(self, record: RagRecord, texts: Sequence[str]) -> dict[int, ClaimVerdict]:
        """By index the worst verdict on each text by the record's contexts; none if no context has text."""
        if not texts or not any(context.text.strip() for context in record.contexts or ()):
            return {}
        self._require_language(record)
        verdicts = await self.detect(record, texts)
        worst = (_worst(one for one in verdicts if one.index == index) for index in range(len(texts)))
        return {verdict.index: verdict for verdict in worst if verdict is not None}

    def _require_language(self, record: RagRecord) -> None:
        if self.languages is None:
            return
        contexts = [context.text for context in record.contexts or ()]
        found = languages_of(record.response or "", contexts, record.question or "")
        for language in (found.response, found.contexts):
            if language.code not in self.languages:
                known = ", ".join(sorted(self.languages))
                raise JudgeError(LANGUAGE, f"{self.name} knows {known}, and not {language.name}")


def _worst(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict | None:
    """The verdict that decides: one that is not supported, if there is one, and of these the least probable."""
    return min(verdicts, key=_rank, default=None)


def _rank(verdict: ClaimVerdict) -> tuple[int, float]:
    probable = float(verdict.supported) if verdict.probability is None else verdict.probability
    return _ORDER.index(verdict.verdict), probable


def require_reference_values(probabilities: Sequence[float], references: Sequence[ReferencePair], *, name: str) -> None:
    """Raise unless the probabilities are the published ones of these pairs, in their order.

    A loader can be wrong without an error. Weights in the wrong place, another tokenizer or another prompt still give numbers
    between 0 and 1, and only this check shows that they mean nothing.

    Raises:
        JudgeError: they are not (`hhem_reference_mismatch` for `hhem`).
    """
    pairs = zip(probabilities, references, strict=True)
    differences = [abs(probability - reference.probability) for probability, reference in pairs]
    wrong = sum(not difference <= _TOLERANCE for difference in differences)  # NaN is wrong, too
    if wrong:
        raise JudgeError(
            f"{name}_reference_mismatch",
            f"{wrong} of the {len(references)} published reference pairs get another probability, by up to "
            f"{max(differences):.3f}: these are not the weights and the tokenizer of the published {name}, or this device "
            "computes something else; a model of your own has no such pairs",
        )
