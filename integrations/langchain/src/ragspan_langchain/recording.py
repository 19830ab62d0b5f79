"""Lets `ragspan.record_contexts` reach the LangChain request that it is called in."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.runnables.config import var_child_runnable_config

from ragspan.records import RetrievedContext
from ragspan_langchain.handler import RagspanCallbackHandler


def record_contexts_of_run(contexts: Sequence[RetrievedContext]) -> bool:
    """Note passages for the run whose function is calling; False outside of any run with a ragspan handler.

    LangChain keeps the configuration of the running step in a context variable, and in it the callbacks that the step's
    own calls will get: their handlers, and the step's run as their parent.
    """
    config = var_child_runnable_config.get()
    callbacks = config.get("callbacks") if config is not None else None
    run_id = getattr(callbacks, "parent_run_id", None)
    if run_id is None:
        return False
    trackers = {
        id(handler.tracker): handler.tracker
        for handler in getattr(callbacks, "handlers", ())
        if isinstance(handler, RagspanCallbackHandler)
    }
    taken = [tracker.record_contexts(run_id, contexts) for tracker in trackers.values()]
    return any(taken)
