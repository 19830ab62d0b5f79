from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from measured import points_of
from opentelemetry import _logs, metrics, trace
from opentelemetry._logs import _internal as logs_internal
from opentelemetry.metrics import _internal as metrics_internal
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs import export as logs_export
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler
from opentelemetry.util._once import Once

from ragspan.outcomes import Outcome, ScoredRecord
from ragspan.records import Generation, RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan.telemetry import OTelEmitter

STARTED = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
InMemoryLogExporter = getattr(logs_export, "InMemoryLogRecordExporter", None) or logs_export.InMemoryLogExporter


@dataclass(frozen=True)
class Telemetry:
    """The real SDK, exporting into memory."""

    sampler: Sampler = ALWAYS_ON
    limits: SpanLimits = field(default_factory=SpanLimits)
    tracer_provider: TracerProvider = field(init=False)
    meter_provider: MeterProvider = field(init=False)
    logger_provider: LoggerProvider = field(init=False)
    span_exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    metric_reader: InMemoryMetricReader = field(default_factory=InMemoryMetricReader)
    log_exporter: Any = field(default_factory=InMemoryLogExporter)

    def __post_init__(self):
        tracers = TracerProvider(sampler=self.sampler, span_limits=self.limits, shutdown_on_exit=False)
        tracers.add_span_processor(SimpleSpanProcessor(self.span_exporter))
        loggers = LoggerProvider(shutdown_on_exit=False)
        loggers.add_log_record_processor(logs_export.SimpleLogRecordProcessor(self.log_exporter))
        object.__setattr__(self, "tracer_provider", tracers)
        object.__setattr__(self, "logger_provider", loggers)
        object.__setattr__(self, "meter_provider", MeterProvider([self.metric_reader], shutdown_on_exit=False))

    def emitter(self, **options) -> OTelEmitter:
        providers = {
            "tracer_provider": self.tracer_provider,
            "meter_provider": self.meter_provider,
            "logger_provider": self.logger_provider,
        }
        return OTelEmitter(**{"capture_content": False, "explanations": True, **providers, **options})

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.span_exporter.get_finished_spans()

    def span(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    @property
    def events(self) -> list[Any]:
        return [entry.log_record for entry in self.log_exporter.get_finished_logs()]

    def points(self, metric: str) -> list[Any]:
        return points_of(self.metric_reader, metric)

    def values(self, metric: str) -> dict[frozenset[Any], Any]:
        return {frozenset(point.attributes.items()): point.value for point in self.points(metric)}


@pytest.fixture
def make_telemetry() -> type[Telemetry]:
    return Telemetry


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


@pytest.fixture
def parent() -> SpanAnchor:
    return SpanAnchor(trace_id=0xA1, span_id=0xB2, trace_flags=1, trace_state="vendor=value", is_remote=True)


@pytest.fixture
def make_record(parent: SpanAnchor) -> Callable[..., RagRecord]:
    """A record that took two seconds, with one search and one model call; any field can be given."""

    def make(**given: Any) -> RagRecord:
        passages = (
            RetrievedContext(text="The Nile is 6650 km long.", id="doc-1", rank=0, score=0.9),
            RetrievedContext(text="The Nile ends in Egypt.", id="doc-2", rank=1, score=0.4),
        )
        fields: dict[str, Any] = {
            "question": "How long is the Nile?",
            "contexts": passages,
            "response": "It is 6650 km long.",
            "record_id": "record-1",
            "framework": "langchain",
            "name": "rivers",
            "started_ns": STARTED,
            "ended_ns": STARTED + 2 * SECOND,
            "parent": parent,
            "retrievals": (
                Retrieval(
                    name="vector_store",
                    query="length of the Nile",
                    started_ns=STARTED + SECOND // 10,
                    ended_ns=STARTED + SECOND // 2,
                    contexts=passages,
                ),
            ),
            "generations": (
                Generation(
                    model="small-model",
                    provider="openai",
                    started_ns=STARTED + SECOND // 2,
                    ended_ns=STARTED + 2 * SECOND,
                    first_token_ns=STARTED + SECOND,
                    input_tokens=100,
                    output_tokens=20,
                    finish_reason="stop",
                ),
            ),
        }
        return RagRecord(**{**fields, **given})

    return make


@pytest.fixture
def search() -> Retrieval:
    return Retrieval(name="search", query="q", started_ns=STARTED, ended_ns=STARTED + SECOND)


@pytest.fixture
def call() -> Generation:
    return Generation(model=None, provider=None, started_ns=STARTED, ended_ns=STARTED + SECOND)


@pytest.fixture
def answer() -> Callable[..., SpanAnchor | None]:
    """What the engine does with one record: start, then finish with the outcomes."""

    def run(
        emitter: OTelEmitter, record: RagRecord, outcomes: Mapping[str, Outcome] | None = None, **scored: Any
    ) -> SpanAnchor | None:
        handle = emitter.start(record)
        result = ScoredRecord(record=record, outcomes=outcomes or {}, span=handle.span, **scored)
        if result.late:
            handle.finish(replace(result, outcomes={}, late=False))
            handle.late(result)
        else:
            handle.finish(result)
        return handle.span

    return run


@pytest.fixture
def no_global_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in which nobody has set any provider yet, and in which each can be set once."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
    monkeypatch.setattr(metrics_internal, "_METER_PROVIDER", None)
    monkeypatch.setattr(metrics_internal, "_METER_PROVIDER_SET_ONCE", Once())
    monkeypatch.setattr(metrics_internal, "_PROXY_METER_PROVIDER", metrics_internal._ProxyMeterProvider())
    monkeypatch.setattr(logs_internal, "_LOGGER_PROVIDER", None)
    monkeypatch.setattr(logs_internal, "_LOGGER_PROVIDER_SET_ONCE", Once())


@pytest.fixture
def set_global_providers(no_global_providers: None) -> Callable[[Telemetry], None]:
    def set_all(telemetry: Telemetry) -> None:
        trace.set_tracer_provider(telemetry.tracer_provider)
        metrics.set_meter_provider(telemetry.meter_provider)
        _logs.set_logger_provider(telemetry.logger_provider)

    return set_all
