"""A judge with fixed verdicts, and OpenTelemetry providers in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, Rating, Vote
from ragspan.records import RagRecord


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

    async def vote_adherence(self, record: RagRecord, votes: int) -> list[Vote]:
        text = self.explanations.get("vote")
        return [Vote(grounded=grounded, explanation=text) for grounded in _repeated(self.votes, votes)]

    async def rate_completeness(self, record: RagRecord, ratings: int) -> list[Rating]:
        return self._rate(self.ratings, ratings)

    async def extract_claims(self, record: RagRecord) -> list[str]:
        return [record.response] if self.claims is None and record.response else list(self.claims or ())

    async def verify_claims(self, record: RagRecord, claims: Sequence[str]) -> list[ClaimVerdict]:
        text = self.explanations.get("claim")
        verdicts = [_VERDICTS[supported] for supported in _repeated(self.supported, len(claims))]
        return [
            ClaimVerdict(index=index, verdict=verdict, claim=claim, explanation=text)
            for index, (claim, verdict) in enumerate(zip(claims, verdicts, strict=True))
        ]

    async def judge_usefulness(self, record: RagRecord) -> list[ContextRating]:
        text, useful = self.explanations.get("chunk"), _repeated(self.useful, len(record.contexts or ()))
        return [
            ContextRating(index=index, value=float(verdict), explanation=text) for index, verdict in enumerate(useful)
        ]

    async def rate_answer_relevance(self, record: RagRecord, ratings: int) -> list[Rating]:
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


_VERDICTS = {True: "supported", False: "unsupported", None: "unsure"}


class InMemoryTelemetry:
    """A test's own OpenTelemetry providers, and their data.

    telemetry = InMemoryTelemetry()
    emitter = OTelEmitter(tracer_provider=telemetry.tracer_provider)
    """

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracer_provider = TracerProvider(shutdown_on_exit=False)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meter_provider = MeterProvider([self._reader], shutdown_on_exit=False)

    def spans(self):
        """The spans that have ended, in that order."""
        return self._exporter.get_finished_spans()

    def measurements(self):
        """By metric name: the attributes and the value of each point (a histogram's value is its sum)."""
        data = self._reader.get_metrics_data()
        found = {}
        for resource in data.resource_metrics if data is not None else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                points = [
                    (dict(point.attributes or {}), getattr(point, "value", None) or getattr(point, "sum", None))
                    for point in metric.data.data_points
                ]
                found.setdefault(metric.name, []).extend(points)
        return found


def _repeated(values, count):
    return [values[min(place, len(values) - 1)] for place in range(count)]
