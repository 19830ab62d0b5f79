"""Lets `ragspan.record_contexts` reach the LangChain request that it is called in."""

from __future__ import annotations

from collections.abc import Sequence

from ragspan.records import RetrievedContext
from ragspan_langchain.handler import RagspanCallbackHandler
from ragspan_langchain.surroundings import enclosing_run_id, handlers_around


def record_contexts_of_run(contexts: Sequence[RetrievedContext]) -> bool:
    """Note contexts for the run whose function is calling; False outside of any run with a ragspan handler."""
    run_id = enclosing_run_id()
    if run_id is None:
        return False
    ours = [handler for handler in handlers_around() if isinstance(handler, RagspanCallbackHandler)]
    trackers = {id(handler.tracker): handler.tracker for handler in ours}
    taken = [tracker.record_contexts(run_id, contexts) for tracker in trackers.values()]
    return any(taken)
