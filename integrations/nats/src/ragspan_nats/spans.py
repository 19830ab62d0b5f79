"""The spans of records: their ids, and their export.

A record may be delivered twice, and is scored twice then. Its spans have the same ids both times, so that a backend which
knows spans by their ids shows the answer once; and the later ones say that they are of a later delivery.

Guarantees:
- An id follows from the record and from the span's name, and from nothing else: not from the process, and not from what
  other spans there are, which may be fewer when a worker with other metrics scores the record.
- A record whose spans are not taken is tried again, ever more rarely, and delays no other.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult

from ragspan.delivery import BatchSender, Delivered, DeliveryOptions, DeliveryStatus, Failed, WriteResult
from ragspan.delivery.spans import ExportError
from ragspan.engine._threads import call_guarded
from ragspan.records import RagRecord
from ragspan.telemetry import semconv
from ragspan_nats.consumer import Delivery

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider

LINGER = 0.2  # seconds that spans, and scores, wait for others to be sent with
_FLUSH_MILLIS = 30_000
_RECORDS_A_BATCH = 64


class RecordIds(IdGenerator, SpanProcessor):
    """Gives the spans of the current delivery their ids, and collects those that end."""

    def __init__(self) -> None:
        self._delivery: Delivery | None = None
        self._record_id = self._phase = ""
        self._named: Counter[str] = Counter()
        self.name = ""
        """Of the span that is being started."""

    @contextmanager
    def at(self, delivery: Delivery, record: RagRecord, phase: str) -> Iterator[None]:
        """Spans that are started and ended in this block are this delivery's."""
        self._delivery, self._record_id, self._phase, self._named = delivery, record.record_id, phase, Counter()
        try:
            yield
        finally:
            self._delivery = None

    def generate_span_id(self) -> int:
        """Follows from the record, the span's name, and how many of that name there were before."""
        self._named[self.name] += 1
        return self._digest(f"{self._phase} {self._named[self.name]} {self.name}", size=8)

    def generate_trace_id(self) -> int:
        """Follows from the record alone."""
        return self._digest("trace", size=16)

    def _digest(self, what: str, *, size: int) -> int:
        """Never 0, which is no id."""
        if self._delivery is None:
            return int.from_bytes(secrets.token_bytes(size), "big") or 1
        # A name holds texts of others, and so does a record id; the length tells where one ends.
        key = f"{len(what)} {what} {self._record_id}"
        digest = blake2b(key.encode(errors="surrogatepass"), digest_size=size, person=b"ragspan").digest()
        return int.from_bytes(digest, "big") or 1

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's signature
        if self._delivery is not None and self._delivery.count > 1:
            span.set_attribute(semconv.DELIVERY_COUNT, self._delivery.count)

    def on_end(self, span: ReadableSpan) -> None:
        if self._delivery is not None and span.context is not None and span.context.trace_flags.sampled:
            self._delivery.spans.append(span)


class NamingSampler(Sampler):
    """Leaves the decision to another sampler, and notes the span's name: generators of ids are not told it."""

    def __init__(self, sampler: Sampler, ids: RecordIds) -> None:
        self._sampler = sampler
        self._ids = ids

    def should_sample(
        self, parent_context: Context | None, trace_id: int, name: str, *args: Any, **kwargs: Any
    ) -> SamplingResult:
        self._ids.name = name  # the SDK asks the sampler before it makes the span's id
        return self._sampler.should_sample(parent_context, trace_id, name, *args, **kwargs)

    def get_description(self) -> str:
        return self._sampler.get_description()


@dataclass(frozen=True, slots=True, eq=False)
class _Spans:
    """The spans of a record on their way."""

    spans: Sequence[ReadableSpan]
    size: int = 1

    @property
    def key(self) -> int:
        return id(self)


class SpanWriter:
    """Exports the spans of records, as native writers write scores; all exporters have to take them."""

    def __init__(
        self, exporters: Sequence[SpanExporter], *, retry_window: float, meter_provider: MeterProvider
    ) -> None:
        self._exporters = exporters
        options = DeliveryOptions(
            queue_size=2**30, queue_bytes=2**30, batch_size=_RECORDS_A_BATCH, linger=LINGER, retry_window=retry_window
        )
        self._sender: BatchSender[_Spans] = BatchSender(
            options, write=self.write, name="exporter", items="records", meter_provider=meter_provider
        )

    def put(self, spans: Sequence[ReadableSpan]) -> DeliveryStatus:
        """Export these together; none are exported at once, because their trace is not sampled."""
        return self._sender.put([_Spans(spans)] if spans else [])

    def shutdown(self) -> None:
        """Begin no export any more, and shut the exporters down, which ends one that is under way."""
        self._sender.shutdown(0.0)
        for exporter in self._exporters:
            call_guarded(exporter.shutdown)

    def write(self, batch: Sequence[_Spans]) -> Sequence[WriteResult]:
        """Export a batch, and where it is not taken all but those for whose sake it is not.

        Raises:
            ExportError: two records are not taken by themselves, which says that the backend takes nothing.
        """
        if self._take(batch):
            return [Delivered()] * len(batch)
        if len(batch) == 1:
            return [Failed()]
        results: list[WriteResult] = []
        for one in batch:
            results.append(Delivered() if self._take([one]) else Failed())
            if results == [Failed(), Failed()]:
                raise ExportError
        return results

    def _take(self, batch: Sequence[_Spans]) -> bool:
        spans = [span for one in batch for span in one.spans]
        have_taken = [self._is_taken(exporter, spans) for exporter in self._exporters]  # all get them
        return all(have_taken)

    def _is_taken(self, exporter: SpanExporter, spans: Sequence[ReadableSpan]) -> bool:
        result, _ = call_guarded(exporter.export, spans)
        if result is not SpanExportResult.SUCCESS:
            return False
        # An exporter that takes spans in before it sends them says here whether it has sent them.
        is_sent, error = call_guarded(exporter.force_flush, _FLUSH_MILLIS)
        return error is None and is_sent is not False
