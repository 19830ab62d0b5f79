"""Conversations that wait for a person: what their interrupted requests found counts for the answer after them."""

from __future__ import annotations

from ragspan.capturing import Opaque, RequestLog, Snapshot


class Interruptions:
    """Interrupted requests by the thread id of their conversation: what they found counts for the answer after them.

    The graph's saved state often holds the documents only as text, and the answer may be a draft. So the logs are kept, with
    texts and no documents, for a bounded number of conversations, until the graph has gone on or the user asks something new.
    They are kept outside of the recorder, because a program may make a handler for each request.
    """

    max_threads = 1000
    max_bytes = 50_000_000

    def __init__(self) -> None:
        self.waiting: dict[str, tuple[RequestLog, ...]] = {}

    def resume(self, log: RequestLog, inputs: Snapshot) -> None:
        """Give a request that goes on what was found before; a new question makes it void."""
        thread = _thread_of(log) if self.waiting else None
        if thread is None:
            return
        if inputs is None or isinstance(inputs, Opaque):
            log.earlier = self.waiting.get(thread, ())
        else:
            self.waiting.pop(thread, None)

    def settle(self, log: RequestLog) -> None:
        """Remember a request that was interrupted; forget one that went on to its end."""
        is_waiting = "interrupted" in log.about
        thread = _thread_of(log) if is_waiting or log.earlier else None
        if thread is None or (not is_waiting and (log.abandoned or "failed" in log.about)):
            return
        self.waiting.pop(thread, None)  # the newest goes to the end
        if is_waiting:
            self.waiting[thread] = (*log.earlier, log)
        while len(self.waiting) > self.max_threads or self._bytes() > self.max_bytes:
            self.waiting.pop(next(iter(list(self.waiting))), None)

    def _bytes(self) -> int:
        return sum(log.bytes for logs in list(self.waiting.values()) for log in logs)


def _thread_of(log: RequestLog) -> str | None:
    thread = log.about.get("metadata", {}).get("thread_id")
    return str(thread) if isinstance(thread, (str, int)) else None
