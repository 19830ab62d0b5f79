"""The engine of a worker, and what exports its scores."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ragspan.config import Settings
from ragspan.defaults import emitters_from, engine_from
from ragspan.delivery import DeliveryOptions, ScoreWriter
from ragspan.delivery.spans import PatientSpanExporter
from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import ScoredRecord
from ragspan.redaction import RedactedRecord
from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.environment import exporter_is_configured, providers_from_environment
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker.delivery import ACKNOWLEDGE, Delivery, Reason, Verdict
from ragspan_nats.worker.emitter import CurrentDelivery, DeliveryEmitter, NotingSampler
from ragspan_nats.worker.export import SpanExport
from ragspan_nats.worker.native_scores import NativeScores
from ragspan_nats.worker.options import WorkerOptions

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.sdk.trace.export import SpanExporter

    from ragspan.records import RagRecord

_END = 5.0  # seconds for each part that is let go of
_NOTHING_LEFT = 1.0  # seconds for the engine: what it has not scored by now is given back
_LOST_AFTER = 60.0  # seconds over the metrics' time limit, when the engine must have lost a record
_SCORES_OF_A_RECORD = 128  # at most: of some metrics, there is one for each context
_BYTES_OF_A_RECORD = 256 * 1024  # likewise, explanations included
_SLACK = 60.0  # seconds for which a writer still holds what the worker has given back
_LINGER = 0.2  # seconds that a native score waits for others: the spans, for which writers usually wait, are out


class FleetScoring:
    """Scores deliveries and exports their scores.

    Args:
        settings: of the engine and its emitters.
        options: of the worker.
        log: told of trouble.

    Raises:
        ConfigurationError: no exporter of spans is configured, or a setting cannot be used.
    """

    def __init__(self, settings: Settings, options: WorkerOptions, *, log: ThrottledLog) -> None:
        _check(settings)
        settings = _for_a_worker(settings, options)
        self._options = options
        self._time_limit = settings.metric_timeout + _LOST_AFTER
        current = CurrentDelivery()
        exporters: list[SpanExporter] = []

        def collecting(made: Sequence[SpanExporter]) -> SpanProcessor:
            # The worker tries exports again by itself, and has to hear what became of each span.
            exporters.extend(one.inner if isinstance(one, PatientSpanExporter) else one for one in made)
            return current

        self._providers = providers_from_environment(processor=collecting, id_generator=current)
        tracers = self._providers.tracer_provider
        tracers.sampler = NotingSampler(tracers.sampler, current)
        emitters = emitters_from(settings, self._providers)
        (spans,) = (emitter for emitter in emitters if isinstance(emitter, OTelEmitter))
        writers = [emitter for emitter in emitters if isinstance(emitter, ScoreWriter)]
        others = [emitter for emitter in emitters if not isinstance(emitter, (OTelEmitter, ScoreWriter))]
        for writer in writers:
            writer.delivery = _for_what_is_in_flight(writer.delivery, options)
        self._native_scores = NativeScores(writers, others, timeout=options.export_retry_timeout, log=log)
        self._export = SpanExport(exporters, timeout=options.export_retry_timeout, log=log)
        self._emitter = DeliveryEmitter(spans, others, current, options)
        self._engine = engine_from(settings, self._providers, emitters=[self._emitter])

    @property
    def meter_provider(self) -> MeterProvider:
        return self._providers.meter_provider

    async def run(self) -> None:
        """Export until cancelled."""
        await self._export.run()

    async def score(self, delivery: Delivery, record: RagRecord) -> Verdict:
        """Score a record and export its scores; how its delivery ends."""
        with self._emitter.scoring(record, delivery):
            try:
                scored = await asyncio.wait_for(self._engine.score(RedactedRecord(record)), self._time_limit)
            except asyncio.TimeoutError:
                return Verdict(ending="nak", reason="lost")
        delivery.has_left_judge.set()
        if not isinstance(scored, ScoredRecord):
            return Verdict(ending="nak", reason="lost", detail=scored.reason)
        if delivery.verdict is None:
            return self._failed(delivery, "emitter_error", "an emitter raised; the log says what")
        if delivery.verdict.ending != "ack":
            return delivery.verdict
        if not await self._export.export(delivery.spans):
            detail = f"the backend did not take its spans for {self._options.export_retry_timeout:g} seconds"
            return self._failed(delivery, "export_failed", detail)
        failure = await self._native_scores.write(scored)
        return ACKNOWLEDGE if failure is None else self._failed(delivery, *failure)

    async def stop_exporting(self) -> None:
        """Begin no export any more, and wait for the one under way."""
        await self._export.close(_END)

    async def shutdown(self) -> None:
        """Let go of everything; what metrics and events are left is sent."""
        await asyncio.to_thread(self._engine.shutdown, timeout=_NOTHING_LEFT)
        await self._native_scores.shutdown(_NOTHING_LEFT)
        providers = self._providers
        for provider in (providers.tracer_provider, providers.meter_provider, providers.logger_provider):
            if provider is not None:
                await asyncio.to_thread(provider.shutdown)

    def _failed(self, delivery: Delivery, reason: Reason, detail: str) -> Verdict:
        delay = self._options.back_off(delivery.arrival.number)
        return Verdict(ending="nak", reason=reason, detail=detail, delay=delay)


def _check(settings: Settings) -> None:
    if not settings.enabled:
        raise ConfigurationError("RAGSPAN_ENABLED is false, so that a worker would have nothing to do")
    if "otel" not in settings.emitters:
        raise ConfigurationError("RAGSPAN_EMITTERS has to name 'otel': the others write to the spans that it makes")
    if not exporter_is_configured():
        raise ConfigurationError(
            "no exporter of spans is configured, so that scores would go nowhere: set OTEL_EXPORTER_OTLP_ENDPOINT, "
            "such as http://localhost:4318, or OTEL_TRACES_EXPORTER; 'console' prints them"
        )


def _for_a_worker(settings: Settings, options: WorkerOptions) -> Settings:
    """What is bounded, timed and limited by the worker itself is not bounded once more by its engine."""
    return replace(
        settings,
        sink=None,
        export="application",
        concurrency=options.concurrency,
        queue_size=max(settings.queue_size, options.room),
        queue_bytes=2**40,
        drop="newest",
        max_records_per_second=None,
        score_wait=settings.metric_timeout,  # one emission for a delivery: it is exported with all of its scores
        exit_timeout=_END,
    )


def _for_what_is_in_flight(delivery: DeliveryOptions, options: WorkerOptions) -> DeliveryOptions:
    """A writer holds the scores of all records that the worker may hold, and those whose spans it looks for still, for as long."""
    return replace(
        delivery,
        queue_size=delivery.queue_size + options.room * _SCORES_OF_A_RECORD,
        queue_bytes=delivery.queue_bytes + options.room * _BYTES_OF_A_RECORD,
        linger=min(delivery.linger, _LINGER),
        retry_window=max(delivery.retry_window, options.export_retry_timeout + _SLACK),
    )
