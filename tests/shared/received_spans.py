"""Spans as an exporter of OTLP sends them."""

from __future__ import annotations

from dataclasses import dataclass

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it came over the wire."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, object]
    trace_state: str
    resource: dict[str, object]
    """The attributes of what sent it."""


def spans_in(body, kind=ReceivedSpan):
    """The spans of a request of OTLP."""
    return [
        kind(
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            attributes=_plain(span.attributes),
            trace_state=span.trace_state,
            resource=_plain(resource.resource.attributes),
        )
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def _plain(pairs):
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}
