"""What LangChain knows of the running step, and OpenInference of its spans."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final, TypeAlias
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config

from ragspan.capturing import anchor_of_span
from ragspan.records import SpanAnchor
from ragspan.safe_copy import fields_of

RunId: TypeAlias = UUID | str

OPENINFERENCE: Final = "openinference.instrumentation.langchain"  # its module; never imported here
LOSES_CONTEXT: Final = sys.version_info < (3, 11)
"""LangChain cannot tell asynchronous functions where they are: a task takes no context there."""
_node: ContextVar[UUID | None] = ContextVar("ragspan_langchain_node", default=None)


def _configured(name: str) -> Any:
    config = var_child_runnable_config.get()
    return None if config is None else config.get(name)


def enclosing_run_id() -> UUID | None:
    """The run whose function is calling; None outside of any."""
    found: UUID | None = getattr(_configured("callbacks"), "parent_run_id", None)
    return _node.get() if found is None and LOSES_CONTEXT else found


def note_node(run_id: RunId, about: Mapping[str, Any]) -> None:
    """A run begins where LangChain is blind: a node of a graph has a task of its own, which shows what the node calls."""
    if type(run_id) is UUID and "langgraph_node" in (about.get("metadata") or ()):
        _node.set(run_id)


def handlers_around() -> Sequence[Any]:
    """The handlers that the running step's own calls will get."""
    return getattr(_configured("callbacks"), "handlers", ())


def context_of_graph() -> Any:
    """What a graph was called with beside its input, a profile of the user's, say: LangGraph hands it to each node."""
    return fields_of((_configured("configurable") or {}).get("__pregel_runtime")).get("context")


def tokens_are_delivered() -> bool:
    """Whether the caller gets a model's tokens although the calls in between are not streams.

    LangChain and LangGraph then put a handler of their own beside ours: for a graph's stream of messages, for streams of events.
    """
    handlers = handlers_around()
    return len(handlers) > 1 and any(
        base.__name__ == "_StreamingCallbackHandler" for each in handlers for base in type(each).__mro__
    )


def openinference_anchor(run_id: RunId) -> SpanAnchor | None:
    """The span that OpenInference made for this run, if it has one by now.

    OpenInference keeps its spans out of the context, so they are never current; and it forgets them when the run ends.
    """
    if OPENINFERENCE not in sys.modules:
        return None
    try:
        instrumentor = sys.modules[OPENINFERENCE].LangChainInstrumentor()
        if not instrumentor.is_instrumented_by_opentelemetry:  # else it prints a complaint
            return None
        span = instrumentor.get_span(run_id)
        return None if span is None else anchor_of_span(span)
    except Exception:  # noqa: BLE001  another library's object in whatever version: no span is an answer
        return None
