"""The outcome of a metric for a record: a score, a reason why there is none, or a failure; never NaN and never None."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Final, Literal, TypeAlias, get_args

from ragspan.records import RagRecord, SpanAnchor
from ragspan.usage import Usage

Label: TypeAlias = Literal["pass", "fail"]
Asked: TypeAlias = Literal["doubtful", "random"]
"""Why a judge that is asked about a share of the answers is asked about this one: it is doubtful, or was drawn at random."""
CauseKind: TypeAlias = Literal["lost_before_prompt", "cut", "unsupported"]
BUDGET_EXHAUSTED: Final = "budget_exhausted"
"""The reason of a `NotApplicable`, and of a fallback."""
_MARKS = {"pass": " ✓ pass", "fail": " ✗ fail"}
_LOSSES_NAMED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Cause:
    """Why the contexts do not support a claim of a failing response."""

    kind: CauseKind
    """`lost_before_prompt`: a retrieved document supports it, but did not reach the prompt. `cut`: a part of a document
    supports it, but was cut off. `unsupported`: no retrieved document supports it."""
    claim: str | None = None
    """None if the cause is that of the whole response."""
    document: int | None = None
    """The place of the supporting document in the search's results, from 1."""
    search: str | None = None
    """Name of the search that found the document; None if only a reranker is known to have had it."""
    step: str | None = None
    """Name of the step that dropped the document, if it is known."""

    @property
    def place(self) -> str:
        """Where the support was lost, in words that quote no text."""
        if self.kind == "unsupported":
            return "nothing that was retrieved"
        document = f"document {self.document}" + (f" of {self.search}" if self.search else "")
        if self.kind == "cut":
            return f"the part of {document} that was cut off"
        return f"{document}, which {f'{self.step} dropped' if self.step else 'did not reach the prompt'},"


@dataclass(frozen=True, kw_only=True, slots=True)
class ScreenScore:
    """What the embedded judge says, where a judge that is trusted more was asked as well."""

    value: float
    """From 0 (worst) to 1 (best)."""
    label: Label | None
    judge: str | None


@dataclass(frozen=True, kw_only=True)
class Score:
    """A metric's value for one record.

    Raises:
        ValueError: `value` is not a finite number from 0 to 1.
        TypeError: one of `details` is not a number.
    """

    value: float
    """From 0 (worst) to 1 (best)."""
    explanation: str | None = None
    threshold: float | None = None
    """The smallest value that passes."""
    label: Label | None = None
    """Derived from the threshold unless the metric has its own rule, for instance for a tied vote."""
    evidence: tuple[object, ...] = ()
    """The single verdicts behind the value: votes, ratings, claims or contexts."""
    details: Mapping[str, float] = field(default_factory=dict)
    """Further figures beside the value, such as the spread of the ratings."""
    judge: str | None = None
    """Who judged."""
    prompt_version: str | None = None
    """The version of the judge's prompts; None if no language model judged."""
    usage: Usage | None = None
    """The cost, also of a judge that was replaced."""
    fallback: str | None = None
    """Why another judge replaced the metric's own, such as `budget_exhausted`; None if none did."""
    causes: tuple[Cause, ...] = ()
    """For a failing score: why the contexts do not support its claims, one cause each. Unclear claims have none."""
    screen: ScreenScore | None = None
    """What the embedded judge says of the same answer, where the judge is asked about a share of the answers only."""

    def __post_init__(self) -> None:
        if not 0 <= self.value <= 1:  # not NaN either
            raise ValueError(f"a score is a number from 0 to 1, not {self.value!r}")
        if not all(isinstance(figure, Real) for figure in self.details.values()):
            raise TypeError(f"details of a score are numbers, not {dict(self.details)!r}")
        if self.label is None and self.threshold is not None:
            object.__setattr__(self, "label", "pass" if self.value >= self.threshold else "fail")

    @property
    def cause(self) -> CauseKind | None:
        """The most frequent cause; if several are, the one that an operator can do most about."""
        kinds = Counter(cause.kind for cause in self.causes)
        return max((kind for kind in get_args(CauseKind) if kind in kinds), key=kinds.__getitem__, default=None)

    @property
    def losing_step(self) -> str | None:
        """The step that lost the support of most claims of `cause`, if one is known."""
        steps = Counter(cause.step for cause in self.causes if cause.kind == self.cause)
        return max(steps, key=steps.__getitem__, default=None)

    @property
    def losses(self) -> str | None:
        """Where support was lost, without quotes; None if no retrieved document would have helped."""
        places = Counter(cause.place for cause in self.causes if cause.kind != "unsupported")
        if not places:
            return None
        losses = "; ".join(
            f"{place} supports {'a claim' if count == 1 else f'{count} claims'} that the contexts do not"
            for place, count in places.most_common(_LOSSES_NAMED)
        )
        return f"{losses[0].upper()}{losses[1:]}."

    def __str__(self) -> str:
        return f"{self.value:.2f}{_MARKS.get(self.label or '', '')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class NotApplicable:
    """Why the metric does not apply to this record."""

    reason: str
    """One of few values: `answer_aborted`, `no_contexts`, `not_sampled`, ..."""
    detail: str | None = None
    usage: Usage | None = None
    """The cost of finding that out, such as a request that found no claims."""

    def __str__(self) -> str:
        return f"not applicable: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricFailure:
    """The metric applies, but could not get a score."""

    error_type: str
    """One of few values, because it becomes an attribute."""
    message: str
    outage: bool = False
    """The judge's service failed, so that other records would fail now as well."""
    status: int | None = None
    """The HTTP status with which the service refused, where there is one."""
    usage: Usage | None = None
    """The cost, of replies that hold no verdict."""

    def __str__(self) -> str:
        return f"failed: {self.error_type}"


Outcome: TypeAlias = Score | NotApplicable | MetricFailure


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ScoredRecord:
    """A record with the outcomes of its metrics, on its way to the emitters."""

    record: RagRecord
    outcomes: Mapping[str, Outcome]
    late: bool = False
    """True the second time: these outcomes came after `score_wait`."""
    span: SpanAnchor | None = None
    """The answer's span, if an emitter started or found one."""
    refusal: bool = False
    """The response says that the contexts do not contain the answer."""
    language: str | None = None
    """The guessed language of the response: its ISO 639-1 code, or `und` if it is not known."""
    durations: Mapping[str, float] = field(default_factory=dict)
    """Seconds that each metric took."""
    asked: Asked | None = None
    """Why the judge was asked, where it is asked about a share of the answers; None if it was not, or is asked about all."""

    def __str__(self) -> str:
        """A line for each metric: its score, whether it passes, and why."""
        width = max(map(len, self.outcomes), default=0)
        lines = []
        for metric, outcome in self.outcomes.items():
            if isinstance(outcome, Score):
                words = [f"{outcome.value:.2f}  {outcome.label or '':<4}", outcome.explanation]
            elif isinstance(outcome, NotApplicable):
                words = [f"-     {outcome.reason}", outcome.detail]
            else:
                words = [f"-     {outcome.error_type}", outcome.message]
            lines.append("  ".join(filter(None, [f"{metric:<{width}}", *words])).rstrip())
        return "\n".join(lines)

    __repr__ = __str__


def each_judge(names: Iterable[str | None]) -> list[str]:
    """The judges of these names, each once: the name of a jury is those of its judges, with commas between them."""
    return list(dict.fromkeys(name for one in names if one for name in one.split(",")))
