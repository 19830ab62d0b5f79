"""Scores records and exports their scores: the engine of a worker, the spans of the records, and the writers of native scores.

Nothing is emitted of a delivery that is given back. Exporters and writers have threads of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator

from ragspan.backoff import Backoff
from ragspan.config import Settings
from ragspan.defaults import check_worker, emitters_from, engine_from
from ragspan.engine import Dropped
from ragspan.engine.redaction import RedactedRecord
from ragspan.engine.threads import Deadline, call_guarded
from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry import OTelEmitter, semconv
from ragspan.telemetry.providers import exporters, make_exporter, providers_from_environment
from ragspan.throttled_log import ThrottledLog
from ragspan.tools import Delivered, DeliveryOptions, DeliveryStatus, ExportError, ScoreWriter, Sender, WriteResult
from ragspan.tools.spans import RetryingSpanExporter
from ragspan_nats.consumer import ACKNOWLEDGE, Delivery, Disposition
from ragspan_nats.settings import WorkerOptions

if TYPE_CHECKING:
    from opentelemetry.context import Context

_TIMEOUT = "timeout"  # the engine's error type for a metric that took too long
_END = 5.0  # seconds for the end of each part
_NOTHING_LEFT = 1.0  # seconds for the engine and for writers: what is not done by now is given back
_FLUSH = 30.0  # seconds
_PAUSE = 0.1  # seconds between two looks at the spans and scores of a record
_MAX_SPAN_WAIT = 10.0  # seconds of looking for a span that was exported; it may have been sampled out on its way
_LINGER = 0.2  # seconds that spans and scores wait for others to be sent with
_RECORDS_A_BATCH = 64
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds, while spans or native scores are not taken


def disposition_of(scored: ScoredRecord, number: int, max_deliveries: int) -> Disposition:
    """How delivery `number`, from 1, of a record with these outcomes ends.

    If a judge's service failed or hung, it comes again later. At its last delivery it is exported with the scores that there are.
    """
    failures = [outcome for outcome in scored.outcomes.values() if isinstance(outcome, MetricFailure)]
    has_scores = any(isinstance(outcome, Score) for outcome in scored.outcomes.values())
    # One metric may take too long because of its input. If no metric ends, the service hangs.
    outages = [one.error_type for one in failures if one.outage or (one.error_type == _TIMEOUT and not has_scores)]
    if not outages or (has_scores and number >= max_deliveries):
        return ACKNOWLEDGE
    detail = f"{len(outages)} of {len(scored.outcomes)} metrics failed: {', '.join(sorted(set(outages)))}"[:200]
    return Disposition(ending="nacked", reason="judge_outage", detail=detail)


class FleetScoring:
    """Scores deliveries and exports their scores; `log` gets warnings. Raises a `ConfigurationError` where nothing exports spans."""

    def __init__(self, settings: Settings, options: WorkerOptions, *, log: ThrottledLog) -> None:
        check_worker(settings)
        settings = replace(settings, concurrency=options.concurrency, exit_timeout=_END)
        self._options = options
        self._log = log
        self.pauses = Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        """While spans or native scores are not taken: what is not exported is scored again later, so scoring has to wait."""
        self._ids = DeterministicSpanIds()
        # The worker repeats exports by itself: it must know what became of each span.
        self._exporters: list[SpanExporter] = [
            one.inner if isinstance(one, RetryingSpanExporter) else one
            for one in exporters("traces", partial(make_exporter, tries_once=False))
        ]
        tracers = TracerProvider(id_generator=self._ids, shutdown_on_exit=False)
        tracers.add_span_processor(self._ids)
        self._providers = providers_from_environment(tracer_provider=tracers)
        self.meter_provider = self._providers.meter_provider
        self._emitters = emitters_from(settings, self._providers)
        self._spans = next((one for one in self._emitters if isinstance(one, OTelEmitter)), None)
        self._writers = [one for one in self._emitters if isinstance(one, ScoreWriter)]
        self._others = [one for one in self._emitters if not isinstance(one, (OTelEmitter, ScoreWriter))]
        self._sender: Sender[Delivery] = Sender(
            DeliveryOptions(
                queue_bytes=2**40,  # the worker bounds what is in flight
                batch_size=_RECORDS_A_BATCH,
                linger=_LINGER,
                retry_window=options.export_retry_timeout,
            ),
            write=self._export,
            name="exporter",
            item="record",
            meter_provider=self.meter_provider,
        )
        self._engine = engine_from(settings, self._providers, emitters=[])

    async def score(self, delivery: Delivery, record: RagRecord) -> ScoredRecord | Dropped:
        """Start the answer's spans and score the record."""
        span = None
        if self._spans is not None:
            with self._ids.at(delivery, record):
                delivery.handle = self._spans.start(record)
                span = delivery.handle.span
        # The engine emits nothing here. The parent's trace is that by which it chooses what is scored.
        scored = await self._engine.score(RedactedRecord(replace(record, parent=span or record.parent)))
        return replace(scored, record=record, span=span) if isinstance(scored, ScoredRecord) else scored

    async def export(self, delivery: Delivery, scored: ScoredRecord) -> Disposition:
        """How the delivery ends: acknowledged only after all exporters have taken the spans, and then the writers the scores.

        Writers look for the span; what they finally refuse counts as written.
        """
        disposition = disposition_of(scored, delivery.number, self._options.max_deliveries)
        if disposition.ending != "acknowledged":
            return disposition
        handle, delivery.handle = delivery.handle, None
        if handle is not None:
            with self._ids.at(delivery, scored.record):
                if self._noted(self._spans, call_guarded(handle.finish, scored)[1]):
                    return _EMITTER_ERROR
        for other in self._others:
            self._noted(other, call_guarded(lambda one: one.start(scored.record).finish(scored), other)[1])
            if not (await asyncio.to_thread(call_guarded, other.flush, _FLUSH))[0]:
                return _NOT_EXPORTED
        # An answer whose trace is not sampled has no spans.
        if not await self._are_written([self._sender.put([delivery] if delivery.spans else [])]):
            return _NOT_EXPORTED
        statuses: list[DeliveryStatus] = []
        for writer in self._writers:
            status, error = call_guarded(writer.emit, scored)
            if self._noted(writer, error) or status is None:
                return _EMITTER_ERROR
            statuses.append(status)
        return ACKNOWLEDGE if await self._are_written(statuses) else _NOT_EXPORTED

    def abandon(self, delivery: Delivery) -> None:
        """End the spans of a delivery that are open. They are not exported."""
        if delivery.handle is not None:
            call_guarded(delivery.handle.abandon)

    async def shutdown(self) -> None:
        """Close everything. Metrics and events that are left are sent."""
        await asyncio.to_thread(self._engine.shutdown, timeout=_NOTHING_LEFT)
        await asyncio.to_thread(self._sender.shutdown, 0.0)
        for exporter in self._exporters:
            await asyncio.to_thread(call_guarded, exporter.shutdown)  # also ends an export under way
        for emitter in self._emitters:
            self._noted(emitter, (await asyncio.to_thread(call_guarded, emitter.shutdown, _NOTHING_LEFT))[1])
        await asyncio.to_thread(self._providers.shutdown)

    def _export(self, batch: Sequence[Delivery]) -> Sequence[WriteResult]:
        """Export the spans of a batch, in the sender's thread; an error if not all exporters take them.

        The sender tries smaller and smaller batches then, since one record may be the reason.
        """
        spans = [span for one in batch for span in one.spans]
        are_taken = True
        for exporter in self._exporters:  # all of them get the spans
            result, _ = call_guarded(exporter.export, spans)
            # An exporter that only queues spans says at its flush whether it has sent them.
            is_taken = result is SpanExportResult.SUCCESS
            is_sent, error = call_guarded(exporter.force_flush, int(_FLUSH * 1000)) if is_taken else (False, None)
            are_taken = are_taken and error is None and is_sent is not False
        if not are_taken:
            self.pauses.refused()
            raise ExportError("an exporter could not send them")
        self.pauses.succeeded()
        return [Delivered()] * len(batch)

    async def _are_written(self, statuses: Sequence[DeliveryStatus]) -> bool:
        """Wait until all of it is written or finally refused. False if something is given up, or takes too long."""
        deadline = Deadline(self._options.export_retry_timeout)
        span_wait = Deadline(_MAX_SPAN_WAIT)
        while deadline.remaining:
            states = {one.state() for one in statuses}
            if "lost" in states:
                break
            if "waiting" not in states and ("span_not_found" not in states or not span_wait.remaining):
                return True
            await asyncio.sleep(_PAUSE)
        self.pauses.refused()
        return False

    def _noted(self, emitter: object, error: BaseException | None) -> bool:
        """Whether there was an error, which the log tells."""
        if error is not None:
            self._log.report("emitter", "%s failed with %s", type(emitter).__name__, type(error).__name__)
        return error is not None


_EMITTER_ERROR = Disposition(ending="nacked", reason="emitter_error", detail="an emitter raised; the log says what")
_NOT_EXPORTED = Disposition(
    ending="nacked", reason="export_failed", detail="the backend did not take all of it in time"
)


class DeterministicSpanIds(IdGenerator, SpanProcessor):
    """Gives the spans of the current delivery their ids, and collects those that end; the later ones say which delivery it is.

    A record that is delivered twice has the same ids both times, so a backend that goes by them shows the answer once.
    """

    def __init__(self) -> None:
        self._delivery: Delivery | None = None
        self._record_id = ""

    @contextmanager
    def at(self, delivery: Delivery, record: RagRecord) -> Iterator[None]:
        """Spans that start and end in this block belong to this delivery."""
        self._delivery, self._record_id = delivery, record.record_id
        try:
            yield
        finally:
            self._delivery = None

    def generate_span_id(self) -> int:
        """Follows from the record and the number of its spans before this one."""
        number = 0
        if self._delivery is not None:
            number = self._delivery.started = self._delivery.started + 1
        return self._digest(f"{number}", size=8)

    def generate_trace_id(self) -> int:
        """Follows from the record alone."""
        return self._digest("trace", size=16)

    def _digest(self, what: str, *, size: int) -> int:
        """Never 0, which is not a valid id."""
        key = f"{what} {self._record_id}".encode(errors="surrogatepass")
        return int.from_bytes(blake2b(key, digest_size=size, person=b"ragspan").digest(), "big") or 1

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's signature
        if self._delivery is not None and self._delivery.number > 1:
            span.set_attribute(semconv.DELIVERY_COUNT, self._delivery.number)

    def on_end(self, span: ReadableSpan) -> None:
        if self._delivery is not None and span.context is not None and span.context.trace_flags.sampled:
            self._delivery.spans.append(span)
