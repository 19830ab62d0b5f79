"""OpenTelemetry as its documentation sets it up for production: a batch processor and the OTLP exporter."""

from __future__ import annotations

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def provider(sink: str) -> TracerProvider:
    """With the exporter's and the processor's defaults."""
    made = TracerProvider()
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{sink}/v1/traces")))
    return made
