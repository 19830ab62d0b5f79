"""Scores records and exports their scores: the engine of a worker, the spans of the records, and the writers of native scores.

A record may be delivered twice, and is scored twice then. Both times its spans have the same ids, so a backend that identifies
spans by their ids shows the answer once. The later spans say which delivery they belong to.

Guarantees:
- Of a record that is delivered again nothing is emitted: no span, no event, no measurement.
- `export` returns an acknowledgement only after all exporters have taken the spans, and all native writers have delivered the
  scores or finally refused them. Native writers look for the span, so they get the scores after the exporters.
- A span's id follows from the record and the span's name, and from nothing else: not from the process, nor from other spans, which
  may be fewer when a worker with other metrics scores the record.
- A record whose spans are not taken is tried again, ever more rarely, and delays others for seconds only.

All of it runs in the worker's event loop. Exporters and writers have their own threads.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler, SamplingResult

from ragspan.backoff import Backoff
from ragspan.config import Settings
from ragspan.defaults import check_worker, emitters_from, engine_from
from ragspan.engine import Dropped
from ragspan.engine.processing import Deadline, call_guarded
from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.redaction import RedactedRecord
from ragspan.telemetry import OTelEmitter, semconv
from ragspan.telemetry.environment import providers_from_environment
from ragspan.throttled_log import ThrottledLog
from ragspan.tools import (
    Delivered,
    DeliveryOptions,
    DeliveryStatus,
    ExportError,
    ScoreWriter,
    Sender,
    WriteResult,
)
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


def disposition_of(scored: ScoredRecord, number: int, options: WorkerOptions) -> Disposition:
    """How delivery `number`, from 1, of a record with these outcomes ends.

    If a judge's service failed, or let every metric run into its time limit, the record comes again later. At its last
    delivery it is exported with the scores that there are.
    """
    failures = [outcome for outcome in scored.outcomes.values() if isinstance(outcome, MetricFailure)]
    has_scores = any(isinstance(outcome, Score) for outcome in scored.outcomes.values())
    # One metric may take too long because of its input. If no metric ends, the service hangs.
    outages = [one.error_type for one in failures if one.outage or (one.error_type == _TIMEOUT and not has_scores)]
    if not outages or (has_scores and number >= options.max_deliveries):
        return ACKNOWLEDGE
    detail = f"{len(outages)} of {len(scored.outcomes)} metrics failed: {', '.join(sorted(set(outages)))}"[:200]
    return Disposition(ending="nacked", reason="judge_outage", detail=detail)


class FleetScoring:
    """Scores deliveries and exports their scores; `log` gets warnings.

    Raises:
        ConfigurationError: no exporter of spans is configured, or a setting is wrong.
    """

    def __init__(self, settings: Settings, options: WorkerOptions, *, log: ThrottledLog) -> None:
        check_worker(settings)
        settings = replace(
            settings,
            concurrency=options.concurrency,
            exit_timeout=_END,
        )
        self._options = options
        self._log = log
        self.pauses = Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        """While spans or native scores are not taken: what is not exported is scored again later, so scoring has to wait."""
        self._ids = DeterministicSpanIds()
        exporters: list[SpanExporter] = []

        def collecting(made: Sequence[SpanExporter]) -> SpanProcessor:
            # The worker repeats exports by itself: it must know what became of each span.
            exporters.extend(one.inner if isinstance(one, RetryingSpanExporter) else one for one in made)
            return self._ids

        self._providers = providers_from_environment(processor=collecting, id_generator=self._ids)
        self._ids.watch(self._providers.tracer_provider)
        self.meter_provider = self._providers.meter_provider
        self._emitters = emitters_from(settings, self._providers)
        self._spans = next((one for one in self._emitters if isinstance(one, OTelEmitter)), None)
        self._writers = [one for one in self._emitters if isinstance(one, ScoreWriter)]
        self._others = [one for one in self._emitters if not isinstance(one, (OTelEmitter, ScoreWriter))]
        self._exporters = exporters
        self._sender: Sender[Delivery] = Sender(
            DeliveryOptions(
                queue_size=2**30,  # the worker bounds what is in flight
                queue_bytes=2**40,
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
        handle = None
        if self._spans is not None:
            with self._ids.at(delivery, record):
                delivery.handle = handle = self._spans.start(record)
        # The engine emits nothing here. The parent's trace is that by which it chooses what is scored.
        span = handle.span if handle is not None else None
        scored = await self._engine.score(RedactedRecord(replace(record, parent=span or record.parent)))
        if not isinstance(scored, ScoredRecord):
            return scored
        return replace(scored, record=record, span=span)

    async def export(self, delivery: Delivery, scored: ScoredRecord) -> Disposition:
        """How the delivery ends. If it is acknowledged, its scores are written."""
        disposition = disposition_of(scored, delivery.number, self._options)
        if disposition.ending != "acknowledged":
            return disposition
        handle, delivery.handle = delivery.handle, None
        if handle is not None:
            with self._ids.at(delivery, scored.record):
                _, error = call_guarded(handle.finish, scored)
            if error is not None:
                return self._defect(self._spans, error)
        for other in self._others:
            self._note(other, call_guarded(lambda one: one.start(scored.record).finish(scored), other)[1])
            if not (await asyncio.to_thread(call_guarded, other.flush, _FLUSH))[0]:
                return _not_exported("an emitter did not flush in time")
        # An answer whose trace is not sampled has no spans.
        if not await self._are_written([self._sender.put([delivery] if delivery.spans else [])]):
            return _not_exported("the backend did not take its spans in time")
        statuses: list[DeliveryStatus] = []
        for writer in self._writers:
            status, error = call_guarded(writer.emit, scored)
            if status is None:
                return self._defect(writer, error)
            statuses.append(status)
        if not await self._are_written(statuses):
            return _not_exported("its native scores were not taken in time")
        return ACKNOWLEDGE

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
            self._note(emitter, (await asyncio.to_thread(call_guarded, emitter.shutdown, _NOTHING_LEFT))[1])
        await asyncio.to_thread(self._providers.shutdown)

    def _export(self, batch: Sequence[Delivery]) -> Sequence[WriteResult]:
        """Export the spans of a batch, in the sender's thread. All exporters have to take them.

        Raises:
            ExportError: they are not taken. The sender tries smaller and smaller batches, since one record may be the reason.
        """
        spans = [span for one in batch for span in one.spans]
        have_taken = [_exported(exporter, spans) for exporter in self._exporters]  # all of them get the spans
        if not all(have_taken):
            self.pauses.refused()
            raise ExportError("an exporter could not send them")
        self.pauses.succeeded()
        return [Delivered()] * len(batch)

    async def _are_written(self, statuses: Sequence[DeliveryStatus]) -> bool:
        """Wait until all of it is written or finally refused. False if something is given up, or takes too long.

        A score whose span is not found for ten seconds is waited for no longer. Its writer goes on looking.
        """
        deadline = Deadline(self._options.export_retry_timeout)
        while deadline.remaining:
            states = {one.state(max_span_wait=_MAX_SPAN_WAIT) for one in statuses}
            if "lost" in states:
                break
            if "waiting" not in states:
                return True
            await asyncio.sleep(_PAUSE)
        self.pauses.refused()
        return False

    def _defect(self, emitter: object, error: BaseException | None) -> Disposition:
        self._note(emitter, error)
        return Disposition(ending="nacked", reason="emitter_error", detail="an emitter raised; the log says what")

    def _note(self, emitter: object, error: BaseException | None) -> None:
        if error is not None:
            self._log.report("emitter", "%s failed with %s", type(emitter).__name__, type(error).__name__)


def _not_exported(detail: str) -> Disposition:
    return Disposition(ending="nacked", reason="export_failed", detail=detail)


class DeterministicSpanIds(IdGenerator, SpanProcessor, Sampler):
    """Gives the spans of the current delivery their ids, and collects those that end.

    It is a sampler only to know the names of spans, which the SDK does not tell to generators of ids. Another sampler decides.
    """

    def __init__(self) -> None:
        self._sampler: Sampler = ALWAYS_ON
        self._delivery: Delivery | None = None
        self._record_id = self._name = ""
        self._names: Counter[str] = Counter()

    def watch(self, provider: TracerProvider) -> None:
        """Know the names of this provider's spans."""
        self._sampler, provider.sampler = provider.sampler, self

    @contextmanager
    def at(self, delivery: Delivery, record: RagRecord) -> Iterator[None]:
        """Spans that start and end in this block belong to this delivery."""
        self._delivery, self._record_id, self._names = delivery, record.record_id, delivery.span_names
        try:
            yield
        finally:
            self._delivery = None

    def generate_span_id(self) -> int:
        """Follows from the record, the span's name, and the number of spans of that name before it."""
        self._names[self._name] += 1
        return self._digest(f"{self._names[self._name]} {self._name}", size=8)

    def generate_trace_id(self) -> int:
        """Follows from the record alone."""
        return self._digest("trace", size=16)

    def _digest(self, what: str, *, size: int) -> int:
        """Never 0, which is not a valid id."""
        # Both parts may hold anything, so the length says where the first one ends.
        key = f"{len(what)} {what} {self._record_id}"
        digest = blake2b(key.encode(errors="surrogatepass"), digest_size=size, person=b"ragspan").digest()
        return int.from_bytes(digest, "big") or 1

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's signature
        if self._delivery is not None and self._delivery.number > 1:
            span.set_attribute(semconv.DELIVERY_COUNT, self._delivery.number)

    def on_end(self, span: ReadableSpan) -> None:
        if self._delivery is not None and span.context is not None and span.context.trace_flags.sampled:
            self._delivery.spans.append(span)

    def should_sample(
        self, parent_context: Context | None, trace_id: int, name: str, *args: Any, **kwargs: Any
    ) -> SamplingResult:
        self._name = name  # the SDK asks the sampler before it makes the span's id
        return self._sampler.should_sample(parent_context, trace_id, name, *args, **kwargs)

    def get_description(self) -> str:
        return self._sampler.get_description()


def _exported(exporter: SpanExporter, spans: Sequence[ReadableSpan]) -> bool:
    result, _ = call_guarded(exporter.export, spans)
    if result is not SpanExportResult.SUCCESS:
        return False
    # An exporter that only queues spans says here whether it has sent them.
    is_sent, error = call_guarded(exporter.force_flush, int(_FLUSH * 1000))
    return error is None and is_sent is not False
