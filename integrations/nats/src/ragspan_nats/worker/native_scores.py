"""Writes scores to backends that have scores of their own, and says of each record when its scores are written.

A record comes here when its spans have been exported, for a native score waits for its span; only then is it acknowledged. A thread
of its own, so that spans go on to be exported meanwhile.

Guarantees:
- A delivery leaves here exactly once: by `on_delivered`, when each of its scores is delivered or finally refused, or by
  `on_failure`: a writer raised, or gave up a score of its that it could not write, or the patience is over. None waits for the
  scores of another, but where an emitter can only tell of all at once (it is no `ScoreWriter`).
- A score whose span was not there for ten seconds of looking, of which there are ever fewer, holds its record up no longer: for
  some 15 seconds in all. Its writer goes on looking for it.
- Nothing that a writer raises ends the thread.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ragspan.delivery import Receipt, ScoreWriter
from ragspan.engine._boundary import attempt
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker.delivery import Delivery, Reason

_T = TypeVar("_T")
_R = TypeVar("_R")

_FLUSH = 30.0  # seconds
_PAUSE = 0.25  # seconds until what waits is looked at again
_SPAN_PATIENCE = 10.0  # seconds of looking for a span that was exported; it may have been sampled out on its way


class Flushes(Protocol):
    """An emitter that tells of no single score."""

    def flush(self, timeout: float) -> bool:
        """True if all that was emitted before is delivered, or finally refused, within `timeout` seconds."""
        ...


@dataclass(slots=True, eq=False, kw_only=True)
class _Waiting:
    delivery: Delivery
    receipts: Sequence[Receipt | None]
    """None of a writer that raised."""
    is_flushed: bool
    """What tells of no single score has delivered all."""


class NativeScores:
    """Has native writers write, and waits for them.

    Args:
        writers: that are given the scores here, once the spans are out.
        others: emitters that were given the scores already, and have to deliver them as well.
        on_delivered: called with a delivery whose scores are written.
        on_failure: called with one whose scores are not, with the reason and, for people, a detail.
        patience: seconds, more than 0, for which writers are waited for; what the export of spans took of it counts.
        log: told of trouble.
    """

    def __init__(
        self,
        writers: Sequence[ScoreWriter[Any]],
        others: Sequence[Flushes] = (),
        *,
        on_delivered: Callable[[Delivery], None],
        on_failure: Callable[[Delivery, Reason, str], None],
        patience: float,
        log: ThrottledLog,
    ) -> None:
        self._writers = writers
        self._others = others
        self._on_delivered = on_delivered
        self._on_failure = on_failure
        self._patience = patience
        self._log = log
        self._arrivals: queue.SimpleQueue[Delivery | None] = queue.SimpleQueue()
        self._waiting: list[_Waiting] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._main, name="ragspan-native-scores", daemon=True)

    def start(self) -> None:
        if self._writers or self._others:
            self._thread.start()

    def put(self, delivery: Delivery) -> None:
        """Take a delivery whose spans are exported; returns at once."""
        if self._writers or self._others:
            self._arrivals.put(delivery)
        else:
            self._on_delivered(delivery)

    def stop(self) -> None:
        """Begin nothing any more. What is left has not ended; it is for the caller to give back."""
        self._stopping.set()
        self._arrivals.put(None)

    def shutdown(self, timeout: float) -> None:
        """Let go of the writers, within `timeout` seconds for each."""
        for writer in self._writers:
            self._ask(writer, writer.shutdown, timeout)

    def _main(self) -> None:
        while not self._stopping.is_set():
            self._collect()
            if not all(one.is_flushed for one in self._waiting) and self._flush():
                for one in self._waiting:
                    one.is_flushed = True
            if not self._stopping.is_set():
                self._waiting = [one for one in self._waiting if not self._has_left(one)]

    def _collect(self) -> None:
        """Begin with all that have come; wait for one, but where others are here already only for a short time."""
        timeout = _PAUSE if self._waiting else None
        while not self._stopping.is_set():
            try:
                came = self._arrivals.get(timeout=timeout)
            except queue.Empty:
                return
            if came is not None:
                self._waiting.append(self._begun(came))
            timeout = 0.0

    def _begun(self, delivery: Delivery) -> _Waiting:
        delivery.waits_since = delivery.waits_since or time.monotonic()
        scored = delivery.scored
        receipts = [] if scored is None else [self._ask(one, one.emit_with_receipt, scored) for one in self._writers]
        return _Waiting(delivery=delivery, receipts=receipts, is_flushed=not self._others)

    def _has_left(self, one: _Waiting) -> bool:
        fates = {
            "failed" if receipt is None else receipt.fate(span_patience=_SPAN_PATIENCE) for receipt in one.receipts
        }
        waited = time.monotonic() - (one.delivery.waits_since or 0.0)
        if "failed" in fates:
            self._on_failure(one.delivery, "emitter_error", "a native writer raised; the log says what")
        elif "lost" in fates:
            self._on_failure(one.delivery, "export_failed", "a native writer gave a score of its up")
        elif "waiting" not in fates and one.is_flushed:
            self._on_delivered(one.delivery)
        elif waited >= self._patience:
            self._on_failure(
                one.delivery, "export_failed", f"its native scores were not taken for {waited:.0f} seconds"
            )
        else:
            return False
        return True

    def _flush(self) -> bool:
        have_delivered = [self._ask(other, other.flush, _FLUSH) for other in self._others]  # all, whatever one says
        return all(have_delivered)

    def _ask(self, writer: object, ask: Callable[[_T], _R], about: _T) -> _R | None:
        """What it answers; None where it raises."""
        answer, error = attempt(ask, about)
        if error is not None:
            self._log.trouble("writer", "%s failed with %s", type(writer).__name__, type(error).__name__)
        return answer
