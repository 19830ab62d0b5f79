"""The engine of a worker, with everything around it that knows of deliveries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ragspan.config import Settings
from ragspan.defaults import emitters_from, engine_from
from ragspan.delivery import DeliveryOptions, ScoreWriter
from ragspan.delivery.spans import PatientSpanExporter
from ragspan.exceptions import ConfigurationError
from ragspan.redaction import RedactedRecord
from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.environment import exporter_is_configured, providers_from_environment
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker.delivery import ACKNOWLEDGE, Delivery, Reason, Verdict
from ragspan_nats.worker.emitters import AnswerSpans, Completion, OtherEmitter
from ragspan_nats.worker.export import ExportLine
from ragspan_nats.worker.in_hand import InHand
from ragspan_nats.worker.native_scores import NativeScores
from ragspan_nats.worker.options import WorkerOptions
from ragspan_nats.worker.spans import Current, NotingSampler, RecordIds, SpansOfDelivery

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk.trace import SpanProcessor
    from opentelemetry.sdk.trace.export import SpanExporter

    from ragspan.telemetry.base import Emitter


_END = 5.0  # seconds for each part that is let go of
_SCORES_OF_A_RECORD = 128  # at most: of some metrics, there is one for each context
_BYTES_OF_A_RECORD = 256 * 1024  # likewise, explanations included
_SLACK = 60.0  # seconds for which a writer still holds what the worker has given back
_LINGER = 0.2  # seconds that a native score waits for others: the spans, for which writers usually wait, are out
_NOTHING_LEFT = 1.0  # seconds for the engine: what it has not scored by now is given back


class FleetScoring:
    """Scores deliveries and exports their scores.

    Args:
        settings: of the engine and its emitters.
        options: of the worker.
        in_hand: where the delivery of a record is found.
        on_scored: called in a thread of the engine's when a record is no longer being scored.
        on_end: called in a thread of the engine's, of the export line's or of the native scores' when a delivery has ended.
        log: told of trouble.

    Raises:
        ConfigurationError: no exporter of spans is configured, or a setting cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        options: WorkerOptions,
        in_hand: InHand,
        *,
        on_scored: Callable[[], None],
        on_end: Callable[[Delivery, Verdict], None],
        log: ThrottledLog,
    ) -> None:
        _check(settings)
        settings = _for_a_worker(settings, options)
        self._options = options
        self._on_scored = on_scored
        self._on_end = on_end
        current = Current()
        exporters: list[SpanExporter] = []

        def collecting(made: Sequence[SpanExporter]) -> SpanProcessor:
            # The export line has patience of its own, and has to hear what became of each span.
            exporters.extend(one.inner if isinstance(one, PatientSpanExporter) else one for one in made)
            return SpansOfDelivery(current)

        self._providers = providers_from_environment(processor=collecting, id_generator=RecordIds(current))
        tracers = self._providers.tracer_provider
        tracers.sampler = NotingSampler(tracers.sampler, current)
        emitters = emitters_from(settings, self._providers)
        others = [emitter for emitter in emitters if not isinstance(emitter, (OTelEmitter, ScoreWriter))]
        writers = [emitter for emitter in emitters if isinstance(emitter, ScoreWriter)]
        for writer in writers:
            writer.delivery = _for_what_is_in_hand(writer.delivery, options)
        self._native_scores = NativeScores(
            writers,
            others,
            on_delivered=lambda delivery: on_end(delivery, ACKNOWLEDGE),
            on_failure=self._not_exported,
            patience=options.export_patience,
            log=log,
        )
        self._export = ExportLine(
            exporters,
            on_exported=self._native_scores.put,
            on_failure=self._spans_not_taken,
            patience=options.export_patience,
            log=log,
        )
        # Whatever the order in which they are named: others wait for the verdict that comes with the spans.
        known: list[Emitter] = [
            *(AnswerSpans(one, in_hand, current, options) for one in emitters if isinstance(one, OTelEmitter)),
            *(OtherEmitter(one, in_hand) for one in others),
        ]
        self._engine = engine_from(settings, self._providers, emitters=[*known, Completion(in_hand, self._scored)])

    @property
    def meter_provider(self) -> MeterProvider:
        return self._providers.meter_provider

    def start(self) -> None:
        """Start what exports."""
        self._native_scores.start()
        self._export.start()

    def score(self, delivery: Delivery) -> None:
        """Score a delivery; returns at once."""
        self._engine.submit(RedactedRecord(delivery.record))

    def stop_exporting(self) -> None:
        """Let nothing end as exported any more, so that the rest can be given back."""
        self._native_scores.stop()
        self._export.stop(_END)

    def shutdown(self) -> None:
        """Let go of everything; what metrics and events are left is sent."""
        self._engine.shutdown(timeout=_NOTHING_LEFT)
        self._native_scores.shutdown(_NOTHING_LEFT)
        self._providers.tracer_provider.shutdown()
        self._providers.meter_provider.shutdown()
        if self._providers.logger_provider is not None:
            self._providers.logger_provider.shutdown()

    def _scored(self, delivery: Delivery) -> None:
        verdict = delivery.verdict
        if verdict is None:  # the emitter of spans failed
            delay = self._options.back_off(delivery.arrival.number)
            delivery.verdict = verdict = Verdict(ending="give_back", reason="emitter_error", delay=delay)
        self._on_scored()
        if verdict.ending == "acknowledge":
            self._export.put(delivery)
        else:
            self._on_end(delivery, verdict)

    def _spans_not_taken(self, delivery: Delivery) -> None:
        detail = f"the backend did not take its spans for {self._options.export_patience:g} seconds"
        self._not_exported(delivery, "export_failed", detail)

    def _not_exported(self, delivery: Delivery, reason: Reason, detail: str) -> None:
        delay = self._options.back_off(delivery.arrival.number)
        self._on_end(delivery, Verdict(ending="give_back", reason=reason, detail=detail, delay=delay))


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


def _for_what_is_in_hand(delivery: DeliveryOptions, options: WorkerOptions) -> DeliveryOptions:
    """A writer holds the scores of all records that the worker may hold, and those whose spans it looks for still, for as long."""
    return replace(
        delivery,
        queue_size=delivery.queue_size + options.room * _SCORES_OF_A_RECORD,
        queue_bytes=delivery.queue_bytes + options.room * _BYTES_OF_A_RECORD,
        linger=min(delivery.linger, _LINGER),
        retry_window=max(delivery.retry_window, options.export_patience + _SLACK),
    )
