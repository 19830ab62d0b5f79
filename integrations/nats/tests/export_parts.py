"""An export line for tests, and what it is given."""

from __future__ import annotations

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, TraceFlags
from worker_parts import Ends, a_delivery

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker.export import ExportLine

PATIENCE = 30.0


def carrying(*names):
    """A delivery with spans of these names."""
    context = SpanContext(trace_id=1, span_id=2, is_remote=False, trace_flags=TraceFlags(1))
    return a_delivery(spans=[ReadableSpan(name=name, context=context) for name in names])


def names_of(deliveries):
    return [span.name for delivery in deliveries for span in delivery.spans]


class Line:
    """An export line, and what it said."""

    def __init__(self, exporters, **options):
        self.ends = Ends()
        self.line = ExportLine(
            exporters,
            **{
                "on_exported": self.ends.taker("exported"),
                "on_failure": self.ends.taker("failed"),
                "patience": PATIENCE,
                "log": ThrottledLog(),
                **options,
            },
        )
        self.line.start()

    def put(self, *deliveries):
        for delivery in deliveries:
            self.line.put(delivery)
        return deliveries

    @property
    def exported(self):
        return names_of(self.ends.deliveries("exported"))

    @property
    def failed(self):
        return names_of(self.ends.deliveries("failed"))
