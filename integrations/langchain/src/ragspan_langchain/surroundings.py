"""What LangChain keeps in a context variable about the step that is running: its configuration, for its own calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from langchain_core.runnables.config import var_child_runnable_config


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
