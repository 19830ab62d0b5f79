"""An exporter of spans that keeps spans through an outage of the tool.

OTLP exporters give a batch up after ten seconds, and with it the scores that a tool takes only with their spans. `ScoringEngine.flush`
reaches what waits here, though the SDK's own processors flush only as far as to their exporter.
"""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragspan.telemetry.providers import collecting_causes, exporter_of, flush_as_well
from ragspan.tools.delivery import Delivered, DeliveryOptions, DeliveryStats, ExportError, WriteResult
from ragspan.tools.sender import Sender

__all__ = ["RetryingOTLPSpanExporter", "RetryingSpanExporter"]

_SPAN_BYTES, _ENTRY_BYTES = 1000, 100  # of a span without attributes, about, and of one of them without its text
AFTER_SCORES = 3.0
"""Seconds at the end for an exporter whose spans the writer of scores has flushed before."""
SPAN_DELIVERY = DeliveryOptions(queue_bytes=64 * 1024 * 1024, batch_size=512, linger=0.0)


class RetryingSpanExporter(SpanExporter):
    """Hands spans to another exporter, and keeps those that it could not send until it can.

    For `BatchSpanProcessor(RetryingSpanExporter(OTLPSpanExporter()))`. Under `opentelemetry-instrument`, and wherever
    exporters are chosen by `OTEL_TRACES_EXPORTER`, its name is `ragspan_otlp`.

    What the inner exporter fails to send is tried again with growing pauses, in smaller and smaller batches, until
    `delivery.retry_window` is over. An exporter does not say why it failed, so a span that the tool rejects for good is
    tried for as long; it ends up in a batch by itself and delays no other.

    Args:
        exporter: sends the spans. Its own time limit for a try should be short, as it is by default.
        delivery: how long spans are retried, and how many may wait; by default 64 MiB of them, for 600 seconds.
        exit_timeout: the longest, in seconds, that `shutdown` goes on trying.
    """

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        delivery: DeliveryOptions = SPAN_DELIVERY,
        exit_timeout: float = 10.0,
    ) -> None:
        self.inner = exporter
        """The exporter that sends the spans, for a caller with retries of its own."""
        self._exit_timeout = exit_timeout
        self._sender = Sender(delivery, write=self._write, name="exporter", item="span")
        flush_as_well(self)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Take the spans in; `FAILURE` only after `shutdown`."""
        taken = self._sender.put([_Item(span) for span in spans])
        return SpanExportResult.FAILURE if taken.is_lost else SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000, *, until_refused: bool = False) -> bool:
        """Try everything at once; True if all spans that were exported before are sent within the time.

        With `until_refused` it ends with the first batch that the inner exporter fails to send.
        """
        return self._sender.flush(timeout_millis / 1000, until_refused=until_refused)

    def shutdown(self, timeout_millis: float = 30_000) -> None:
        """Send what is left within the time, or `exit_timeout` if that is shorter, and count the rest as dropped."""
        seconds = min(timeout_millis / 1000, self._exit_timeout)
        self._sender.shutdown(seconds * 0.75, more=seconds / 4)
        self.inner.shutdown()  # which also ends a try that is under way

    def stats(self) -> DeliveryStats:
        """Where every span is that was exported."""
        return self._sender.stats()

    def _write(self, batch: Sequence[_Item]) -> Sequence[WriteResult]:
        with collecting_causes() as causes:
            result = self.inner.export([item.span for item in batch])
        if result is not SpanExportResult.SUCCESS:
            raise ExportError(causes[0] if causes else "its exporter failed")
        return [Delivered()] * len(batch)


class RetryingOTLPSpanExporter(RetryingSpanExporter):
    """One around the OTLP exporter that the standard variables describe: `ragspan_otlp` by name.

    Raises:
        ConfigurationError: no OTLP exporter is installed, or not the one for the protocol that is configured.
    """

    def __init__(self) -> None:
        super().__init__(exporter_of("traces", "otlp").load()())


class _Item:
    """A span on its way."""

    def __init__(self, span: ReadableSpan) -> None:
        self.span = span
        attributes = [span.attributes or {}, *(event.attributes or {} for event in span.events)]
        values = [value for each in attributes for value in each.values()]
        self.size = _SPAN_BYTES + sum(_ENTRY_BYTES + (len(one) if isinstance(one, Sequence) else 0) for one in values)
