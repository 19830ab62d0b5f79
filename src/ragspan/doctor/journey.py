"""Sends one record through a real engine, as the application's would be, and watches it on its way."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ragspan.config import Settings
from ragspan.defaults import emitter_from, emitters_from, engine_from
from ragspan.delivery import ScoreWriter
from ragspan.delivery.stats import DeliveryStats
from ragspan.doctor.overhearing import overheard
from ragspan.doctor.sending import Journal, Watch
from ragspan.doctor.traces import MetricOutcome, outcomes_of
from ragspan.engine import EngineStats, ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry import semconv
from ragspan.telemetry.environment import EnvironmentProviders, providers_from_environment

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider

NAME = "ragspan doctor"
_FLUSHING = 0.7  # shares of the time that there is
_SHUTTING_DOWN = 0.1
_SENDING = 0.3  # each batch; there are two at most
MAX_ROOTS = 20_000  # a sampler that keeps less than one trace in thousands shows nobody any scores


@dataclass(frozen=True, kw_only=True, slots=True)
class Journey:
    """What became of the record on its way."""

    record: RagRecord
    root: SpanAnchor
    is_in_helper: bool
    has_flushed: bool
    stats: EngineStats
    spans: Sequence[ReadableSpan]
    """Those that were made in this process."""
    journal: Journal
    written: Mapping[str, DeliveryStats] = field(default_factory=dict)
    """What became of the scores at the backends that have scores of their own, by the name of the writer."""
    complaints: Sequence[str] = field(default=())
    """What was logged on the way."""

    @property
    def answer_span(self) -> ReadableSpan | None:
        """The answer's span; where only scores are added to an application's spans, the span that they are below."""
        own = [span for span in self.spans if (span.attributes or {}).get(semconv.RECORD_ID) == self.record.record_id]
        roots = [span for span in self.spans if span.context and span.context.span_id == self.root.span_id]
        return next(iter([*own, *roots]), None)

    @property
    def outcomes(self) -> list[MetricOutcome]:
        return [outcome for span in self.spans for outcome in outcomes_of(span)]


def make_journey(settings: Settings, seconds: float, *, is_sent: bool) -> Journey | None:
    """Have the record scored; None if no trace is sampled that it could belong to.

    Args:
        settings: those of the application.
        seconds: how long it may take.
        is_sent: whether its spans are exported, too, or only kept.
    """
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    watch = Watch(seconds=seconds * _SENDING)
    is_in_helper = settings.export == "helper" and is_sent
    with overheard() as complaints:
        providers = _providers(watch) if is_sent else _providers_without_exporters()
        kept = InMemorySpanExporter()
        providers.tracer_provider.add_span_processor(SimpleSpanProcessor(kept))
        try:
            root = _sampled_root(providers.tracer_provider)
            if root is None:
                return None
            record = _record(root)
            # An engine whose helper exports has no providers of its own: the helper's are made from the environment.
            to_score_it = _to_score_it(settings, seconds, is_in_helper=is_in_helper)
            writers = [writer for writer in _native_writers(settings) if is_sent and not is_in_helper]
            engine = _engine(to_score_it, None if is_in_helper else providers, writers)
            engine.submit(record)
            has_flushed = engine.flush(seconds * _FLUSHING)
            stats = engine.stats()
            written = {writer.name: writer.stats() for writer in writers}
            engine.shutdown(seconds * _SHUTTING_DOWN)
        finally:
            _shut_down(providers)
    return Journey(
        record=record,
        root=root,
        is_in_helper=is_in_helper,
        has_flushed=has_flushed,
        stats=stats,
        spans=kept.get_finished_spans(),
        journal=watch.journals.get("traces", Journal()),
        written=written,
        complaints=tuple(complaints),
    )


def _native_writers(settings: Settings) -> list[ScoreWriter[Any]]:
    """The application's emitters that write scores to backends of their own.

    Raises:
        ConfigurationError: the application would not start: one of its emitters is not installed, or cannot be made.
    """
    others = tuple(name for name in settings.emitters if name not in {"otel", "console"})
    made = [emitter_from(name, settings) for name in others]
    return [emitter for emitter in made if isinstance(emitter, ScoreWriter)]


def _engine(
    settings: Settings, providers: EnvironmentProviders | None, writers: Sequence[ScoreWriter[Any]]
) -> ScoringEngine:
    return engine_from(settings, providers, emitters=[*emitters_from(settings, providers), *writers])


def _providers(watch: Watch) -> EnvironmentProviders:
    try:
        return providers_from_environment(make=watch.make)
    except ConfigurationError:
        raise
    except Exception as error:  # of the SDK, which checks sizes and limits as it is set up
        raise ConfigurationError(f"OpenTelemetry cannot be set up as OTEL_* says: {error}") from error


def _providers_without_exporters() -> EnvironmentProviders:
    """Where spans would go nowhere: the record is scored, and its span kept to be shown."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

    return EnvironmentProviders(
        tracer_provider=TracerProvider(shutdown_on_exit=False),
        meter_provider=MeterProvider(shutdown_on_exit=False),
        logger_provider=None,
    )


def _shut_down(providers: EnvironmentProviders) -> None:
    providers.tracer_provider.shutdown()
    providers.meter_provider.shutdown()
    if providers.logger_provider is not None:
        providers.logger_provider.shutdown()


def _sampled_root(provider: TracerProvider) -> SpanAnchor | None:
    """A span without a parent that the sampler keeps: as a request makes one, tried until it is."""
    tracer = provider.get_tracer("ragspan")
    for _ in range(MAX_ROOTS):
        span = tracer.start_span(NAME)
        span.end()
        context = span.get_span_context()
        if context.trace_flags.sampled:
            return SpanAnchor(trace_id=context.trace_id, span_id=context.span_id, trace_flags=int(context.trace_flags))
    return None


def _record(root: SpanAnchor) -> RagRecord:
    now = time.time_ns()
    return RagRecord(
        question="Does ragspan work here?",
        contexts=["The doctor sends one record. It is scored like every other record, and its scores go on its span."],
        response="The doctor's record is scored like every other record.",
        name=NAME,
        started_ns=now,
        ended_ns=now,
        parent=root,
    )


def _to_score_it(settings: Settings, seconds: float, *, is_in_helper: bool) -> Settings:
    """The settings of the application, but for those by which it scores only some answers, or writes to other places."""
    return dataclasses.replace(
        settings,
        emitters=("otel",),
        sample_rate=1.0,
        metric_sample_rates={},
        exit_timeout=min(settings.exit_timeout, seconds),
        export="helper" if is_in_helper else "application",
    )
