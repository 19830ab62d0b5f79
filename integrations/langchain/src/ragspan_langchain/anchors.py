"""Finds the spans that OpenInference made for a request, where it instruments LangChain too."""

from __future__ import annotations

import sys
from typing import Any
from uuid import UUID

from ragspan.records import SpanAnchor
from ragspan.telemetry.anchors import anchor_of

_MODULE = "openinference.instrumentation.langchain"


def openinference_is_active() -> bool:
    """Whether OpenInference instruments LangChain in this process; it is never imported for that."""
    return _openinference() is not None


def openinference_anchor(run_id: UUID | str) -> SpanAnchor | None:
    """The span that OpenInference made for this run, if it has one by now.

    OpenInference keeps its spans out of the context, so they are never current; and it forgets them when the run ends.
    """
    instrumentor = _openinference()
    if instrumentor is None:
        return None
    get_span = getattr(instrumentor, "get_span", None)
    try:
        span = get_span(run_id) if get_span is not None else None
        context = None if span is None else span.get_span_context()
        return anchor_of(context) if context is not None and context.is_valid else None
    except Exception:  # noqa: BLE001  another library's object in whatever version: no span is an answer
        return None


def _openinference() -> Any:
    """Its instrumentor; None while it does not instrument, for then it prints a complaint when it is asked for a span."""
    instrumentor = getattr(sys.modules.get(_MODULE), "LangChainInstrumentor", None)
    if instrumentor is None or instrumentor().is_instrumented_by_opentelemetry is not True:
        return None
    return instrumentor()
