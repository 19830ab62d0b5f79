"""An export for tests, and what it is given."""

from __future__ import annotations

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext, TraceFlags
from worker_parts import Ends, LoopThread, a_delivery

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker.export import SpanExport

PATIENCE = 30.0


def carrying(*names):
    """A delivery with spans of these names."""
    context = SpanContext(trace_id=1, span_id=2, is_remote=False, trace_flags=TraceFlags(1))
    return a_delivery(spans=[ReadableSpan(name=name, context=context) for name in names])


def names_of(deliveries):
    return [span.name for delivery in deliveries for span in delivery.spans]


class Line:
    """An export, and what it said."""

    def __init__(self, exporters, *, patience=PATIENCE):
        self.ends = Ends()
        self._loop = LoopThread()
        self._export = SpanExport(exporters, timeout=patience, log=ThrottledLog())
        self._loop.begin(self._export.run())

    def put(self, *deliveries):
        for delivery in deliveries:
            self._loop.begin(self._wait_for(delivery))
        return deliveries

    async def _wait_for(self, delivery):
        taken = await self._export.export(delivery.spans)
        self.ends.taker("exported" if taken else "failed")(delivery)

    def stop(self, timeout):
        self._loop.run(self._export.close(timeout))

    def close(self):
        self.stop(5.0)
        self._loop.close()

    @property
    def exported(self):
        return names_of(self.ends.deliveries("exported"))

    @property
    def failed(self):
        return names_of(self.ends.deliveries("failed"))
