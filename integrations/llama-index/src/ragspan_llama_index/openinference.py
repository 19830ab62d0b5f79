"""The span that OpenInference makes for a request, where it instruments LlamaIndex too."""

from __future__ import annotations

from sys import modules
from typing import Final

from llama_index_instrumentation import get_dispatcher

from ragspan.capturing import current_anchor
from ragspan.records import SpanAnchor

OPENINFERENCE: Final = "openinference.instrumentation.llama_index"
"""Its module; never imported here."""


def is_active() -> bool:
    instrumentor = getattr(modules.get(OPENINFERENCE), "LlamaIndexInstrumentor", None)
    return instrumentor is not None and instrumentor().is_instrumented_by_opentelemetry is True


def span_of(span_id: str) -> SpanAnchor | None:
    """The span that OpenInference made for this span of the framework, if it has it open by now.

    Its handler is one of the dispatcher's, and keeps its spans where the framework's base class has a place for them.
    """
    for handler in get_dispatcher().span_handlers:
        if type(handler).__module__.startswith("openinference."):
            try:
                span = handler.open_spans.get(span_id)
                return None if span is None else current_anchor(span.context)
            except Exception:  # noqa: BLE001  another library's object in whatever version: no span is an answer
                return None
    return None
