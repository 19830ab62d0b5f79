"""Finds the spans that OpenInference made for a request, where it instruments LlamaIndex too."""

from __future__ import annotations

import sys
from typing import Any

from llama_index_instrumentation import get_dispatcher
from opentelemetry.trace import get_current_span

from ragspan.records import SpanAnchor
from ragspan.telemetry.anchors import anchor_of
from ragspan_llama_index.roles import SEARCH, Role

OPENINFERENCE = "openinference.instrumentation.llama_index"
"""Its module; never imported here."""


def openinference_is_active() -> bool:
    """Whether OpenInference instruments LlamaIndex in this process."""
    module = sys.modules.get(OPENINFERENCE)
    instrumentor = getattr(module, "LlamaIndexInstrumentor", None)
    return instrumentor is not None and instrumentor().is_instrumented_by_opentelemetry is True


def openinference_anchor(span_id: str) -> SpanAnchor | None:
    """The span that OpenInference made for this span of the framework, if it has it open by now.

    Its handler is one of the dispatcher's, and keeps its spans where the framework's base class has a place for them.
    """
    if OPENINFERENCE not in sys.modules:
        return None
    for handler in get_dispatcher().span_handlers:
        if type(handler).__module__.startswith("openinference."):
            try:
                span = handler.open_spans.get(span_id)
                context = None if span is None else get_current_span(span.context).get_span_context()
            except Exception:  # noqa: BLE001  another library's object in whatever version: no span is an answer
                return None
            return anchor_of(context) if context is not None and context.is_valid else None
    return None


def note_span(role: Role, span_id: str, payload: dict[str, Any] | None) -> None:
    """Note the span that OpenInference made of a search."""
    if OPENINFERENCE in sys.modules and role == SEARCH and payload is not None:
        payload["span"] = openinference_anchor(span_id)
