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
import time
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
from ragspan_nats.delivery import ACKNOWLEDGE, Delivery, Disposition
from ragspan_nats.settings import WorkerOptions

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider

_TIMEOUT = "timeout"  # the engine's error type for a metric that took too long
_END = 5.0  # seconds for the end of each part
_NOTHING_LEFT = 1.0  # seconds for the engine and for writers: what is not done by now is given back
_FLUSH = 30.0  # seconds
_PAUSE = 0.1  # seconds between two looks at the spans and scores of a record
_MAX_SPAN_WAIT = 10.0  # seconds of looking for a span that was exported; it may have been sampled out on its way
_SLACK = 60.0  # seconds for which a writer still holds what the worker has given back
_SCORES_OF_A_RECORD = 128  # at most: some metrics have one for each context
_BYTES_OF_A_RECORD = 256 * 1024  # likewise, explanations included
_LINGER = 0.2  # seconds that spans and scores wait for others to be sent with
_RECORDS_A_BATCH = 64
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds, while spans or native scores are not taken
_SLOW = 2.0  # seconds after which an export that has not ended may fail


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
    """Scores deliveries and exports their scores.

    Args:
        settings: of the engine and its emitters.
        options: of the worker.
        log: gets warnings.

    Raises:
        ConfigurationError: no exporter of spans is configured, or a setting is wrong.
    """

    def __init__(self, settings: Settings, options: WorkerOptions, *, log: ThrottledLog) -> None:
        check_worker(settings)
        settings = replace(
            settings,
            export="application",
            concurrency=options.concurrency,
            max_records_per_second=None,  # the worker bounds what it takes
            exit_timeout=_END,
        )
        self._options = options
        self._log = log
        self.exporting = Exporting()
        self._ids = DeterministicSpanIds()
        exporters: list[SpanExporter] = []

        def collecting(made: Sequence[SpanExporter]) -> SpanProcessor:
            # The worker repeats exports by itself: it must know what became of each span.
            exporters.extend(one.inner if isinstance(one, RetryingSpanExporter) else one for one in made)
            return self._ids

        self._providers = providers_from_environment(processor=collecting, id_generator=self._ids)
        self._ids.watch(self._providers.tracer_provider)
        emitters = emitters_from(settings, self._providers)
        (self._spans,) = (emitter for emitter in emitters if isinstance(emitter, OTelEmitter))
        self._writers = [emitter for emitter in emitters if isinstance(emitter, ScoreWriter)]
        for writer in self._writers:
            writer.set_delivery_options(_for_what_is_in_flight(writer.delivery, options))
        self._others = [one for one in emitters if not isinstance(one, (OTelEmitter, ScoreWriter))]
        self._span_writer = SpanWriter(
            exporters,
            retry_window=options.export_retry_timeout,
            meter_provider=self.meter_provider,
            exporting=self.exporting,
        )
        self._engine = engine_from(settings, self._providers, emitters=[])

    @property
    def meter_provider(self) -> MeterProvider:
        return self._providers.meter_provider

    async def score(self, delivery: Delivery, record: RagRecord) -> ScoredRecord | Dropped:
        """Start the answer's spans and score the record."""
        with self._ids.at(delivery, record):
            delivery.handle = handle = self._spans.start(record)
        # The engine emits nothing here. The parent's trace is that by which it chooses what is scored.
        scored = await self._engine.score(RedactedRecord(replace(record, parent=handle.span or record.parent)))
        if not isinstance(scored, ScoredRecord):
            return scored
        return replace(scored, record=record, span=handle.span, retrieval_spans=handle.retrieval_spans)

    async def export(self, delivery: Delivery, scored: ScoredRecord) -> Disposition:
        """How the delivery ends. If it is acknowledged, its scores are written."""
        disposition = disposition_of(scored, delivery.number, self._options)
        if disposition.ending != "acknowledged" or delivery.handle is None:
            return disposition
        handle, delivery.handle = delivery.handle, None
        with self._ids.at(delivery, scored.record):
            _, error = call_guarded(handle.finish, scored)
        if error is not None:
            self._note(self._spans, error)
            return Disposition(ending="nacked", reason="emitter_error", detail="an emitter raised; the log says what")
        for other in self._others:
            self._note(other, call_guarded(lambda one: one.start(scored.record).finish(scored), other)[1])
            if not (await asyncio.to_thread(call_guarded, other.flush, _FLUSH))[0]:
                return Disposition(ending="nacked", reason="export_failed", detail="an emitter did not flush in time")
        if not await self._are_written([self._span_writer.put(delivery)]):
            self.exporting.end(has_taken=False)
            return Disposition(
                ending="nacked", reason="export_failed", detail="the backend did not take its spans in time"
            )
        statuses: list[DeliveryStatus] = []
        for writer in self._writers:
            status, error = call_guarded(writer.emit_with_status, scored)
            if status is None:
                self._note(writer, error)
                return Disposition(
                    ending="nacked", reason="emitter_error", detail="a native writer raised; the log says what"
                )
            statuses.append(status)
        if not await self._are_written(statuses):
            self.exporting.end(has_taken=False)
            return Disposition(
                ending="nacked", reason="export_failed", detail="its native scores were not taken in time"
            )
        return ACKNOWLEDGE

    def abandon(self, delivery: Delivery) -> None:
        """End the spans of a delivery that are open. They are not exported."""
        if delivery.handle is not None:
            call_guarded(delivery.handle.abandon)

    async def shutdown(self) -> None:
        """Close everything. Metrics and events that are left are sent."""
        await asyncio.to_thread(self._engine.shutdown, timeout=_NOTHING_LEFT)
        await asyncio.to_thread(self._span_writer.shutdown)
        for emitter in (self._spans, *self._others, *self._writers):
            self._note(emitter, (await asyncio.to_thread(call_guarded, emitter.shutdown, _NOTHING_LEFT))[1])
        await asyncio.to_thread(self._providers.shutdown)

    async def _are_written(self, statuses: Sequence[DeliveryStatus]) -> bool:
        """Wait until all of it is written or finally refused. False if something is given up, or takes too long.

        A score whose span is not found for ten seconds is waited for no longer. Its writer goes on looking.
        """
        deadline = Deadline(self._options.export_retry_timeout)
        while deadline.remaining:
            states = {one.state(max_span_wait=_MAX_SPAN_WAIT) for one in statuses}
            if "lost" in states or "waiting" not in states:
                return "lost" not in states
            await asyncio.sleep(_PAUSE)
        return False

    def _note(self, emitter: object, error: BaseException | None) -> None:
        if error is not None:
            self._log.report("emitter", "%s failed with %s", type(emitter).__name__, type(error).__name__)


def _for_what_is_in_flight(delivery: DeliveryOptions, options: WorkerOptions) -> DeliveryOptions:
    """A writer holds the scores of all records in flight, and those whose spans it still looks for, for as long."""
    return replace(
        delivery,
        queue_size=delivery.queue_size + options.room * _SCORES_OF_A_RECORD,
        queue_bytes=delivery.queue_bytes + options.room * _BYTES_OF_A_RECORD,
        linger=min(delivery.linger, _LINGER),
        retry_window=max(delivery.retry_window, options.export_retry_timeout + _SLACK),
    )


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


class Exporting:
    """Whether the exporters take what is scored. If they do not, it is scored again later: then scoring has to wait.

    The exporters' thread changes it, and the worker's loop looks at it.
    """

    def __init__(self) -> None:
        self._pauses = Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        self._began: float | None = None
        self._has_taken = False

    def begin(self) -> None:
        """An export begins."""
        self._began = time.monotonic()

    def end(self, *, has_taken: bool) -> None:
        """An export was taken, or was not, or something was given up."""
        self._began = None
        self._has_taken = has_taken
        if has_taken:
            self._pauses.succeeded()
        else:
            self._pauses.refused()

    def take(self) -> None:
        """A record is taken. While exports fail, the next one has to wait for what becomes of it, or for a longer pause."""
        if self._pauses.refusals:
            self._pauses.refused()

    def room(self, in_flight: int, concurrency: int) -> int | None:
        """How many more records may be scored, with `in_flight` of them under way; None if that does not depend on exports.

        While exports fail it is one at a time, with pauses. Before the first was taken, and while one takes long, it is no more
        than are scored at a time: an exporter may need ten seconds to find out that nobody is there.
        """
        if self._pauses.refusals:
            return 0 if self._pauses.remaining else 1
        began = self._began
        is_slow = began is not None and time.monotonic() - began > _SLOW
        return None if self._has_taken and not is_slow else max(0, concurrency - in_flight)


class SpanWriter:
    """Exports the spans of deliveries. All exporters have to take them.

    Args:
        exporters: of spans.
        retry_window: seconds for which a record is tried again.
        meter_provider: counts what became of the records.
        exporting: called with each export that was taken, or was not.
    """

    def __init__(
        self,
        exporters: Sequence[SpanExporter],
        *,
        retry_window: float,
        meter_provider: MeterProvider,
        exporting: Exporting,
    ) -> None:
        self._exporters = exporters
        self._exporting = exporting
        options = DeliveryOptions(
            queue_size=2**30, queue_bytes=2**40, batch_size=_RECORDS_A_BATCH, linger=_LINGER, retry_window=retry_window
        )
        self._sender: Sender[Delivery] = Sender(
            options, write=self._write, name="exporter", item="record", meter_provider=meter_provider
        )

    def put(self, delivery: Delivery) -> DeliveryStatus:
        """Export the delivery's spans together. An answer whose trace is not sampled has none."""
        return self._sender.put([delivery] if delivery.spans else [])

    def shutdown(self) -> None:
        """Start no further export, and shut the exporters down, which also ends an export under way."""
        self._sender.shutdown(0.0)
        for exporter in self._exporters:
            call_guarded(exporter.shutdown)

    def _write(self, batch: Sequence[Delivery]) -> Sequence[WriteResult]:
        """Export a batch.

        Raises:
            ExportError: it is not taken. It is tried again in smaller and smaller batches, since one record may be the reason.
        """
        spans = [span for one in batch for span in one.spans]
        self._exporting.begin()
        have_taken = [_export(exporter, spans) for exporter in self._exporters]  # all of them get the spans
        self._exporting.end(has_taken=all(have_taken))
        if not all(have_taken):
            raise ExportError("an exporter could not send them")
        return [Delivered()] * len(batch)


def _export(exporter: SpanExporter, spans: Sequence[ReadableSpan]) -> bool:
    result, _ = call_guarded(exporter.export, spans)
    if result is not SpanExportResult.SUCCESS:
        return False
    # An exporter that only queues spans says here whether it has sent them.
    is_sent, error = call_guarded(exporter.force_flush, int(_FLUSH * 1000))
    return error is None and is_sent is not False
