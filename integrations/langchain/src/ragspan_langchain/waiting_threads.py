"""Conversations that wait for a person: what was found before the interruption counts for the answer after it.

The graph's saved state often holds the documents only as text by then, and a draft may be all that it returns. So the texts
of documents and prompts are kept, never the documents, for a bounded number of conversations, until the graph has gone on
or the user asks something new.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragspan_langchain.payloads.freezing import OPAQUE, Frozen
from ragspan_langchain.runs import ModelRun, SeenDocument, Trace

_MAX_THREADS = 1000
_MAX_BYTES = 50_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _Waiting:
    inputs: Frozen
    documents: tuple[SeenDocument, ...]
    models: tuple[ModelRun, ...]
    queries: tuple[str, ...]
    size: int


class WaitingThreads:
    """Interrupted requests by the thread id of their conversation."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def settle(self, trace: Trace, size: int) -> None:
        """Remember a request that was interrupted, after its documents were let go; forget one that went on to its end."""
        thread = _thread_of(trace)
        if thread is None:
            return
        if not trace.interrupted:
            if trace.error is None:
                self._waiting.pop(thread, None)
            return
        asked = next((asked for asked in (trace.inputs, trace.asked_before) if asked is not OPAQUE), OPAQUE)
        self._waiting.pop(thread, None)  # the newest goes to the end
        self._waiting[thread] = _Waiting(
            inputs=trace.saved_states[-1] if asked is OPAQUE and trace.saved_states else asked,
            documents=tuple(trace.documents.values()),
            models=(*trace.models_before, *trace.models),
            queries=tuple(trace.queries),
            size=size,
        )
        while len(self._waiting) > _MAX_THREADS or sum(each.size for each in list(self._waiting.values())) > _MAX_BYTES:
            self._waiting.pop(next(iter(list(self._waiting))), None)

    def hand_over(self, trace: Trace) -> None:
        """Give a request that goes on what was found before; a new question makes it void."""
        thread = _thread_of(trace)
        waiting = self._waiting.get(thread) if thread is not None else None
        if thread is None or waiting is None:
            return
        if trace.inputs is not OPAQUE:
            self._waiting.pop(thread, None)
            return
        trace.is_resumed = True
        trace.documents |= {id(document): document for document in waiting.documents}
        trace.models_before = waiting.models
        trace.queries[:0] = waiting.queries
        trace.asked_before = waiting.inputs


def _thread_of(trace: Trace) -> str | None:
    thread = trace.metadata.get("thread_id")
    return str(thread) if isinstance(thread, (str, int)) else None
