"""Talks to the emitters, so that what one of them does spreads neither to the worker nor to the others.

Guarantees:
- Every emitter is asked, in order, whatever those before it did. What they raise is counted and logged by its type.
- `flush` and `shutdown` return soon after their time is up, however long an emitter hangs; it goes on hanging in one of
  its own few daemon threads.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from ragspan.engine._account import Account
from ragspan.engine._boundary import attempt
from ragspan.engine._deadline import Deadline
from ragspan.engine._threads import DaemonThreads
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.base import Emitter
from ragspan.throttled_log import ThrottledLog

_GRACE = 0.05  # seconds for an answer that is on its way when the time is up; makes a timeout of 0 of use
_THREADS = 2  # of an emitter: one for a shutdown while a flush hangs


class Emission:
    """The emitters of an engine."""

    def __init__(self, emitters: Sequence[Emitter], *, account: Account, log: ThrottledLog) -> None:
        self._account = account
        self._log = log
        self._emitters = [
            (emitter, DaemonThreads(_THREADS, name=f"ragspan-{type(emitter).__name__}")) for emitter in emitters
        ]

    def prepare_for_exit(self) -> None:
        for _, threads in self._emitters:
            threads.prepare_for_exit()

    def open(self, record: RagRecord) -> SpanAnchor | None:
        """Tell all emitters of the record; the first span that one of them names is the answer's."""
        span: SpanAnchor | None = None
        for emitter, _ in self._emitters:
            anchor, error = attempt(emitter.open, record)
            if error is not None:
                self._went_wrong("emitter_open", emitter, error)
            elif isinstance(anchor, SpanAnchor):
                span = span or anchor
        return span

    def retrieval_spans(self, record: RagRecord) -> tuple[SpanAnchor | None, ...]:
        """The spans of the record's searches, as the first emitter says that knows of any; comes after `open`."""
        if not record.retrievals:
            return ()
        for emitter, _ in self._emitters:
            ask = getattr(emitter, "retrieval_spans", None)  # see `ragspan.telemetry.base.KnowsRetrievalSpans`
            if ask is None:
                continue
            spans, error = attempt(ask, record)
            if error is not None:
                self._went_wrong("emitter_open", emitter, error)
            elif isinstance(spans, tuple) and len(spans) == len(record.retrievals) and any(spans):
                return spans
        return ()

    def emit(self, scored: ScoredRecord) -> None:
        for emitter, _ in self._emitters:
            _, error = attempt(emitter.emit, scored)
            if error is not None:
                self._went_wrong("emitter", emitter, error)

    def flush(self, deadline: Deadline) -> bool:
        """Let all emitters flush at the same time; True if all of them said in time that they did."""
        return all(self._ask_all(lambda emitter: emitter.flush(deadline.remaining), deadline))

    def shutdown(self, deadline: Deadline) -> None:
        self._ask_all(lambda emitter: emitter.shutdown(deadline.remaining), deadline)
        for _, threads in self._emitters:
            threads.shutdown()

    def _ask_all(self, ask: Callable[[Emitter], object], deadline: Deadline) -> list[bool]:
        """What each emitter answered; False where it raised or was late."""
        asked = [(emitter, self._ask(ask, emitter, threads)) for emitter, threads in self._emitters]
        concurrent.futures.wait([answer for _, answer in asked], timeout=deadline.remaining + _GRACE)
        return [self._answer(emitter, answer) for emitter, answer in asked]

    def _ask(self, ask: Callable[[Emitter], object], emitter: Emitter, threads: DaemonThreads) -> Future[Any]:
        try:
            return threads.submit(ask, emitter)
        except RuntimeError as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            return failed

    def _answer(self, emitter: Emitter, answer: Future[Any]) -> bool:
        if not answer.done():
            answer.cancel()
            self._log.trouble("emitter_late", "%s did not answer in time", type(emitter).__name__)
            return False
        error = answer.exception()
        if error is not None:
            self._went_wrong("emitter", emitter, error)
            return False
        return bool(answer.result())

    def _went_wrong(self, place: str, emitter: Emitter, error: BaseException) -> None:
        self._account.went_wrong(place)
        self._log.trouble(place, "%s failed with %s", type(emitter).__name__, type(error).__name__)
