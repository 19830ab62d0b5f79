"""Tools for the tests of ragspan's users: what keeps records, scores and spans, a judge with fixed verdicts, and an assertion.

sink = RecordingSink()
chain.invoke(question, config={"callbacks": [RagspanCallbackHandler(sink=sink)]})
assert sink.records()[0].response == "..."
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ragspan.arguments import SHARE
from ragspan.counted import counted
from ragspan.exceptions import TableError
from ragspan.judges.judge_catalogue import JudgeChoice
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, ContextVerdict, Rating, Verdict, Vote
from ragspan.outcomes import ScoredRecord
from ragspan.records import Capture, RagRecord
from ragspan.telemetry.emitter_protocols import ScoreEmitter

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

__all__ = ["FakeJudge", "InMemoryTelemetry", "RecordingEmitter", "RecordingSink", "assert_scores"]

_T = TypeVar("_T")


class RecordingSink:
    """Keeps captures, and makes records of them as a worker would."""

    def __init__(self) -> None:
        self._captures: deque[Capture] = deque()

    def submit(self, capture: Capture) -> None:
        self._captures.append(capture)

    def records(self) -> list[RagRecord]:
        """The records of the captures since the last call, without those that have nothing to score."""
        captures = [self._captures.popleft() for _ in range(len(self._captures))]
        return [record for capture in captures if (record := capture.to_record()) is not None]


@dataclass
class RecordingEmitter(ScoreEmitter):
    """Keeps scored records, in the order in which they were emitted."""

    score_wait: float = 10.0
    scored: list[ScoredRecord] = field(default_factory=list)
    on_emit: Callable[[ScoredRecord], None] | None = None
    """Called with each record, for instance to set an event."""
    keep: bool = True
    """False keeps no records, for more of them than memory holds."""

    def emit(self, scored: ScoredRecord) -> None:
        if self.keep:
            self.scored.append(scored)
        if self.on_emit is not None:
            self.on_emit(scored)


@dataclass(frozen=True, kw_only=True)
class FakeJudge:
    """A judge that gives these verdicts for every record.

    The last element of a list repeats: `votes=[True, False]` gives True, False, False, ...
    """

    name: str = "fake"
    votes: Sequence[bool] = (True,)
    """Whether each vote finds the response grounded."""
    ratings: Sequence[float] = (1.0,)
    """Completeness from 0 to 1, one value for each rating."""
    claims: Sequence[str] | None = None
    """The claims in the response; None means the response itself."""
    supported: Sequence[bool | None] = (True,)
    """Whether each claim is supported; None is unsure."""
    useful: Sequence[bool] = (True,)
    """Whether each context was useful."""
    answer_relevance: Sequence[float] = (1.0,)
    """How fully the response addresses the question from 0 to 1, one value for each rating."""
    context_relevance: Sequence[float] = (1.0,)
    """How relevant each context is to the question, from 0 to 1."""
    utilization: Sequence[float] = (1.0,)
    """The share of each context that the response uses, from 0 to 1."""
    explanations: Mapping[str, str] = field(default_factory=dict)
    """By question: `vote`, `rating`, `claim`, `chunk`."""

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:  # noqa: ARG002  whatever the record
        text = self.explanations.get("vote")
        return [Vote(grounded=grounded, explanation=text) for grounded in _repeated(self.votes, votes)]

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:  # noqa: ARG002  as above
        return self._rate(self.ratings, ratings)

    async def extract_claims(self, record: RagRecord) -> list[str]:
        return [record.response] if self.claims is None and record.response else list(self.claims or ())

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:  # noqa: ARG002  as above
        text = self.explanations.get("claim")
        verdicts = [_VERDICTS[supported] for supported in _repeated(self.supported, len(claims))]
        return [
            ClaimVerdict(index=index, verdict=verdict, claim=claim, explanation=text)
            for index, (claim, verdict) in enumerate(zip(claims, verdicts, strict=True))
        ]

    async def judge_usefulness(self, record: RagRecord) -> list[ContextVerdict]:
        text, useful = self.explanations.get("chunk"), _repeated(self.useful, len(record.contexts or ()))
        return [ContextVerdict(index=index, useful=verdict, explanation=text) for index, verdict in enumerate(useful)]

    async def rate_answer_relevance(self, record: RagRecord, ratings: int) -> list[Rating]:  # noqa: ARG002  as above
        return self._rate(self.answer_relevance, ratings)

    async def rate_context_relevance(self, record: RagRecord) -> list[ContextRating]:
        return self._rate_contexts(record, self.context_relevance)

    async def measure_utilization(self, record: RagRecord) -> list[ContextRating]:
        return self._rate_contexts(record, self.utilization)

    def _rate(self, values: Sequence[float], count: int) -> list[Rating]:
        return [Rating(value=value, explanation=self.explanations.get("rating")) for value in _repeated(values, count)]

    def _rate_contexts(self, record: RagRecord, values: Sequence[float]) -> list[ContextRating]:
        text, ratings = self.explanations.get("chunk"), _repeated(values, len(record.contexts or ()))
        return [ContextRating(index=index, value=value, explanation=text) for index, value in enumerate(ratings)]


_VERDICTS: Mapping[bool | None, Verdict] = {True: "supported", False: "unsupported", None: "unsure"}


class InMemoryTelemetry:
    """A test's own OpenTelemetry providers, and their data.

    telemetry = InMemoryTelemetry()
    emitter = OTelEmitter(tracer_provider=telemetry.tracer_provider)
    """

    def __init__(self) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracer_provider: TracerProvider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meter_provider: MeterProvider = MeterProvider([self._reader], shutdown_on_exit=False)

    def spans(self) -> Sequence[ReadableSpan]:
        """The spans that have ended, in that order."""
        return self._exporter.get_finished_spans()

    def measurements(self) -> dict[str, list[tuple[Mapping[str, object], object]]]:
        """By metric name: the attributes and the value of each point (a histogram's value is its sum)."""
        data = self._reader.get_metrics_data()
        found: dict[str, list[tuple[Mapping[str, object], object]]] = {}
        for resource in data.resource_metrics if data is not None else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                points = [
                    (dict(point.attributes or {}), getattr(point, "value", None) or getattr(point, "sum", None))
                    for point in metric.data.data_points
                ]
                found.setdefault(metric.name, []).extend(points)
        return found


def assert_scores(
    records: Any,
    judge: JudgeChoice | None = None,
    *,
    passing: Mapping[str, float] | None = None,
    none_below: Mapping[str, float] | None = None,
    min_scored: float = 0.5,
    **minimums: float,
) -> None:
    """Fail a test unless the scores of each named metric are as good as they should be. It blocks a running event loop.

        assert_scores([RagRecord(question=..., contexts=[...], response=...)], faithfulness=0.8)
        assert_scores(records, passing={"faithfulness": 0.9}, none_below={"completeness": 0.3})

    Args:
        records: as for `ragspan.evaluate.evaluate`: records, dictionaries, a data frame, a path.
        judge: a judge, a name such as `"openai:gpt-4o-mini"`, or a list for a jury; by default that of `RAGSPAN_JUDGE`.
        passing: the share of the scored records that should pass, from 0 to 1, by metric.
        none_below: the score that each record should have at least, from 0 to 1, by metric.
        min_scored: the share of the records that should have a score, from 0 to 1; refusals that the judge finds right count.
        minimums: means from 0 to 1 by metric.

    Raises:
        AssertionError: scores are lower, or too few records have one; the message has the lowest scores and their reasons.
        ConfigurationError: there is no such metric.
        TableError: one of the records cannot be read.
    """
    __tracebackhide__ = True  # pytest shows the line of the test, and not this one
    from ragspan.evaluate.gates import Gate, Kind, check_gates, lowest, require_metrics
    from ragspan.evaluate.scoring import evaluate
    from ragspan.metrics.metric_catalogue import metric_names

    asked: dict[Kind, Mapping[str, float]] = {
        "mean": minimums,
        "passing": passing or {},
        "none_below": none_below or {},
    }
    gates = [Gate(metric=metric, kind=kind, minimum=least) for kind in asked for metric, least in asked[kind].items()]
    SHARE.check("min_scored", min_scored)
    if not gates:
        raise TypeError("assert_scores needs a metric and the mean it should have, such as faithfulness=0.8")
    require_metrics(gates, metric_names())
    evaluation = evaluate(records, list(dict.fromkeys(gate.metric for gate in gates)), judge=judge)
    bad = evaluation.bad_rows
    if bad:
        raise TableError(f"{counted(evaluation.bad_row_count, 'record')} cannot be evaluated; the first is {bad[0]}")
    failed = [result for result in check_gates(evaluation, gates, min_scored=min_scored) if result.trouble]
    if failed:
        lines = [line for result in failed for line in (result.trouble, *lowest(evaluation, result.gate.metric))]
        raise AssertionError("\n".join(dict.fromkeys(filter(None, lines))))


def _repeated(values: Sequence[_T], count: int) -> list[_T]:
    return [values[min(place, len(values) - 1)] for place in range(count)]
