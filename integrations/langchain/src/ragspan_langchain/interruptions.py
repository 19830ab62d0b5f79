"""Conversations that wait for a person: what was found before the interruption counts for the answer after it.

The graph's saved state often holds the documents only as text by then, and a draft may be all that it returns. So the logs
are kept, with texts and no documents, for a bounded number of conversations, until the graph has gone on or the user asks
something new.
"""

from __future__ import annotations

from ragspan.capturing.log import RequestLog
from ragspan.capturing.snapshots import Opaque, Snapshot

_MAX_THREADS = 1000
_MAX_BYTES = 50_000_000


class Interruptions:
    """Interrupted requests by the thread id of their conversation."""

    def __init__(self) -> None:
        self._waiting: dict[str, tuple[RequestLog, ...]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def resume(self, log: RequestLog, inputs: Snapshot) -> None:
        """Give a request that goes on what was found before; a new question makes it void."""
        thread = _thread_of(log)
        waiting = self._waiting.get(thread) if thread is not None else None
        if thread is None or waiting is None:
            return
        if inputs is None or isinstance(inputs, Opaque):
            log.earlier = waiting
        else:
            self._waiting.pop(thread, None)

    def settle(self, log: RequestLog) -> None:
        """Remember a request that was interrupted; forget one that went on to its end."""
        thread = _thread_of(log)
        if thread is None or not (log.earlier or "interrupted" in log.about):
            return
        if "interrupted" not in log.about:
            if not (log.abandoned or "failed" in log.about):
                self._waiting.pop(thread, None)
            return
        self._waiting.pop(thread, None)  # the newest goes to the end
        self._waiting[thread] = (*log.earlier, log)
        while len(self._waiting) > _MAX_THREADS or self._bytes() > _MAX_BYTES:
            self._waiting.pop(next(iter(list(self._waiting))), None)

    def _bytes(self) -> int:
        return sum(log.bytes for logs in list(self._waiting.values()) for log in logs)


def _thread_of(log: RequestLog) -> str | None:
    thread = log.about.get("metadata", {}).get("thread_id")
    return str(thread) if isinstance(thread, (str, int)) else None
