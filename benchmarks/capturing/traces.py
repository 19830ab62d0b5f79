"""Spans of a peer that builds on OpenTelemetry, kept in this process and put together to traces."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """The spans of one trace, in the order in which they began."""

    spans: Sequence[ReadableSpan]

    @property
    def roots(self) -> list[ReadableSpan]:
        return [span for span in self.spans if span.parent is None]


class KeepingExporter(SpanExporter):
    """Keeps spans until somebody takes them; none is lost that comes while they are taken."""

    def __init__(self) -> None:
        self._spans: deque[ReadableSpan] = deque()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._spans.extend(spans)
        return SpanExportResult.SUCCESS

    def take(self) -> list[ReadableSpan]:
        return [self._spans.popleft() for _ in range(len(self._spans))]


class LocalSpans:
    """A tracer provider whose spans stay here; with `processor=False` a peer brings the processor for the exporter."""

    def __init__(self, *, processor: bool = True) -> None:
        self.exporter = KeepingExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        if processor:
            self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self._waiting: dict[int, list[ReadableSpan]] = defaultdict(list)

    def take(self) -> list[Trace]:
        """The traces whose root has ended since the last call; spans of others wait for theirs."""
        for span in self.exporter.take():
            self._waiting[span.context.trace_id].append(span)
        ended = [trace_id for trace_id, spans in self._waiting.items() if any(span.parent is None for span in spans)]
        traces = [Trace(spans=sorted(self._waiting.pop(id_), key=lambda span: span.start_time or 0)) for id_ in ended]
        return sorted(traces, key=lambda trace: trace.spans[0].start_time or 0)
