"""Conversations that wait for a person: what was found before the interruption counts for the answer after it.

The graph's saved state often holds the documents only as text by then. So their texts are kept, never the documents, for a
bounded number of conversations, until the graph goes on or the user asks something new.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from ragspan_langchain.payloads.freezing import OPAQUE, Frozen
from ragspan_langchain.runs import SeenDocument, Trace

_MAX_THREADS = 100
_MAX_CHARACTERS = 1_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Waiting:
    inputs: Frozen
    documents: tuple[SeenDocument, ...]


class WaitingThreads:
    """The interrupted requests of one tracker, by the thread id of their conversation."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[str, _Waiting] = OrderedDict()

    def keep(self, trace: Trace) -> None:
        """Remember a request that was interrupted, after its documents were let go."""
        thread = _thread_of(trace)
        documents = tuple(trace.documents.values())
        if thread is None or sum(len(document.text) for document in documents) > _MAX_CHARACTERS:
            return
        inputs = trace.inputs if trace.inputs is not OPAQUE or not trace.saved_states else trace.saved_states[-1]
        self._waiting[thread] = _Waiting(inputs=inputs, documents=documents)
        while len(self._waiting) > _MAX_THREADS:
            self._waiting.popitem(last=False)

    def hand_over(self, trace: Trace) -> None:
        """Give a request that goes on what was found before; a new question makes it void."""
        thread = _thread_of(trace)
        waiting = self._waiting.pop(thread, None) if thread is not None else None
        if waiting is not None and trace.inputs is OPAQUE:
            trace.documents |= {id(document): document for document in waiting.documents}
            trace.asked_before = waiting.inputs


def _thread_of(trace: Trace) -> str | None:
    thread = trace.metadata.get("thread_id")
    return str(thread) if isinstance(thread, (str, int)) else None
