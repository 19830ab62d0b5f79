"""One run over a table, from its first row to its last: read, judge, write, count.

Each row ends exactly once, in the order of the table, and is in the file of rows before it is counted. Memory does not grow with
the table, except for eight bytes a score.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeAlias, TypeVar

from rich.console import Console
from rich.text import Text

from ragspan.arguments import counted
from ragspan.engine import Dropped, ScoringEngine
from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.rows import BadRow, EvaluatedRow, RowWriter
from ragspan.evaluate.tables import Table
from ragspan.metrics.metric import Metric
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, is_passing
from ragspan.redaction import RedactedRecord
from ragspan.usage import Usage

_T = TypeVar("_T")
_Row: TypeAlias = "EvaluatedRow | BadRow"

_ROWS_PER_PLACE = 4  # a slow record holds back those that came after it
_LEAST_ROWS = 64
_TICK = 0.2  # seconds of waiting for a row until the next look at whether to stop, and at how far the run is
_LINE_PAUSE = 10.0  # seconds between two lines of progress where there is no terminal
_LOST = MetricFailure(error_type="worker_error", message="the engine lost the record: its log says why")
_PATIENCE, _BEFORE_FIRST = 600.0, 90.0
"""Seconds for which a judge may be away, by default; before it has answered once its address may be wrong."""
_LASTING = frozenset({401, 402, 403, 404, 407})
"""HTTP statuses that time does not change: the key, the money, the model's name."""
_TOO_MANY = 429
_LONGEST_PAUSE = 10.0  # seconds before a row asks again a judge that is away
_MOST_IN_VAIN, _SUSPECT = 3, 60.0
"""Attempts of a row while others are answered, then it is the row that the judge cannot take; and seconds from the first of them on."""


@dataclass(kw_only=True)
class Run:
    """The work on the rows of one table."""

    engine: ScoringEngine
    concurrency: int
    table: Table
    writer: RowWriter
    evaluation: Evaluation
    """Counts the rows that are done."""
    patience: float | None
    """Seconds for which a judge may be away; None is the default."""
    tell: Callable[[Run], None]
    """Called now and then."""
    stop: threading.Event
    """Once it is set, the run ends."""
    begun: int = 0  # rows that were read
    outage: str | None = None
    """Which judge is waited for, and why."""
    _answered: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By metric, when its judge has answered last, else was asked first, and the seconds that it may be away from then on."""

    async def evaluate(self, rows: Iterator[_Row]) -> None:
        """Judge the rows that are not done yet, many at the same time; write and count all in their order."""
        max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * self.concurrency)
        waiting: deque[tuple[_Row, asyncio.Task[_Row]]] = deque()
        try:
            for row in chain(self.writer.resume(rows), rows, [None]):
                if row is not None:
                    self.begun += 1
                    waiting.append((row, asyncio.create_task(self._judged(row))))
                    await asyncio.sleep(0)  # which begins it
                while waiting and (row is None or len(waiting) >= max_rows or waiting[0][1].done()):
                    before, task = waiting[0]
                    while not task.done():
                        await asyncio.wait([task], timeout=_TICK)
                        if self.stop.is_set():
                            raise asyncio.CancelledError
                        self.tell(self)
                    waiting.popleft()
                    done = task.result()
                    if isinstance(done, EvaluatedRow) and done is not before:
                        self.writer.add(done)
                    elif isinstance(done, EvaluatedRow):
                        self.evaluation.resumed += done.row <= self.writer.last_row
                    self.evaluation.add(done)
        finally:
            for _, task in waiting:
                task.cancel()
            await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)
            log = logging.getLogger("ragspan")
            was_disabled, log.disabled = log.disabled, True  # who stops a run knows that records are abandoned
            self.engine.shutdown(0)
            log.disabled = was_disabled

    async def _judged(self, row: _Row) -> _Row:
        """The row with all its outcomes; the same object where none is new. A judge that is away is asked again, after pauses."""
        if isinstance(row, BadRow) or not (
            left := [metric.name for metric in self.engine.metrics if self._is_left(row, metric)]
        ):
            return row
        is_new, asked, found = not row.outcomes, row.asked, dict[str, Outcome]()
        began = now = time.monotonic()
        pause, in_vain, failed_at = 1.0, 0, math.inf
        while left:
            for name in left:
                self._answered.setdefault(name, (now, _BEFORE_FIRST if self.patience is None else self.patience))
            # The reader has redacted it. A row that is judged again keeps why the judge is asked about it.
            result = await self.engine.score(RedactedRecord(row.record), sample=is_new, only=left)
            left, now = [], time.monotonic()
            if isinstance(result, Dropped):
                break
            asked = asked or result.asked
            for name, outcome in result.outcomes.items():
                spent = found[name].usage if name in found else None
                found[name] = replace(outcome, usage=spent + (outcome.usage or Usage())) if spent else outcome
                if isinstance(outcome, MetricFailure) and outcome.outage and outcome.status not in _LASTING:
                    answered_at, patience = self._answered[name]
                    in_vain += answered_at > failed_at and outcome.status != _TOO_MANY
                    patience = min(patience, _SUSPECT) if in_vain else patience
                    if in_vain < _MOST_IN_VAIN and now < min(answered_at, began) + patience:
                        left = [*left, name]
                        self.outage = f"waiting for the judge of {name} ({outcome.error_type}: {outcome.message[:200]})"
                elif not isinstance(outcome, NotApplicable):
                    self._answered[name] = (now, _PATIENCE if self.patience is None else self.patience)
                    self.outage = None
            if left:
                failed_at = now
                await asyncio.sleep(min(pause, _LONGEST_PAUSE))
                pause *= 2
        known = {**row.outcomes, **found}
        return replace(
            row, asked=asked, outcomes={metric.name: known.get(metric.name, _LOST) for metric in self.engine.metrics}
        )

    def _is_left(self, row: EvaluatedRow, metric: Metric) -> bool:
        """Whether the metric has no outcome, or one that another try may change: of a judge only where it is asked."""
        outcome = row.outcomes.get(metric.name)
        if outcome is None or (is_passing(outcome) and (row.asked or metric.name not in self.evaluation.shared)):
            return True
        return row.asked is not None and isinstance(outcome, Score) and outcome.fallback is not None


def run_in_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run it. Unlike with `asyncio.run`, Ctrl-C interrupts the reading of the table as well."""
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        try:
            loop.run_until_complete(work)
        finally:
            for task in (left := asyncio.all_tasks(loop)):
                task.cancel()
            if left:
                loop.run_until_complete(asyncio.wait(left))


def outside_loop(work: Callable[[], _T], stop: Callable[[], None] = lambda: None) -> _T:
    """Call what runs an event loop, in a thread of its own where one runs in this thread already; `stop` is called on Ctrl-C there."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return work()
    with ThreadPoolExecutor(1, "ragspan-evaluate") as pool:
        try:
            return pool.submit(contextvars.copy_context().run, work).result()
        except KeyboardInterrupt:
            stop()
            raise


@contextlib.contextmanager
def progress_on_stderr() -> Iterator[Callable[[Run], None]]:
    """A function that shows how far a run is: on a terminal it renews a line, else it adds one every ten seconds."""
    began = shown = time.monotonic()
    status = Console(stderr=True).status("") if sys.stderr.isatty() else None

    def display(run: Run) -> None:
        nonlocal shown
        now, evaluation = time.monotonic(), run.evaluation
        if status is None and now - shown < _LINE_PAUSE:
            return
        shown = now
        done = evaluation.rows + evaluation.bad_row_count
        share, words = run.table.share_read(run.begun), counted(done, "row", grouped=True)
        words += "" if share is None else f" ({share * done / max(run.begun, 1):.0%})"
        if run.outage is not None:
            words += f" · {run.outage}"
        elif done > evaluation.resumed:
            words += f" · {(done - evaluation.resumed) / (now - began):,.1f} rows/s"
        if status is not None:
            status.update(Text(words))
        else:
            print(words, file=sys.stderr, flush=True)  # noqa: T201 - a command's own words

    with status or contextlib.nullcontext():
        yield display
