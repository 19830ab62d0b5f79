"""Writes scores to backends that have scores of their own, and says of each record when its scores are written.

A native score waits for its span, so writers get a record's scores when its spans have been exported; only then is the record
acknowledged. No record waits for the scores of another, except where an emitter can only tell of all at once (it is no `ScoreWriter`).

All of it runs in the worker's event loop; writers have threads of their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from ragspan.delivery import Receipt, ScoreWriter
from ragspan.engine._boundary import attempt
from ragspan.engine._threads import DaemonThreads
from ragspan.outcomes import ScoredRecord
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker.delivery import Reason

_FLUSH = 30.0  # seconds
_PAUSE = 0.25  # seconds until what waits is looked at again
_SPAN_PATIENCE = 10.0  # seconds of looking for a span that was exported; it may have been sampled out on its way


class Flushes(Protocol):
    """An emitter that tells of no single score."""

    def flush(self, timeout: float) -> bool:
        """True if all that was emitted before is delivered, or finally refused, within `timeout` seconds."""
        ...


class NativeScores:
    """Has native writers write, and waits for them.

    Args:
        writers: that are given the scores here, once the spans are out.
        others: emitters that were given the scores already, and have to deliver them as well.
        timeout: seconds, more than 0, for which writers are waited for.
        log: told of trouble.
    """

    def __init__(
        self,
        writers: Sequence[ScoreWriter[Any]],
        others: Sequence[Flushes] = (),
        *,
        timeout: float,
        log: ThrottledLog,
    ) -> None:
        self._writers = writers
        self._others = others
        self._timeout = timeout
        self._log = log
        self._threads = DaemonThreads(1, name="ragspan-native-scores")
        self._next_flush: asyncio.Task[bool] | None = None
        self._flushing = asyncio.Lock()

    async def write(self, scored: ScoredRecord) -> tuple[Reason, str] | None:
        """Write the scores of a record; None when each is delivered or finally refused, else why not, with a detail for people.

        A score whose span was not there for ten seconds of looking is waited for no longer. Its writer goes on looking for it.
        """
        ends = asyncio.get_running_loop().time() + self._timeout
        receipts = [self._emit(writer, scored) for writer in self._writers]
        if None in receipts:
            return "emitter_error", "a native writer raised; the log says what"
        is_flushed = not self._others
        while True:
            states = {one.fate(span_patience=_SPAN_PATIENCE) for one in receipts if one is not None}
            if "lost" in states:
                return "export_failed", "a native writer gave a score of its up"
            is_flushed = is_flushed or await self._flush(ends)
            if is_flushed and "waiting" not in states:
                return None
            if asyncio.get_running_loop().time() >= ends:
                return "export_failed", f"its native scores were not taken for {self._timeout:.0f} seconds"
            await asyncio.sleep(_PAUSE)

    async def shutdown(self, timeout: float) -> None:
        """Let go of the writers, within `timeout` seconds for each."""
        self._threads.shutdown()
        for writer in self._writers:
            _, error = await asyncio.to_thread(attempt, writer.shutdown, timeout)
            self._note(writer, error)

    def _emit(self, writer: ScoreWriter[Any], scored: ScoredRecord) -> Receipt | None:
        receipt, error = attempt(writer.emit_with_receipt, scored)
        self._note(writer, error)
        return receipt

    async def _flush(self, ends: float) -> bool:
        """Whether the others have delivered all. One flush serves all records that came before it began."""
        if self._next_flush is None:
            self._next_flush = asyncio.create_task(self._flush_next())
        with suppress(asyncio.TimeoutError):
            left = max(0.0, ends - asyncio.get_running_loop().time())
            return await asyncio.wait_for(asyncio.shield(self._next_flush), left)
        return False

    async def _flush_next(self) -> bool:
        async with self._flushing:
            self._next_flush = None
            return await asyncio.wrap_future(self._threads.submit(self._flush_all))

    def _flush_all(self) -> bool:
        answers = [(other, *attempt(other.flush, _FLUSH)) for other in self._others]  # all, whatever one says
        for other, _, error in answers:
            self._note(other, error)
        return all(answer for _, answer, _ in answers)

    def _note(self, writer: object, error: BaseException | None) -> None:
        if error is not None:
            self._log.trouble("writer", "%s failed with %s", type(writer).__name__, type(error).__name__)
