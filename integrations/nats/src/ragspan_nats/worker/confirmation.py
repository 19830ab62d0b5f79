"""Native writers deliver in the background; a record is only acknowledged once they have delivered its scores.

A thread of its own, beside that of the export line: a score waits for its span, so the spans have to go on while this waits.

Guarantees:
- A delivery leaves here exactly once: by `on_delivered`, when every writer has said that all it was given is delivered or
  finally refused, or by `on_failure`, when the patience is over or a writer has given scores up that it could not write.
- A score whose span does not turn up holds up nobody for longer than ten seconds; its writer goes on looking for it.
- Nothing that a writer raises ends the thread.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from ragspan.delivery import ScoreWriter
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker.delivery import Delivery

_FLUSH = 30.0  # seconds
_PAUSE = 1.0  # seconds until writers are asked again
_SPAN_PATIENCE = 10.0  # seconds for a span that was exported to be found; one that is sampled out on its way never is
_NOT_LOST = frozenset({"no_span", "span_not_found"})
"""Why a writer drops scores that a second scoring could not write either: nobody keeps the answer's span."""


class Flushes(Protocol):
    """A native writer."""

    def flush(self, timeout: float) -> bool:
        """True if all that was emitted before is delivered, or finally refused, within `timeout` seconds."""
        ...


class Confirmation:
    """Waits for native writers.

    Args:
        writers: all of which have to deliver.
        on_delivered: called in the thread with a delivery whose scores are written.
        on_failure: called in the thread with one whose patience is over.
        patience: seconds, more than 0, for which writers are waited for.
        log: told of trouble.
    """

    def __init__(
        self,
        writers: Sequence[Flushes],
        *,
        on_delivered: Callable[[Delivery], None],
        on_failure: Callable[[Delivery], None],
        patience: float,
        log: ThrottledLog,
    ) -> None:
        self._writers = writers
        self._on_delivered = on_delivered
        self._on_failure = on_failure
        self._patience = patience
        self._log = log
        self._lost = 0
        """By the writers, when last everything was confirmed."""
        self._arrivals: queue.SimpleQueue[Delivery | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._main, name="ragspan-confirmation", daemon=True)

    def start(self) -> None:
        if self._writers:
            self._thread.start()

    def put(self, delivery: Delivery) -> None:
        """Take a delivery whose spans are exported."""
        if self._writers:
            self._arrivals.put(delivery)
        else:
            self._on_delivered(delivery)

    def stop(self) -> None:
        """Begin nothing any more. What is left has not ended; it is for the caller to give back."""
        self._stopping.set()
        self._arrivals.put(None)

    def _main(self) -> None:
        waiting: list[Delivery] = []
        while not self._stopping.is_set():
            waiting += self._collect(wait=not waiting)
            if not waiting:
                continue
            began = time.monotonic()
            if self._flush():
                lost = self._count_lost()
                end, self._lost = self._on_delivered if lost == self._lost else self._on_failure, lost
                for delivery in waiting:
                    end(delivery)
                waiting = []
            else:
                waiting = [delivery for delivery in waiting if not self._has_failed(delivery, began)]
                self._stopping.wait(_PAUSE)

    def _collect(self, *, wait: bool) -> list[Delivery]:
        came: list[Delivery | None] = [self._arrivals.get()] if wait else []
        while not self._arrivals.empty():
            came.append(self._arrivals.get())
        return [delivery for delivery in came if delivery is not None]

    def _has_failed(self, delivery: Delivery, began: float) -> bool:
        delivery.waits_since = delivery.waits_since or began
        if time.monotonic() - delivery.waits_since < self._patience:
            return False
        self._on_failure(delivery)
        return True

    def _flush(self) -> bool:
        try:
            have_delivered = [_flush(writer) for writer in self._writers]  # all are asked, whatever one says
            return all(have_delivered)
        except Exception as error:  # noqa: BLE001 - a writer's code
            self._log.trouble("writer", "a native writer failed with %s", type(error).__name__)
            return False

    def _count_lost(self) -> int:
        """Scores that writers have given up; a writer that keeps no such statistics loses none."""
        return sum(
            number
            for writer in self._writers
            if isinstance(writer, ScoreWriter)
            for reason, number in writer.stats().dropped.items()
            if reason not in _NOT_LOST
        )


def _flush(writer: Flushes) -> bool:
    if isinstance(writer, ScoreWriter):
        return writer.flush_but_for_spans(_FLUSH, patience=_SPAN_PATIENCE)
    return writer.flush(_FLUSH)
