"""The emitters of an engine, kept apart: what one of them does affects neither the worker nor the others.

`flush` and `shutdown` return soon after their time is up. An emitter that hangs does so in one of its own few daemon threads.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ragspan.engine.threads import DaemonThreads, Deadline, call_guarded
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.emitter_protocols import AnswerHandle, Emitter
from ragspan.telemetry.otel_context import context_of_worker
from ragspan.throttled_log import ThrottledLog

_GRACE = 0.05  # seconds beyond the deadline, in which emitters that need no time answer
_THREADS = 2  # of an emitter: one for a shutdown while a flush hangs


class EmitterGroup:
    """The emitters of an engine. Each is asked, in order, whatever those before it did; what they raise is counted and logged."""

    def __init__(self, emitters: Sequence[Emitter], log: ThrottledLog) -> None:
        self._log = log
        self._emitters = [
            (emitter, DaemonThreads(_THREADS, name=f"ragspan-{type(emitter).__name__}")) for emitter in emitters
        ]

    def start(self, record: RagRecord) -> GroupHandle:
        """Start the record at all emitters; what one of them cannot start, the others do."""
        group = GroupHandle(self._log)
        for emitter, _ in self._emitters:
            try:
                handle = emitter.start(record)
                span = handle.span
            except BaseException as error:  # noqa: BLE001 - the emitter's, as in `call_guarded`
                self._log.failed("emitter_start", error, type(emitter).__name__)
                continue
            group.started.append((emitter, handle))
            group.span = group.span or span
        return group

    def flush(self, deadline: Deadline) -> bool:
        """Let all emitters flush at the same time; True if all of them said in time that they did."""
        return all(self._ask_all(lambda emitter: emitter.flush(deadline.remaining), deadline))

    def shutdown(self, deadline: Deadline) -> None:
        """Shut all down at the same time. An emitter gets its `last_seconds` more, if it has some, for a slow server's replies."""
        more = max((getattr(emitter, "last_seconds", 0.0) for emitter, _ in self._emitters), default=0.0)
        self._ask_all(lambda emitter: emitter.shutdown(deadline.remaining), deadline, more)
        for _, threads in self._emitters:
            threads.shutdown()

    def _ask_all(self, ask: Callable[[Emitter], object], deadline: Deadline, more: float = 0.0) -> list[object]:
        """What each emitter answered; False where it raised or was late."""
        asked = [(one, threads.submit(context_of_worker().run, ask, one)) for one, threads in self._emitters]
        concurrent.futures.wait([answer for _, answer in asked], timeout=deadline.remaining + more + _GRACE)
        answers: list[object] = []
        for emitter, answer in asked:
            answers.append(answer.done() and not answer.exception() and answer.result())
            if not answer.done():
                answer.cancel()
                words = "%s was not done in time: spans or scores that it still held may be lost"
                self._log.report("emitter_late", words, type(emitter).__name__)
            elif (error := answer.exception()) is not None:
                self._log.failed("emitter", error, type(emitter).__name__)
        return answers


@dataclass
class GroupHandle:
    """One answer at all emitters of an engine."""

    log: ThrottledLog
    started: list[tuple[Emitter, AnswerHandle]] = field(default_factory=list)
    span: SpanAnchor | None = None
    """The answer's: the first that an emitter names."""

    @property
    def holds_scores(self) -> bool:
        """Whether outcomes would get anywhere: else no judge should be paid for them."""
        has_span = self.span is not None and self.span.sampled
        return any(
            has_span if getattr(emitter, "needs_span", False) else getattr(handle, "holds_scores", True)
            for emitter, handle in self.started
        )

    def tell(self, tell: Callable[[AnswerHandle], None]) -> None:
        """Tell each emitter's handle how the answer goes on."""
        for emitter, handle in self.started:
            _, error = call_guarded(tell, handle)
            if error is not None:
                self.log.failed("emitter", error, type(emitter).__name__)
