"""Has records scored by an engine, and gives them back in the order in which they came.

Guarantees:
- An engine drops what it has no room for. So at most `max_rows` records and `max_bytes` of their texts (but always one
  record) are with the engine or wait for an earlier one; what reads the records waits meanwhile.
- Every record comes back exactly once, with an outcome for each metric: one that the engine lost comes back as failed.
- It runs in the thread of whoever iterates. Of the engine's thread it sees one queue.
"""

from __future__ import annotations

import contextlib
import math
import queue
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ragspan.datasets.records import RecordRow
from ragspan.datasets.results import BadRow, EvaluatedRow
from ragspan.engine import ScoringEngine
from ragspan.outcomes import MetricFailure, Outcome, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.redaction import RedactedRecord

_LOOK_AGAIN = 0.5  # seconds until it is seen that somebody wants an end, or that the engine lost a record
_LOST = MetricFailure(error_type="worker_error", message="the engine lost the record: its log says why")


class Collector:
    """An emitter that hands scored records to another thread."""

    score_wait = math.inf  # all outcomes of a record come together

    def __init__(self) -> None:
        self.scored: queue.SimpleQueue[ScoredRecord] = queue.SimpleQueue()

    def open(self, record: RagRecord) -> SpanAnchor | None:  # noqa: ARG002 - it starts no spans
        return None

    def emit(self, scored: ScoredRecord) -> None:
        self.scored.put(scored)

    def flush(self, timeout: float) -> bool:  # noqa: ARG002 - nothing is ever left
        return True

    def shutdown(self, timeout: float) -> None:
        """Nothing to let go of."""


@dataclass(slots=True, eq=False)
class _Place:
    """A row on its way, in the order of the table."""

    entry: RecordRow | BadRow
    size: int
    done: EvaluatedRow | BadRow | None = None


class InOrder:
    """Scores records in the order of the table.

    Args:
        engine: whose emitters include the collector, with room for `max_rows` records.
        collector: that the engine gives scored records to.
        metrics: names, in the order of the outcomes.
        max_rows: records that are on their way at the same time, at least 1.
        max_bytes: of their texts.
        should_stop: asked twice a second at least; once it is true, nothing more comes back.
    """

    def __init__(
        self,
        engine: ScoringEngine,
        collector: Collector,
        *,
        metrics: Iterable[str],
        max_rows: int,
        max_bytes: int,
        should_stop: Callable[[], bool],
    ) -> None:
        self._engine = engine
        self._collector = collector
        self._metrics = tuple(metrics)
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._should_stop = should_stop
        self._line: deque[_Place] = deque()
        self._bytes = 0
        # By identity, because ids are the user's; one and the same record may come twice.
        self._waiting: dict[int, deque[_Place]] = {}

    def score(self, entries: Iterable[RecordRow | BadRow]) -> Iterator[EvaluatedRow | BadRow]:
        """Each entry's end, in their order."""
        for entry in entries:
            size = entry.record.size_hint if isinstance(entry, RecordRow) else 0
            while self._line and not self._has_room(size):
                yield from self._advance(wait=True)
                if self._should_stop():
                    return
            self._send(entry, size)
            yield from self._advance()
            if self._should_stop():
                return
        while self._line and not self._should_stop():
            yield from self._advance(wait=True)

    def _has_room(self, size: int) -> bool:
        return len(self._line) < self._max_rows and self._bytes + size <= self._max_bytes

    def _send(self, entry: RecordRow | BadRow, size: int) -> None:
        place = _Place(entry, size)
        self._line.append(place)
        self._bytes += size
        if isinstance(entry, BadRow):
            place.done = entry
            return
        self._waiting.setdefault(id(entry.record), deque()).append(place)
        self._engine.submit(RedactedRecord(entry.record))  # by its reader

    def _advance(self, *, wait: bool = False) -> Iterator[EvaluatedRow | BadRow]:
        """Take what has been scored; give out the rows at the head of the line that have come to their end."""
        if wait and self._line[0].done is None:
            try:
                self._take(self._collector.scored.get(timeout=_LOOK_AGAIN))
            except queue.Empty:
                self._look_for_lost()
        with contextlib.suppress(queue.Empty):
            while True:
                self._take(self._collector.scored.get_nowait())
        while self._line and (done := self._line[0].done) is not None:
            self._bytes -= self._line.popleft().size
            yield done

    def _take(self, scored: ScoredRecord) -> None:
        places = self._waiting.get(id(scored.record))
        if not places:
            return
        place = places.popleft()
        if not places:
            del self._waiting[id(scored.record)]
        self._end(place, dict(scored.outcomes))

    def _end(self, place: _Place, outcomes: dict[str, Outcome]) -> None:
        if isinstance(place.entry, RecordRow):
            whole = {metric: outcomes.get(metric, _LOST) for metric in self._metrics}
            place.done = EvaluatedRow(row=place.entry.row, record=place.entry.record, outcomes=whole)

    def _look_for_lost(self) -> None:
        """Nothing came for a while. What the engine does not have, and has not emitted, it has lost."""
        stats = self._engine.stats()
        if stats.queued and not stats.in_flight:
            self._engine.flush(0)  # a worker that died is replaced when somebody waits for it
        if stats.queued or stats.in_flight or not self._collector.scored.empty():
            return
        lost, self._waiting = self._waiting, {}
        for place in (place for places in lost.values() for place in places):
            self._end(place, {})
