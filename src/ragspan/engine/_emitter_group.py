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
from typing import Any, TypeGuard

from ragspan.engine._record_queue import CompletionListener
from ragspan.engine._threads import DaemonThreads, Deadline, call_guarded
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.base import AnswerHandle, Emitter
from ragspan.throttled_log import ThrottledLog

_GRACE = 0.05  # seconds for an answer that is on its way when the time is up; makes a timeout of 0 of use
_THREADS = 2  # of an emitter: one for a shutdown while a flush hangs


class EmitterGroup:
    """The emitters of an engine."""

    def __init__(self, emitters: Sequence[Emitter], *, account: CompletionListener, log: ThrottledLog) -> None:
        self._account = account
        self._log = log
        self._emitters = [
            (emitter, DaemonThreads(_THREADS, name=f"ragspan-{type(emitter).__name__}")) for emitter in emitters
        ]

    def start(self, record: RagRecord) -> GroupHandle:
        """Start the record at all emitters; what one of them cannot start, the others do."""
        started: list[tuple[Emitter, AnswerHandle]] = []
        for emitter, _ in self._emitters:
            handle, error = call_guarded(emitter.start, record)
            if error is not None:
                self._note_error("emitter_start", emitter, error)
            elif handle is not None:
                started.append((emitter, handle))
        return GroupHandle(started, record, self._note_error)

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
            self._note_error("emitter", emitter, error)
            return False
        return bool(answer.result())

    def _note_error(self, place: str, emitter: Emitter, error: BaseException) -> None:
        self._account.record_error(place)
        self._log.trouble(place, "%s failed with %s", type(emitter).__name__, type(error).__name__)


class GroupHandle:
    """One answer at all emitters of an engine: the first span that one of them names is the answer's."""

    def __init__(
        self,
        started: Sequence[tuple[Emitter, AnswerHandle]],
        record: RagRecord,
        note_error: Callable[[str, Emitter, BaseException], None],
    ) -> None:
        self._started = started
        self._note_error = note_error
        self.span: SpanAnchor | None = None
        self.retrieval_spans: tuple[SpanAnchor | None, ...] = ()
        for _, handle in started:
            span = call_guarded(getattr, handle, "span", None)[0]
            if self.span is None and isinstance(span, SpanAnchor):
                self.span = span
            searches: object = call_guarded(getattr, handle, "retrieval_spans", None)[0]
            if not self.retrieval_spans and _are_spans_of(searches, record):
                self.retrieval_spans = searches

    def finish(self, scored: ScoredRecord) -> None:
        self._tell_all(lambda handle: handle.finish(scored))

    def late(self, scored: ScoredRecord) -> None:
        self._tell_all(lambda handle: handle.late(scored))

    def abandon(self) -> None:
        self._tell_all(lambda handle: handle.abandon())

    def _tell_all(self, tell: Callable[[AnswerHandle], None]) -> None:
        for emitter, handle in self._started:
            _, error = call_guarded(tell, handle)
            if error is not None:
                self._note_error("emitter", emitter, error)


def _are_spans_of(searches: object, record: RagRecord) -> TypeGuard[tuple[SpanAnchor | None, ...]]:
    return isinstance(searches, tuple) and len(searches) == len(record.retrievals) and any(searches)
