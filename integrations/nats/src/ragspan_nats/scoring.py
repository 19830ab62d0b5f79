"""Scores records, and has their scores exported: the engine of a worker, and the writers behind it.

Guarantees:
- Of a record that is delivered again nothing is emitted: no span, no event, no measurement.
- `export` returns an acknowledgement once all exporters have taken the spans and all native writers have delivered the
  scores, or finally refused them.
- Native writers, which look for the span, get the scores after the exporters.

All of it runs in the worker's event loop; exporters and writers have threads of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace.export import SpanExporter

from ragspan.config import Settings
from ragspan.defaults import check_worker, emitters_from, engine_from
from ragspan.delivery import DeliveryOptions, DeliveryStatus, ScoreWriter
from ragspan.delivery.spans import RetryingSpanExporter
from ragspan.engine import Dropped
from ragspan.engine._threads import DaemonThreads, call_guarded
from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.redaction import RedactedRecord
from ragspan.telemetry import AnswerHandle, OTelEmitter
from ragspan.telemetry.base import EmitHandle, ScoreEmitter
from ragspan.telemetry.environment import providers_from_environment
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.consumer import ACKNOWLEDGE, Delivery, Reason, Verdict
from ragspan_nats.settings import WorkerOptions
from ragspan_nats.spans import LINGER, NamingSampler, RecordIds, SpanWriter

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.sdk.trace import SpanProcessor as Processor

_TIMEOUT = "timeout"  # how the engine names the failure of a metric that took too long
_END = 5.0  # seconds for each part that is closed
_NOTHING_LEFT = 1.0  # seconds for the engine and for writers: what is not done by now is given back
_FLUSH = 30.0  # seconds
_PAUSE = 0.1  # seconds until the spans and scores of a record are looked at again
_MAX_SPAN_WAIT = 10.0  # seconds of looking for a span that was exported; it may have been sampled out on its way
_SLACK = 60.0  # seconds for which a writer still holds what the worker has given back
_SCORES_OF_A_RECORD = 128  # at most: of some metrics, there is one for each context
_BYTES_OF_A_RECORD = 256 * 1024  # likewise, explanations included


def verdict_on(scored: ScoredRecord, number: int, options: WorkerOptions) -> Verdict:
    """How delivery `number`, from 1, of a record with these outcomes ends.

    Where a judge's service failed, or let every metric run into its time limit, the record comes again later. With its last
    delivery the scores that are there are better than none; without any, it becomes a dead letter.
    """
    failures = [outcome for outcome in scored.outcomes.values() if isinstance(outcome, MetricFailure)]
    has_scores = any(isinstance(outcome, Score) for outcome in scored.outcomes.values())
    # One metric may take too long because of what it has to do; where none came to an end, it is the service that hangs.
    outages = [one.error_type for one in failures if one.outage or (one.error_type == _TIMEOUT and not has_scores)]
    is_last = number >= options.max_deliveries
    if not outages or (is_last and has_scores):
        return ACKNOWLEDGE
    detail = f"{len(outages)} of {len(scored.outcomes)} metrics failed: {', '.join(sorted(set(outages)))}"[:200]
    if is_last:
        return Verdict(ending="dead_lettered", reason="judge_outage", detail=detail)
    return Verdict(ending="nacked", reason="judge_outage", detail=detail, delay=options.back_off(number))


class _Started(ScoreEmitter):
    """The engine's emitter: knows the spans of what is being scored, and emits nothing, since the worker does that."""

    def __init__(self, score_wait: float) -> None:
        self.score_wait = score_wait
        self.handles: dict[int, AnswerHandle] = {}
        """By the id of the record object; two messages may hold records with the same record id."""

    def start(self, record: RagRecord) -> AnswerHandle:
        handle = self.handles.get(id(record))
        return EmitHandle(_nowhere) if handle is None else EmitHandle(_nowhere, handle.span, handle.retrieval_spans)


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
        check_worker(settings)
        settings = _for_a_worker(settings, options)
        self._options = options
        self._log = log
        self._ids = RecordIds()
        exporters: list[SpanExporter] = []

        def collecting(made: Sequence[SpanExporter]) -> Processor:
            # The worker tries exports again by itself, and has to hear what became of each span.
            exporters.extend(one.inner if isinstance(one, RetryingSpanExporter) else one for one in made)
            return self._ids

        self._providers = providers_from_environment(processor=collecting, id_generator=self._ids)
        tracers = self._providers.tracer_provider
        tracers.sampler = NamingSampler(tracers.sampler, self._ids)
        emitters = emitters_from(settings, self._providers)
        (self._spans,) = (emitter for emitter in emitters if isinstance(emitter, OTelEmitter))
        self._writers = [emitter for emitter in emitters if isinstance(emitter, ScoreWriter)]
        for writer in self._writers:
            writer.deliver_with(_for_what_is_in_flight(writer.delivery, options))
        self._others = [one for one in emitters if not isinstance(one, (OTelEmitter, ScoreWriter))]
        self._span_writer = SpanWriter(
            exporters, retry_window=options.export_retry_timeout, meter_provider=self.meter_provider
        )
        self._threads = DaemonThreads(1, name="ragspan-flush")
        self._flushing = asyncio.Lock()
        self._finished, self._flushed = 0, 0
        """Records that other emitters have been given, and how many of the first of them are flushed."""
        self._started = _Started(settings.score_wait)
        self._engine = engine_from(settings, self._providers, emitters=[self._started])

    @property
    def meter_provider(self) -> MeterProvider:
        return self._providers.meter_provider

    async def score(self, delivery: Delivery, record: RagRecord) -> ScoredRecord | Dropped:
        """Start the answer's spans, and have the record scored."""
        with self._ids.at(delivery, record, "open"):
            handle = self._spans.start(record)
        self._started.handles[id(record)] = delivery.handle = handle
        try:
            return await self._engine.score(RedactedRecord(record))
        finally:
            del self._started.handles[id(record)]

    async def export(self, delivery: Delivery, scored: ScoredRecord) -> Verdict:
        """Emit the scores, if the delivery is to be acknowledged, and wait until they are written; how it ends."""
        verdict = verdict_on(scored, delivery.number, self._options)
        if verdict.ending != "acknowledged" or delivery.handle is None:
            return verdict
        handle, delivery.handle = delivery.handle, None
        with self._ids.at(delivery, scored.record, "emit"):
            _, error = call_guarded(handle.finish, scored)
        if error is not None:
            self._note(self._spans, error)
            return self._failed(delivery, "emitter_error", "an emitter raised; the log says what")
        for other in self._others:
            self._note(other, call_guarded(lambda one: one.start(scored.record).finish(scored), other)[1])
        self._finished += 1
        if not await self._in_time(_are_written([self._span_writer.put(delivery.spans)])):
            return self._failed(delivery, "export_failed", "the backend did not take its spans in time")
        statuses = [self._emit(writer, scored) for writer in self._writers]
        written = [status for status in statuses if status is not None]
        if len(written) < len(statuses):
            return self._failed(delivery, "emitter_error", "a native writer raised; the log says what")
        if not await self._in_time(self._are_delivered(written, self._finished)):
            return self._failed(delivery, "export_failed", "its native scores were not taken in time")
        return ACKNOWLEDGE

    def abandon(self, delivery: Delivery) -> None:
        """End the spans of a delivery without scores, if they are open; nobody collects them."""
        if delivery.handle is not None:
            call_guarded(delivery.handle.abandon)

    async def shutdown(self) -> None:
        """Close everything; what metrics and events are left is sent."""
        await asyncio.to_thread(self._engine.shutdown, timeout=_NOTHING_LEFT)
        await asyncio.to_thread(self._span_writer.shutdown)
        for emitter in (self._spans, *self._others, *self._writers):
            self._note(emitter, (await asyncio.to_thread(call_guarded, emitter.shutdown, _NOTHING_LEFT))[1])
        providers = self._providers
        for provider in (providers.tracer_provider, providers.meter_provider, providers.logger_provider):
            if provider is not None:
                await asyncio.to_thread(provider.shutdown)

    async def _in_time(self, waiting: Awaitable[bool]) -> bool:
        try:
            return await asyncio.wait_for(waiting, self._options.export_retry_timeout)
        except asyncio.TimeoutError:
            return False

    async def _are_delivered(self, written: Sequence[DeliveryStatus], finished: int) -> bool:
        """Whether writers have written this; and the other emitters all that they were given. One flush serves many records."""
        while self._others and self._flushed < finished:
            async with self._flushing:
                given = self._finished
                if self._flushed < finished and await asyncio.wrap_future(self._threads.submit(self._flush)):
                    self._flushed = given
            await asyncio.sleep(_PAUSE)
        return await _are_written(written)

    def _flush(self) -> bool:
        answers = [(other, *call_guarded(other.flush, _FLUSH)) for other in self._others]  # all, whatever one says
        for other, _, error in answers:
            self._note(other, error)
        return all(answer for _, answer, _ in answers)

    def _emit(self, writer: ScoreWriter, scored: ScoredRecord) -> DeliveryStatus | None:
        status, error = call_guarded(writer.emit_with_status, scored)
        self._note(writer, error)
        return status

    def _note(self, emitter: object, error: BaseException | None) -> None:
        if error is not None:
            self._log.trouble("emitter", "%s failed with %s", type(emitter).__name__, type(error).__name__)

    def _failed(self, delivery: Delivery, reason: Reason, detail: str) -> Verdict:
        return Verdict(ending="nacked", reason=reason, detail=detail, delay=self._options.back_off(delivery.number))


async def _are_written(statuses: Sequence[DeliveryStatus]) -> bool:
    """Whether all of it is written, or finally refused, rather than given up.

    A score whose span was not there for ten seconds of looking is waited for no longer. Its writer goes on looking for it.
    """
    while True:
        states = {one.state(max_span_wait=_MAX_SPAN_WAIT) for one in statuses}
        if "lost" in states or "waiting" not in states:
            return "lost" not in states
        await asyncio.sleep(_PAUSE)


def _nowhere(_: ScoredRecord) -> None:
    """The worker emits what there is."""


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
        linger=min(delivery.linger, LINGER),
        retry_window=max(delivery.retry_window, options.export_retry_timeout + _SLACK),
    )
