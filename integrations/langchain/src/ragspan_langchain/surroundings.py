"""What others keep beside the events: LangChain about the step that is running, OpenInference about its spans."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config

from ragspan.records import SpanAnchor
from ragspan.telemetry.anchors import anchor_of

_OPENINFERENCE = "openinference.instrumentation.langchain"


def enclosing_run_id() -> UUID | None:
    """The run whose function is calling; None outside of any."""
    return getattr(_callbacks(), "parent_run_id", None)


def handlers_around() -> Sequence[Any]:
    """The handlers that the running step's own calls will get."""
    return getattr(_callbacks(), "handlers", ())


def tokens_are_delivered() -> bool:
    """Whether the caller gets a model's tokens although the calls in between are no streams.

    That is so for a graph's stream of messages and for streams of events: LangChain and LangGraph put a handler of their
    own beside ours for those.
    """
    return any(
        kind.__name__ == "_StreamingCallbackHandler" for each in handlers_around() for kind in type(each).__mro__
    )


def _callbacks() -> Any:
    config = var_child_runnable_config.get()
    return None if config is None else config.get("callbacks")


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
    module = sys.modules.get(_OPENINFERENCE)
    instrumentor = None if module is None else getattr(module, "LangChainInstrumentor", None)
    if instrumentor is None or instrumentor().is_instrumented_by_opentelemetry is not True:
        return None
    return instrumentor()
