"""Metrics that ask a judge for several votes or ratings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

from ragspan.arguments import WHOLE
from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import CANNOT_TELL, AnswerRelevanceJudge, Judge, Named, Rating, Vote
from ragspan.metrics.causes import with_causes
from ragspan.metrics.evidence import EVIDENCE_SCREENS, is_judged_anyway
from ragspan.metrics.metric import Guide, JudgedMetric, screen_contexts, screen_question, screen_response, screen_status
from ragspan.outcomes import Label, NotApplicable, Outcome, Score
from ragspan.records import RagRecord

_Answer = TypeVar("_Answer", bound="Rating | Vote")
_Judge = TypeVar("_Judge", bound=Named)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolledMetric(JudgedMetric[_Judge], Generic[_Judge, _Answer]):
    """The mean of several independent votes or ratings. More than half of them have to be valid."""

    polls: int = 3
    """Votes or ratings to ask for, at least 1; an odd number of votes cannot tie."""
    answers: ClassVar[str] = "ratings"
    """What the answers are called."""

    def __post_init__(self) -> None:
        JudgedMetric.__post_init__(self)
        WHOLE.check_fields(self, "polls")

    def asks(self, record: RagRecord) -> Iterable[tuple[str, Any]]:  # noqa: ARG002 - the same for each
        return [(question, self.polls) for question in self.questions]

    async def evaluate(self, record: RagRecord) -> Outcome:
        """The score by all votes or ratings.

        Raises:
            JudgeError: half of what was asked for, or more, is missing or not valid (`missing_verdicts`).
        """
        (question,) = self.questions
        answers: list[_Answer] = await getattr(self.judge, question)(record, self.polls)
        valid = [answer for answer in answers if 0 <= answer.value <= 1][: self.polls]
        if 2 * len(valid) <= self.polls:
            message = f"{len(valid)} of {self.polls} {self.answers} are valid, but more than half have to be"
            raise JudgeError("missing_verdicts", message)
        label, centre = self.label_of(valid), _mean(valid)
        deviation = math.sqrt(math.fsum((answer.value - centre) ** 2 for answer in valid) / len(valid))
        return self.scored(
            record,
            centre,
            explanation=self.explanation_of(valid),
            label=label,
            evidence=valid,
            details={self.answers: self.polls, f"valid_{self.answers}": len(valid), "spread": deviation},
        )

    def explanation_of(self, answers: Sequence[_Answer]) -> str | None:
        """That of the answer closest to the mean, the first of equals."""
        centre = _mean(answers)
        return min(answers, key=lambda answer: round(abs(answer.value - centre), 9)).explanation

    def label_of(self, answers: Sequence[_Answer]) -> Label | None:
        return "pass" if _mean(answers) >= self.threshold else "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextAdherence(PolledMetric[Judge, Vote]):
    """The share of a judge's votes that find the whole response grounded in the contexts and the background, 0..1.

    Single votes of a language model differ by chance, the more the closer the case is; their share measures that. A vote
    with a `probability` counts with it. A tie counts as not grounded. The explanation is that of the first vote of the majority.
    With half of the votes or fewer valid there is no score. `details["spread"]` is the standard deviation of the votes: 0 when
    they agree, 0.5 when they are divided in halves.

    Source: ChainPoll (Friel and Sanyal 2023, arXiv 2310.18344), turned round to count what is grounded.
    """

    name = "context_adherence"
    guide = Guide(
        "Does the response as a whole keep to its contexts?",
        "read the explanation. Then look at the contexts: a response cannot be grounded if they do not contain"
        " the answer (context_relevance). If they do, instruct the model to keep to them, or to say when they do"
        " not contain the answer.",
    )
    questions = ("vote_adherence",)
    takes_jury = True
    screens = EVIDENCE_SCREENS
    spares_right_refusals = True
    answers = "votes"

    def asks(self, record: RagRecord) -> Iterable[tuple[str, Any]]:
        of_claims = ("extract_claims", "verify_claims") if screen_contexts(record) else ()
        return [*PolledMetric.asks(self, record), *((question, 1) for question in of_claims)]

    async def evaluate(self, record: RagRecord) -> Outcome:
        without_documents, is_judged = screen_contexts(record), is_judged_anyway(record)
        takes_apart = hasattr(self.judge, "extract_claims")
        if without_documents and takes_apart:  # is the background what the response rests on?
            claims = await self.judge.extract_claims(record)
            if claims and not is_judged:
                verdicts = await self.judge.verify_claims(record, claims)
                claims = [claims[one.index] for one in verdicts if one.supported]
            if not claims:
                return without_documents
        score = await PolledMetric.evaluate(self, record)
        if not isinstance(score, Score) or score.label != "fail":
            return score
        if without_documents and not takes_apart and not is_judged:
            return without_documents
        if record.background_truncated:
            return NotApplicable(reason=CANNOT_TELL, detail="the prompts held more than the record keeps")
        return await with_causes(score, record, None)

    def explanation_of(self, answers: Sequence[Vote]) -> str | None:
        can_tell = [vote for vote in answers if not vote.unsure] or answers
        majority = 2 * sum(vote.grounded for vote in can_tell) > len(can_tell)
        return next(vote.explanation for vote in can_tell if vote.grounded == majority)

    def label_of(self, answers: Sequence[Vote]) -> Label | None:
        """By the votes of the judges that can tell; None where half of the judges, or more, cannot."""
        can_tell = [vote for vote in answers if not vote.unsure]
        if 2 * len(can_tell) <= len(answers):
            return None
        is_tie = 2 * sum(vote.grounded for vote in can_tell) == len(can_tell)
        return "fail" if is_tie else PolledMetric.label_of(self, can_tell)


@dataclass(frozen=True, slots=True)
class Completeness(PolledMetric[Judge, Rating]):
    """The mean of a judge's ratings of how completely the response covers what the contexts hold, 0..1.

    It says nothing about truth: a response may cover everything and invent the rest. With half of the ratings or fewer in 0..1 the metric
    fails. The explanation is that of the rating closest to the mean; `details["spread"]` is the standard deviation of the
    ratings, and a large one says that the judge is not sure.

    Source: the polling of ChainPoll (arXiv 2310.18344), with ratings in place of votes.
    """

    name = "completeness"
    guide = Guide(
        "How much of the relevant information does the response include?",
        "the prompt may ask for brevity, the response may stop early (gen_ai.response.finish_reasons), or the"
        " contexts may contain far more than the question needs.",
    )
    questions = ("rate_completeness",)
    takes_jury = True
    spares_right_refusals = True


@dataclass(frozen=True, slots=True)
class AnswerRelevance(PolledMetric[AnswerRelevanceJudge, Rating]):
    """The mean of a judge's ratings of how fully the response addresses the question, 0..1.

    It says nothing about truth: an invented answer may be perfectly relevant. A response that declines to answer has 0. It needs a
    question (`no_question`) and no contexts. The explanation and `details` are those of `Completeness`. The embedded judge cannot
    answer this: a response can be relevant without one word of the question.

    Source: answer relevance in TruLens' RAG triad, which has a language model rate it; as in Ragas, a non-committal answer scores 0.
    """

    name = "answer_relevance"
    guide = Guide(
        "Does the response address the question?",
        "see whether the response is a refusal (ragspan.answer.refusal), and whether the contexts contain an"
        " answer (context_relevance). If not, the question may have been rewritten badly, or the prompt asks for"
        " too much around the answer.",
    )
    questions = ("rate_answer_relevance",)
    screens = (screen_status, screen_response, screen_question)


def _mean(answers: Sequence[Rating | Vote]) -> float:
    """The mean of the decimals that the judge wrote."""
    values = [float(answer.value) for answer in answers]
    return values[0] if len(set(values)) == 1 else float(sum(map(Fraction, map(repr, values))) / len(values))
