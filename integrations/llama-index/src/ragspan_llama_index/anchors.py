"""Finds the span that OpenInference made for a request, where it instruments LlamaIndex too."""

from __future__ import annotations

import sys

from ragspan.records import SpanAnchor
from ragspan.telemetry.anchors import anchor_of


def openinference_is_active() -> bool:
    """Whether OpenInference instruments LlamaIndex in this process; it is never imported for that."""
    module = sys.modules.get("openinference.instrumentation.llama_index")
    instrumentor = getattr(module, "LlamaIndexInstrumentor", None)
    return instrumentor is not None and instrumentor().is_instrumented_by_opentelemetry is True


def openinference_anchor() -> SpanAnchor | None:
    """OpenInference's span for the framework's span that is entered or left right now, if it has one open."""
    module = sys.modules.get("openinference.instrumentation.llama_index")
    get_current_span = getattr(module, "get_current_span", None)
    try:
        span = get_current_span() if get_current_span is not None else None
        context = None if span is None else span.get_span_context()
        return anchor_of(context) if context is not None and context.is_valid else None
    except Exception:  # noqa: BLE001  another library's object in whatever version: no span is an answer
        return None
