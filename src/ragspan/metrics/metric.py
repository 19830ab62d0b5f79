"""What a metric is, and what the metrics that ask a judge have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

from ragspan.arguments import SHARE, has_methods
from ragspan.exceptions import JudgeError
from ragspan.judges.detector import Detector
from ragspan.judges.judge_protocols import NOT_APPLICABLE, ClaimVerdict, ContextRating, Judge, Named
from ragspan.judges.jury import Jury
from ragspan.judges.session import JudgingSession, session_of
from ragspan.outcomes import Label, MetricFailure, NotApplicable, Outcome, Score
from ragspan.records import RagRecord
from ragspan.text.answers import states_nothing
from ragspan.text.responses import declines
from ragspan.turns import give_turn

REFUSAL: Final = "refusal"
_UNKNOWN: Final[Mapping[str, str]] = {
    "picture": "a document is a picture or a file, which cannot be read here",
    "provider_search": "the provider searched by itself, and its documents were not seen",
    "unseen_prompt": "no call of a model was seen, or not its prompt",
    "unmarked_text": "a prompt holds text of which nothing shows where it comes from",
    "earlier_answer": "the answer rests on an earlier answer of the conversation",
    "too_much": "the prompts are longer than is looked through",
}
_Judge = TypeVar("_Judge", bound=Named)
_Verdict = TypeVar("_Verdict", ClaimVerdict, ContextRating)


class Metric(Protocol):
    """Turns a record into an outcome.

    The usual form is a dataclass with a `name` and `async def score`. A plain `def score` runs in a thread. What it
    raises becomes a `MetricFailure`. With a method `announce(record, session)` it says before its run what it will ask its judge.
    """

    @property
    def name(self) -> str:
        """Lower case with underscores: it becomes a part of attribute names."""
        ...

    def score(self, record: RagRecord) -> Outcome | Awaitable[Outcome]: ...


@runtime_checkable
class Screening(Protocol):
    """A metric that knows from the record alone, before any judge is paid, that it does not apply."""

    def screen(self, record: RagRecord) -> NotApplicable | None: ...


def screen_status(record: RagRecord) -> NotApplicable | None:
    by_status = {"aborted": "answer_aborted", "error": "answer_error", "interrupted": "interrupted"}
    reason = by_status.get(record.status)
    return reason and NotApplicable(reason=reason, detail=record.error_type)  # type: ignore[return-value]


def screen_response(record: RagRecord) -> NotApplicable | None:
    return None if (record.response or "").strip() else NotApplicable(reason="no_response")


def screen_question(record: RagRecord) -> NotApplicable | None:
    return None if (record.question or "").strip() else NotApplicable(reason="no_question")


def screen_contexts(record: RagRecord) -> NotApplicable | None:
    if record.contexts is None:
        why = "nothing shows which documents the model saw"
        if record.prompts_seen:
            why += '; unknown_contexts="prompt" takes a prompt of eight words and more beside the question as evidence'
        return NotApplicable(reason="contexts_unknown", detail=_UNKNOWN.get(record.contexts_unknown or "", why))
    has_text = any(context.text.strip() for context in record.contexts)
    return None if has_text else NotApplicable(reason="no_contexts")


def screen_claims(record: RagRecord) -> NotApplicable | None:
    """Greetings, thanks, offers and questions back state nothing that a context could hold."""
    return NotApplicable(reason="no_claims") if states_nothing(record.response or "") else None


class Guide(NamedTuple):
    """What a reader of scores has to know about a metric, in the words of `docs/metrics.md`."""

    question: str
    when_low: str | None = None


@dataclass(frozen=True, slots=True)
class JudgedMetric(Generic[_Judge]):
    """A metric that asks a judge.

    A subclass names the questions that it asks and when it does not apply, and has the formula in `evaluate`.

    Raises:
        ConfigurationError: an argument is wrong, or the judge cannot answer the question; the message names it.
    """

    judge: _Judge
    _: KW_ONLY
    threshold: float = 0.5
    """Values from here on pass, 0..1."""

    name = "judged"
    guide: ClassVar[Guide | None] = None
    """A metric of this package has one, and is known by its name wherever metrics are chosen."""
    questions: ClassVar[tuple[str, ...]] = ()
    """The methods of the judge that the metric calls."""
    screens: ClassVar[tuple[Callable[[RagRecord], NotApplicable | None], ...]] = (
        *(screen_status, screen_response),
        *(screen_contexts, screen_claims),
    )
    """The first that returns a reason says why the metric does not apply."""
    spares_right_refusals: ClassVar[bool] = False
    """A response that declines as a whole has no score where that is right: a judge says so by finding it grounded or complete."""
    takes_jury: ClassVar[bool] = False
    """A jury votes; else its first judge is the metric's, and the score names that one."""

    def __post_init__(self) -> None:  # `super()` does not work with slots: subclasses call it by the name of the class
        if isinstance(self.judge, Jury) and not self.takes_jury:
            object.__setattr__(self, "judge", self.judge.first)
        require_judge("judge", self.judge, self.questions, metric=self.name)
        SHARE.check_fields(self, "threshold")

    def screen(self, record: RagRecord) -> NotApplicable | None:
        return next((reason for screen in self.screens if (reason := screen(record))), None)

    def asks(self, record: RagRecord) -> Iterable[tuple[str, Any]]:  # noqa: ARG002 - for some metrics it depends on the record
        """The questions that the metric will ask about the record, each with what it wants; see `JudgingSession.expect`."""
        return [(question, 1) for question in self.questions]

    def announce(self, record: RagRecord, session: JudgingSession) -> None:
        """Tell a judge that answers all questions about a record in one request what this metric will ask."""
        judge: Any = self.judge
        judges = judge.judges if isinstance(judge, Jury) else [judge]
        if any(getattr(one, "answers_together", False) for one in judges) and self.screen(record) is None:
            for question, wanted in self.asks(record):
                for one, count in judge.shares(wanted) if isinstance(judge, Jury) else [(judge, wanted)]:
                    session.expect(one, question, count)

    async def score(self, record: RagRecord) -> Outcome:
        """The outcome. A `JudgeError` becomes a `MetricFailure`, or a `NotApplicable` where its type is one of those."""
        reason = self.screen(record)
        if reason is not None:
            return reason
        give_turn()
        self.announce(record, session_of(record))
        try:
            outcome = await self.evaluate(record)
        except JudgeError as error:
            kind, words = error.error_type, str(error)
            if kind in NOT_APPLICABLE:
                return NotApplicable(reason=kind, detail=words)
            return MetricFailure(error_type=kind, message=words, outage=error.outage, status=error.status)
        give_turn()
        if self.spares_right_refusals and isinstance(outcome, Score) and declines(record.response or ""):
            is_right = outcome.label == "pass" or (outcome.label is None and outcome.value == 1)
            return NotApplicable(reason=REFUSAL) if is_right else outcome
        return outcome

    async def evaluate(self, record: RagRecord) -> Outcome:
        """Ask the judge about a record that the metric applies to.

        Raises:
            JudgeError: there are no verdicts, or too few.
        """
        raise NotImplementedError

    def scored(
        self,
        record: RagRecord,
        value: float,
        *,
        explanation: str | None,
        evidence: Sequence[object],
        details: Mapping[str, float],
        label: Label | Literal["by_value"] | None = "by_value",
        verifier: Named | None = None,
    ) -> Score:
        """The score of a record.

        It has neither label nor threshold if `label` is None, or if the judge's answers to the metric's questions only rank.
        `details["read"]` is the share of the texts' characters that the judge read, where it did not read all of them. If
        a verifier gave the verdicts, the score names it as its judge; the prompts are still the judge's.
        """
        # What `Judge` says that a judge may have besides.
        ranks = label is None or not set(self.questions).isdisjoint(getattr(self.judge, "only_ranks", ()))
        read: float = getattr(self.judge, "share_read", lambda _: 1.0)(record)
        return Score(
            value=value,
            explanation=explanation,
            threshold=None if ranks else self.threshold,
            label=None if ranks or label == "by_value" else label,
            evidence=tuple(evidence),
            details={**details, **({"read": read} if read < 1 else {})},
            judge=(verifier or self.judge).name,
            prompt_version=getattr(self.judge, "prompt_version", None),
        )


def require_judge(argument: str, judge: object, questions: Sequence[str], *, metric: str) -> None:
    """Raise a `ConfigurationError` unless `judge` is an object that has all of `questions`, which are names of methods."""
    for question in questions:
        hint = (
            ""
            if hasattr(Judge, question)
            else f"; {metric} needs an LLM judge: leave it out, or set RAGSPAN_JUDGE, such as openai:gpt-4o-mini"
        )
        if isinstance(judge, Detector):
            hint = f"; {judge.name} answers adherence and faithfulness alone: leave {metric} out, or name another judge"
        has_methods(f"an object with a method {question}(){hint}", question).check(argument, judge)


def one_each(verdicts: Iterable[_Verdict], count: int, things: str) -> list[_Verdict]:
    """The first verdict for each of `count` things, in their order; verdicts for other indices do not count.

    Raises:
        JudgeError: one of them has no verdict (`missing_verdicts`).
    """
    first: dict[int, _Verdict] = {}
    for verdict in verdicts:
        first.setdefault(verdict.index, verdict)
    missing = sum(index not in first for index in range(count))
    if missing:
        raise JudgeError("missing_verdicts", f"{missing} of {count} {things} have no verdict")
    return [first[index] for index in range(count)]
