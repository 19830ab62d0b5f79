"""How many spans of scores were sent: what waits in OpenTelemetry's queue when the process ends is lost, and no log says so."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragspan.telemetry.environment import Signal, make_exporter


class ExportedSpans(SpanProcessor):
    """Counts the spans that end, and for each exporter those that it has sent."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = 0
        self._exporters: list[_CountingExporter] = []

    def make_exporter(self, signal: Signal, entry: EntryPoint) -> Any:
        """The exporter, which counts if it is one of spans."""
        made = make_exporter(signal, entry)
        if signal != "traces":
            return made
        self._exporters.append(_CountingExporter(made))
        return self._exporters[-1]

    def on_end(self, span: ReadableSpan) -> None:
        if span.context is not None and span.context.trace_flags.sampled:
            with self._lock:
                self._ended += 1

    def unsent(self) -> int:
        """How many spans one of the exporters, at least, has not sent."""
        return max((self._ended - one.sent for one in self._exporters), default=0)


class _CountingExporter(SpanExporter):
    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self.sent = 0  # a batch processor has one thread

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.sent += len(spans)
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)
