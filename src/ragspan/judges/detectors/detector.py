"""What all detectors share: how their verdicts become those that metrics count, and what is checked before."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ragspan.exceptions import JudgeError
from ragspan.judges.background import as_evidence, shown_background
from ragspan.judges.endpoint import MAX_RETRIES, PATH, Endpoint
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
    """Finds texts that the contexts do not support. It serves `Faithfulness(verifier=)` and `ContextAdherence`.

    A subclass implements `detect` and sets the attributes below. If a text has several verdicts, the worst counts. If one has
    none, there is no score: a detector that answers half of the questions must not pass for one that found nothing.
    """

    name: str
    """The judge's name in every score; other weights need another name."""
    revision: str | None = None
    """Of the weights; None if only the server knows."""
    languages: frozenset[str] | None = None
    """ISO 639-1 codes that it was trained for; None is any. To a response in another language it does not apply (`language`)."""
    reference_pairs: Sequence[ReferencePair] = ()
    """Pairs for which it has to give the published probabilities before it scores anything."""
    _is_checked = False

    @abstractmethod
    async def detect(self, record: RagRecord, texts: Sequence[str]) -> list[ClaimVerdict]:
        """At least one verdict for each text that could be checked, by index.

        Args:
            record: at least one of its contexts has text.
            texts: claims, or the whole response.

        Raises:
            JudgeError: nothing could be checked.
        """

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        """A verdict for each claim; none at all if the record has neither a context with text nor background."""
        return [replace(verdict, claim=claims[verdict.index]) for verdict in await self._verdicts(record, claims)]

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        """The same vote `votes` times: whether contexts and background support the response as a whole."""
        worst = _worst(await self._verdicts(record, [record.response or ""]))
        if worst is None:
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
        await self._require_reference_values()
        verdicts = await self.detect(record, texts)
        worst = (_worst(one for one in verdicts if one.index == index) for index in range(len(texts)))
        return {verdict.index: verdict for verdict in worst if verdict is not None}

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
            worst = _worst(await self.detect(record, [pair.hypothesis]))
            probabilities.append(math.nan if worst is None else _probability(worst))
        require_reference_values(probabilities, self.reference_pairs, name=self.name)
        self._is_checked = True


@dataclass(kw_only=True, eq=False, repr=False)
class ServedDetector(Detector):
    """A detector behind an HTTP server. It pickles."""

    name: str
    """The judge's name in every score; give each model its own."""
    languages: frozenset[str] | None = frozenset({"en"})
    """ISO 639-1 codes that the served model was trained for; None is any."""
    revision: str | None = None
    """Of the served weights, for readers of the scores."""
    reference_pairs: Sequence[ReferencePair] = ()
    """Pairs for which the server has to give these probabilities before anything is scored."""
    api_key: str | None = None
    """Sent as a bearer token, for a server behind a gateway."""
    timeout: float = 60.0
    """Seconds for one attempt."""
    max_retries: int = MAX_RETRIES
    """Further attempts after rate limits, timeouts, and errors of the server or the connection."""
    _endpoint: Endpoint = field(init=False)

    def _aim(self, base_url: str, path: str = PATH) -> None:
        key = self.api_key or "no-key"
        self._endpoint = Endpoint(base_url, path=path, api_key=key, timeout=self.timeout, max_retries=self.max_retries)


def _worst(verdicts: Iterable[ClaimVerdict]) -> ClaimVerdict | None:
    """The verdict that decides: one that is not supported, if there is one, and of these the least probable."""
    return min(verdicts, key=_rank, default=None)


def _rank(verdict: ClaimVerdict) -> tuple[int, float]:
    return _ORDER.index(verdict.verdict), _probability(verdict)


def _probability(verdict: ClaimVerdict) -> float:
    return float(verdict.supported) if verdict.probability is None else verdict.probability


def require_reference_values(probabilities: Sequence[float], references: Sequence[ReferencePair], *, name: str) -> None:
    """Raise unless the probabilities are the published ones of these pairs, in their order.

    A loader can be wrong without an error. Weights in the wrong place, another tokenizer or another prompt still give numbers
    between 0 and 1, and only this check shows that they mean nothing.

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
