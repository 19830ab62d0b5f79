"""What small judges share: how their verdicts become those that metrics count, and what is checked before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from ragspan.exceptions import JudgeError
from ragspan.judges.background import as_evidence, shown_background
from ragspan.judges.judge_protocols import LANGUAGE, ClaimVerdict, Vote
from ragspan.records import RagRecord
from ragspan.text.languages import languages_of


class Detector(ABC):
    """Finds texts that contexts and background do not support: a judge for adherence and faithfulness, and a verifier.

    A subclass implements `detect` and sets the attributes below. If a text has several verdicts, the worst counts; if one has
    none, there is no score.
    """

    name: str
    """The judge's name in every score; other weights need another name."""
    languages: frozenset[str] | None = None
    """ISO 639-1 codes that it was trained for; None is any. To a response in another language it does not apply (`language`)."""
    reads_whole = True
    """Whether it votes on the response as a whole; else on its sentences, of which the worst counts."""

    @abstractmethod
    async def detect(self, record: RagRecord, texts: Sequence[str]) -> list[ClaimVerdict]:
        """At least one verdict for each text (claims, or the whole response) that could be checked, by index.

        The record's background is among its contexts, and at least one has text. Raises `JudgeError` if nothing could be checked.
        """

    async def extract_claims(self, record: RagRecord) -> list[str]:
        """The sentences of the response that state something, as the embedded judge has them."""
        from ragspan.judges import OverlapJudge

        return await OverlapJudge().extract_claims(record)

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        """The worst verdict on each claim by contexts and background; none at all if neither has text."""
        read = as_evidence(record, shown_background(record))
        contexts = [context.text for context in read.contexts or ()]
        if not claims or not any(map(str.strip, contexts)):
            return []
        if self.languages is not None:
            languages = languages_of(record.response or "", contexts, record.question or "")
            for language in (languages.response, languages.contexts):
                if language.code not in self.languages:
                    known = ", ".join(sorted(self.languages))
                    raise JudgeError(LANGUAGE, f"{self.name} knows {known}, and not {language.name}")
        found: dict[int, ClaimVerdict] = {}
        for one in await self.detect(read, claims):
            if 0 <= one.index < len(claims):
                found[one.index] = min(found.get(one.index, one), one, key=_rank)
        return [replace(found[index], claim=claims[index]) for index in sorted(found)]

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        """The same vote `votes` times: whether contexts and background support the response."""
        texts = [record.response or ""] if self.reads_whole else await self.extract_claims(record)
        verdicts = await self.verify_claims(record, texts)
        worst = min(verdicts, key=_rank, default=None)
        if worst is None or len(verdicts) < len(texts):
            return []
        return [Vote(grounded=worst.supported, explanation=worst.explanation, probability=worst.probability)] * votes


def _rank(verdict: ClaimVerdict) -> tuple[int, float]:
    """Verdicts that are not supported come first, and of these the least probable."""
    probable = float(verdict.supported) if verdict.probability is None else verdict.probability
    return ("unsupported", "unsure", "supported").index(verdict.verdict), probable
