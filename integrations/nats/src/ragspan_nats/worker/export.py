"""Exports the spans of scored records, and says of each record whether they were taken.

The SDK's batch processor tells nobody what becomes of a batch; and a record may only be acknowledged when its scores are out.

Guarantees:
- `export` returns once: True when all exporters have taken the spans, False when they did not within the timeout.
- A backend that takes nothing costs three tries, and then one after each pause, with pauses that grow.
- A record that is refused by itself while others are taken is tried again by itself, less and less often, and delays no other.
- Exporters run in one daemon thread. Nothing that they raise ends the export.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragspan.engine._boundary import attempt
from ragspan.engine._threads import DaemonThreads
from ragspan.telemetry.suppress import suppressed
from ragspan.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

_LINGER = 0.2  # seconds that a scored record waits for others to be sent with
_BATCH = 512  # spans that are sent at once
_FLUSH_MILLIS = 30_000  # for what an exporter holds back
_FIRST_PAUSE = 1.0  # seconds until the next try, twice as many each time
_LONGEST_PAUSE = 30.0
_WITNESSES = 2  # records in a row that are not taken by themselves, which say that the backend takes nothing
_RETRIES = 8  # of refused records before those are sent that came in the meantime


@dataclass(slots=True, eq=False)
class _Waiting:
    """The spans of a record."""

    spans: Sequence[ReadableSpan]
    taken: asyncio.Future[bool]
    tries: int = 0
    """Those that it failed by itself."""
    due: float = 0.0
    """Seconds of the monotonic clock at which it is tried again by itself."""

    def put_off(self) -> None:
        self.due = time.monotonic() + min(_FIRST_PAUSE * 2.0 ** min(self.tries, 30), _LONGEST_PAUSE)
        self.tries += 1


class SpanExport:
    """Exports in batches.

    Args:
        exporters: all of which have to take a span.
        timeout: seconds, more than 0, for which the export of a record is tried.
        log: told of trouble.
    """

    def __init__(self, exporters: Sequence[SpanExporter], *, timeout: float, log: ThrottledLog) -> None:
        self._exporters = exporters
        self._timeout = timeout
        self._log = log
        self._thread = DaemonThreads(1, name="ragspan-export")
        self._waiting: list[_Waiting] = []
        self._has_come = asyncio.Event()
        self._sending = asyncio.Lock()
        self._is_away = False
        """The backend takes nothing at the moment."""
        self._misses = 0
        """Records that were not taken by themselves, since anything was taken."""
        self._pause = 0.0
        self._is_closed = False

    async def export(self, spans: Sequence[ReadableSpan]) -> bool:
        """Whether the spans of a record were taken; True if there are none, because its trace is not sampled."""
        if not spans:
            return True
        waiting = _Waiting(spans, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        self._has_come.set()
        try:
            return await asyncio.wait_for(waiting.taken, self._timeout)
        except asyncio.TimeoutError:
            return False
        finally:
            waiting.taken.cancel()
            self._waiting.remove(waiting)

    async def run(self) -> None:
        """Export until cancelled."""
        while True:
            await self._until_due()
            async with self._sending:
                await self._send_what_is_due()
            if not self._left():
                self._is_away = False  # there is nothing to find out with

    async def close(self, timeout: float) -> None:
        """Begin no export any more, wait for the one under way, and shut the exporters down."""
        self._is_closed = True
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._sending.acquire(), timeout)
        self._thread.shutdown()
        for exporter in self._exporters:
            _, error = await asyncio.to_thread(attempt, exporter.shutdown)
            if error is not None:
                self._trouble(exporter, error)

    def _left(self) -> list[_Waiting]:
        return [one for one in self._waiting if not one.taken.done()]

    def _fresh(self) -> list[_Waiting]:
        return [one for one in self._left() if not one.tries]

    def _refused(self) -> list[_Waiting]:
        return sorted((one for one in self._left() if one.tries), key=lambda one: one.due)

    async def _until_due(self) -> None:
        """Wait for the end of a pause, or for records, and a little for others to join them."""
        if self._is_away:
            await asyncio.sleep(self._pause)
            return
        refused = self._refused()
        if not self._fresh():
            self._has_come.clear()
            with suppress(asyncio.TimeoutError):
                due = max(0.0, refused[0].due - time.monotonic()) if refused else None
                await asyncio.wait_for(self._has_come.wait(), due)
        ends = time.monotonic() + _LINGER
        while (fresh := self._fresh()) and sum(len(one.spans) for one in fresh) < _BATCH:
            self._has_come.clear()
            try:
                await asyncio.wait_for(self._has_come.wait(), max(0.0, ends - time.monotonic()))
            except asyncio.TimeoutError:
                return

    async def _send_what_is_due(self) -> None:
        if self._is_away and not await self._backend_is_back():
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            return
        fresh = self._fresh()
        for batch in _batches(fresh):
            await self._send(batch, is_up=False)
        if fresh and not any(one.taken.done() for one in fresh):
            self._note_away()
        for one in self._refused()[:_RETRIES]:
            if one.due <= time.monotonic() and not self._is_away and not await self._take([one]):
                one.put_off()

    async def _backend_is_back(self) -> bool:
        """Whether the backend takes a record again: each time another one, for it may be refused for its own sake."""
        one = next(iter(self._fresh() or self._refused()), None)
        if one is None or await self._take([one]):
            return True
        one.put_off()
        return False

    async def _send(self, batch: Sequence[_Waiting], *, is_up: bool) -> None:
        """Export a batch, and where it is not taken all but those for whose sake it is not.

        Args:
            batch: at least one.
            is_up: something was taken a moment ago.
        """
        if self._is_away or self._is_closed or await self._take(batch):
            return
        if len(batch) == 1:
            batch[0].put_off()
            self._misses += 1
            if self._misses >= _WITNESSES:
                self._note_away()
            return
        if not is_up:  # is it the batch, or is it the backend?
            for one in batch[:_WITNESSES]:
                await self._send([one], is_up=True)
            batch = batch[_WITNESSES:]
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            if half:
                await self._send(half, is_up=True)

    def _note_away(self) -> None:
        if not self._is_away:
            self._is_away, self._pause = True, _FIRST_PAUSE

    async def _take(self, batch: Sequence[_Waiting]) -> bool:
        """Whether all exporters took these; who waits for them is told."""
        if self._is_closed:
            return False
        spans = [span for one in batch for span in one.spans]
        if not await asyncio.wrap_future(self._thread.submit(self._export, spans)):
            return False
        for one in batch:
            if not one.taken.done():
                one.taken.set_result(True)
        self._is_away, self._misses = False, 0
        return True

    def _export(self, spans: Sequence[ReadableSpan]) -> bool:
        with suppressed():
            have_taken = [self._export_by(exporter, spans) for exporter in self._exporters]  # all get them
        return all(have_taken)

    def _export_by(self, exporter: SpanExporter, spans: Sequence[ReadableSpan]) -> bool:
        result, error = attempt(exporter.export, spans)
        if error is None and result is SpanExportResult.SUCCESS:
            # An exporter that takes spans in before it sends them says here whether it has sent them.
            is_sent, error = attempt(exporter.force_flush, _FLUSH_MILLIS)
            if error is None:
                return is_sent is not False
        if error is not None:
            self._trouble(exporter, error)
        return False

    def _trouble(self, exporter: SpanExporter, error: BaseException) -> None:
        self._log.trouble("exporter", "%s failed with %s", type(exporter).__name__, type(error).__name__)


def _batches(waiting: Sequence[_Waiting]) -> Iterator[list[_Waiting]]:
    batch: list[_Waiting] = []
    spans = 0
    for one in waiting:
        if batch and spans + len(one.spans) > _BATCH:
            yield batch
            batch, spans = [], 0
        batch.append(one)
        spans += len(one.spans)
    if batch:
        yield batch
