"""The embedded judge: it answers by the overlap of words, without a model and without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from ragspan.judges.background import as_evidence, shown_background
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, Rating, Vote
from ragspan.judges.screen.analysis import Analysis
from ragspan.judges.screen.grading import UNRELATED, is_unrelated, probability
from ragspan.judges.screen.relevance import are_useful, conveyed_share, held_shares, rate_coverage
from ragspan.judges.screen.wording import explain_answer, explain_claim, quoted
from ragspan.judges.session import session_of
from ragspan.records import RagRecord, as_contexts

_NOT_THERE, _SURE = 0.5, 0.6
"""Below the one a claim stands in no document; from the other on a document supports one that the contexts do not."""


@dataclass(frozen=True, kw_only=True)
class OverlapJudge:
    """Screens responses by words, numbers and names, without a model: deterministic, pure Python.

    A response fails only by a finding that the explanation quotes: a number that no context holds and that does not follow
    from others, another number or date, a denial or an opposite, a name of which no part stands there, exchanged roles, a flag
    of JSON; or if hardly anything of three sentences or more stands in the contexts. It passes if the contexts hold nearly all
    of it and nothing is found. All others have a value that ranks them, and no label: words do not show whether an answer in
    its own words, a conclusion or a derived number is right. Other metrics than adherence and faithfulness have values only.
    In other languages than English it compares words, numbers, and in a dozen of them denials; to a response in another
    language than the contexts it does not apply (`language`).

    Bounds for one record: 80,000 characters of contexts, the longest cut first; 30,000 characters and 400 sentences of the
    response, 1,000 contexts. The rest is not read; `details["read"]` of the scores says how much was. Of more than 1,000 contexts,
    metrics of each context do not apply (`too_many_contexts`). One judge may serve any number of threads and
    event loops. An engine runs it in its helper process.
    """

    cpu_bound: ClassVar[bool] = True
    only_ranks: ClassVar[frozenset[str]] = frozenset(
        {"rate_completeness", "judge_usefulness", "measure_utilization", "rate_context_relevance"}
    )
    name: str = field(default="overlap", init=False)

    def share_read(self, record: RagRecord) -> float:
        """The share of the record's characters that lies within the bounds, 0..1."""
        return self._analysis(record).share_read

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        """The same vote `votes` times, with the probability that the response is grounded."""
        evidence = self._evidence(record)
        evidence.require_comparable()
        verdict, why, grounding = evidence.verdict, explain_answer(evidence), evidence.grounding
        is_open = verdict == "unsure"
        return [Vote(grounded=verdict == "supported", explanation=why, probability=grounding, unsure=is_open)] * votes

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        """The same rating `ratings` times, by what is covered of the contexts' main words, and how well that is grounded.

        A refusal is complete where the contexts are about something else.
        """
        analysis = self._analysis(record)
        if analysis.declines_rightly:
            return [Rating(value=1.0, explanation=f"The response declines, and {UNRELATED}.")] * ratings
        analysis.require_comparable()
        value, left_out = rate_coverage(analysis.words, analysis.index, analysis.asked, analysis.grounding)
        is_known = left_out and not is_unrelated(analysis.asked, analysis.index)
        explanation = f"The response leaves out what the contexts say here: {quoted(left_out)}." if is_known else None
        return [Rating(value=value, explanation=explanation)] * ratings

    async def extract_claims(self, record: RagRecord) -> list[str]:
        """The sentences of the response with content: refusals too, but no greetings and courtesies."""
        return [claim.text for claim in self._evidence(record).claims]

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        """A verdict for each claim, whoever extracted it."""
        evidence = self._evidence(record)
        verdicts = [(grade, evidence.verdict_on(grade)) for grade in evidence.grade(claims)]
        return [
            ClaimVerdict(
                index=index,
                verdict=verdict,
                claim=grade.sentence,
                explanation=explain_claim(grade, evidence, verdict),
                probability=probability(grade.score, evidence.language),
            )
            for index, (grade, verdict) in enumerate(verdicts)
        ]

    async def find_support(
        self, record: RagRecord, claims: Sequence[str] | None, documents: Sequence[str]
    ) -> list[tuple[str, int | None]]:
        """Claims, each with the document that holds most of it if the documents alone support it, and None if they do not."""
        if claims is None:
            verdicts = await self.verify_claims(record, await self.extract_claims(record))
            claims = [verdict.claim or "" for verdict in verdicts if not verdict.supported]
        elsewhere = Analysis(replace(record, contexts=as_contexts(documents)))
        found: list[tuple[str, int | None]] = []
        for claim, grade in zip(claims, elsewhere.grade(claims), strict=True):
            supported = probability(grade.score, elsewhere.language)
            if supported >= _SURE and grade.context is not None:
                found.append((claim, grade.context))
            elif supported < _NOT_THERE and elsewhere.share_read == 1:
                found.append((claim, None))
        return found

    async def judge_usefulness(self, record: RagRecord) -> list[ContextRating]:
        """A rating of 1 or 0 for each context: does it share nearly as much with the response as the best one?"""
        shared = self._analysis(record).shared
        words = f"shares {{:.0%}} of the response's words; the best {max(shared, default=0.0):.0%}"
        return _ratings(shared, words, list(map(float, are_useful(shared))))

    async def rate_context_relevance(self, record: RagRecord) -> list[ContextRating]:
        """For each context the share of the question's words that it holds.

        Like keyword search: a context that answers in other words has little, and one that repeats the question has all.
        """
        analysis = self._analysis(record)
        analysis.require_question()
        analysis.require_each_context()
        return _ratings(held_shares(analysis.asked, analysis.index), "holds {:.0%} of the question's words")

    async def measure_utilization(self, record: RagRecord) -> list[ContextRating]:
        """For each context that was useful, the share of its words in sentences of which the response has most words."""
        analysis = self._analysis(record)
        shares = [
            conveyed_share(analysis.words, context) if is_useful else 0.0
            for context, is_useful in zip(analysis.index.contexts, are_useful(analysis.shared), strict=True)
        ]
        return _ratings(shares, "{:.0%} of its words stand in sentences that the response shares most words with")

    def _analysis(self, record: RagRecord) -> Analysis:
        """Of the contexts alone; the same for all metrics of a record."""
        return session_of(record).get_or_make(self, lambda: Analysis(record))

    def _evidence(self, record: RagRecord) -> Analysis:
        """Of contexts and background."""

        def make() -> Analysis:
            shown = shown_background(record)
            if not shown:
                return self._analysis(record)
            documents = len(record.contexts or ()) if any(one.text.strip() for one in record.contexts or ()) else None
            return Analysis(as_evidence(record, shown), documents=documents)

        return session_of(record).get_or_make((self, "evidence"), make)


def _ratings(shares: Sequence[float], words: str, values: Sequence[float] | None = None) -> list[ContextRating]:
    """One for each context, by its share if there are no values."""
    return [
        ContextRating(index=index, value=value, explanation=words.format(share))
        for index, (share, value) in enumerate(zip(shares, values or shares, strict=True))
    ]
