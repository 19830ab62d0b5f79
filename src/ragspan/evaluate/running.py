"""One run over a table, from its first row to its last: read, judge, write, count.

- Each row ends exactly once, in the order of the table, and is in the file of rows before it is counted.
- Where a judge is asked about a share of the rows, the embedded judge reads all of them first; the file of rows keeps what it says.
- Memory does not grow with the table, except for eight bytes a score, and with a share for some tens of bytes a row.
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
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TextIO, TypeAlias, TypeVar

from rich.console import Console
from rich.text import Text

from ragspan.config import Settings
from ragspan.counted import counted
from ragspan.engine import Budget, Dropped, ScoringEngine
from ragspan.engine.judge_share_decisions import TableDecisions, beside_screen
from ragspan.engine.metric_judges import screens_of
from ragspan.evaluate.evaluation import Counts
from ragspan.evaluate.rows import BadRow, EvaluatedRow, RowWriter
from ragspan.evaluate.tables import Table
from ragspan.judge_share import JudgeShare
from ragspan.metrics.doubt import doubt_of
from ragspan.metrics.metric import Metric
from ragspan.outcomes import BUDGET_EXHAUSTED, Asked, MetricFailure, NotApplicable, Outcome, Score, is_passing
from ragspan.redaction import RedactedRecord
from ragspan.usage import Usage

_T = TypeVar("_T")
_Row: TypeAlias = "EvaluatedRow | BadRow"

_ROWS_PER_PLACE = 4  # a slow record holds back those that came after it
_LEAST_ROWS = 64
_TICK = 0.2  # seconds between two looks at whether to stop, and at how far the run is
_LINE_PAUSE = 10.0  # seconds between two lines of progress where there is no terminal
_LOST = MetricFailure(error_type="worker_error", message="the engine lost the record: its log says why")
_NOT_ASKED = NotApplicable(reason="not_asked")
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

    metrics: Sequence[Metric]
    settings: Settings
    table: Table
    writer: RowWriter
    budget: Budget | None = None
    patience: float | None = None
    """Seconds for which a judge may be away; None is the default."""
    share: JudgeShare | None = None
    """Of the rows, that the judge is asked about; None asks it about all."""
    by: Sequence[str] = ()
    tell: Callable[[Run], None] = lambda _: None
    """Called now and then."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Once it is set, the run ends."""
    resumed: int = 0
    """Rows that an earlier run has done."""
    outage: str | None = None
    """Which judge is waited for, and why."""
    is_reading: bool = False
    """Whether the embedded judge reads the rows, to tell which ones the judge is asked about."""

    def __post_init__(self) -> None:
        self._screens: Mapping[str, Metric | None] = {} if self.share is None else screens_of(self.metrics)
        self.counts = Counts([metric.name for metric in self.metrics], self.by, {*self._screens})
        self.screened = 0
        """Rows that the embedded judge has read to tell which ones the judge is asked about."""
        self._answered: dict[str, tuple[float, float]] = {}
        """By metric, when its judge has answered last, else was asked first, and the seconds that it may be away from then on."""

    @property
    def share_done(self) -> float | None:
        """The share of the table's rows that are done, from 0 to 1; None where its size is not known."""
        if self.share is not None and not self.is_reading:
            return self.counts.done / max(self.screened, 1)
        return self.table.share_read(self.screened if self.is_reading else self.counts.done)

    async def evaluate(self, rows: Iterator[_Row]) -> None:
        """Evaluate the rows that are not done yet."""
        ticking = asyncio.create_task(self._tick(asyncio.current_task()))
        try:
            rows = chain(self.writer.resume(rows), rows)
            if self.share is not None:
                rows = await self._screened(rows, TableDecisions(self.share))
            with self._engine(self.metrics, self.budget) as engine:
                await self._in_order(rows, lambda row: self._judged(engine, row), self._note)
        finally:
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)  # a task that has not ended would be logged as lost

    async def _tick(self, work: asyncio.Task[Any] | None) -> None:
        while work is not None:
            await asyncio.sleep(_TICK)
            if self.stop.is_set():
                work.cancel()
            self.tell(self)

    def _note(self, row: _Row, done: _Row) -> None:
        if isinstance(done, EvaluatedRow) and done is not row:
            self.writer.add(done)
        self.counts.add(done)
        self.resumed += done.row <= self.writer.last_row and done is row

    async def _screened(self, rows: Iterator[_Row], decisions: TableDecisions) -> Iterator[_Row]:
        """Let the embedded judge read each row that an earlier run has not read, then tell which ones the judge is asked about."""

        async def read(row: _Row) -> _Row:
            if isinstance(row, BadRow) or row.outcomes:
                return row
            result = await engine.score(RedactedRecord(row.record))
            found = {} if isinstance(result, Dropped) else result.outcomes
            outcomes = {name: found.get(name, _NOT_ASKED) for name in self._screens}
            return replace(row, outcomes=outcomes, doubt=doubt_of(outcomes))

        def note(row: _Row, done: _Row) -> None:
            self.screened += 1
            if isinstance(done, BadRow):
                self.counts.add(done)
                return
            decisions.add(done.record.record_id, done.doubt)
            if done is not row:
                self.writer.add(done)

        self.is_reading = True
        with self._engine([metric for metric in self._screens.values() if metric is not None], None) as engine:
            await self._in_order(rows, read, note)
        self.is_reading = False

        def decided() -> Iterator[_Row]:
            for row, reason in zip(self.writer.rows(), decisions.asked(), strict=True):
                if row.asked is not None or reason is None:
                    yield row  # the judge was asked in an earlier run, or is not
                else:
                    rest = {name: outcome for name, outcome in row.outcomes.items() if name not in self._screens}
                    yield replace(row, asked=reason, outcomes=rest, screened=row.outcomes)

        return decided()

    async def _judged(self, engine: ScoringEngine, row: _Row) -> _Row:
        """The row with all its outcomes; the same object where none is new."""
        if isinstance(row, BadRow):
            return row
        left = [
            name
            for metric in self.metrics
            if (outcome := row.outcomes.get(name := metric.name)) is None
            or (_may_change(outcome, row.asked) and (row.asked or name not in self._screens))
        ]
        if not left:
            return row
        found = {**dict.fromkeys(left, _LOST), **await self._asked(engine, row, left)}
        for name in self._screens.keys() & left if row.asked else ():
            screened, before = row.screened.get(name), row.outcomes.get(name)
            if screened is None and isinstance(before, Score) and before.fallback:
                screened = replace(before, fallback=None, usage=None)  # it has stood in for the judge in an earlier run
            if screened is not None:
                found[name] = _with_screen(found[name], screened)
        outcomes = {metric.name: found.get(metric.name) or row.outcomes[metric.name] for metric in self.metrics}
        return replace(row, outcomes=outcomes, screened={})

    async def _asked(self, engine: ScoringEngine, row: EvaluatedRow, left: Sequence[str]) -> Mapping[str, Outcome]:
        """The outcomes of these metrics. A judge that is away is asked again, after pauses, until it was away for too long."""
        began = now = time.monotonic()
        pause, in_vain, failed_at, found = 1.0, 0, math.inf, dict[str, Outcome]()
        while left:
            for name in left:
                self._answered.setdefault(name, (now, _BEFORE_FIRST if self.patience is None else self.patience))
            result = await engine.score(RedactedRecord(row.record), only=left)  # the reader has redacted it
            left, now = [], time.monotonic()
            for name, outcome in {} if isinstance(result, Dropped) else result.outcomes.items():
                spent = found[name].usage if name in found else None
                found[name] = replace(outcome, usage=spent + (outcome.usage or Usage())) if spent else outcome
                if isinstance(outcome, MetricFailure) and outcome.outage and outcome.status not in _LASTING:
                    answered_at, patience = self._answered[name]
                    in_vain += answered_at > failed_at and outcome.status != _TOO_MANY
                    patience = min(patience, _SUSPECT) if in_vain else patience
                    if in_vain < _MOST_IN_VAIN and now - answered_at < patience and now - began < patience:
                        left = [*left, name]
                        self.outage = f"waiting for the judge of {name} ({outcome.error_type}: {outcome.message[:200]})"
                elif not isinstance(outcome, NotApplicable):
                    self._answered[name] = (now, _PATIENCE if self.patience is None else self.patience)
                    self.outage = None
            if left:
                failed_at = now
                await asyncio.sleep(min(pause, _LONGEST_PAUSE))
                pause *= 2
        return found

    async def _in_order(
        self,
        rows: Iterator[_Row],
        work: Callable[[_Row], Coroutine[Any, Any, _Row]],
        note: Callable[[_Row, _Row], None],
    ) -> None:
        """Do some work on each row, on many at the same time, and note each one and what became of it in their order."""
        max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * self.settings.concurrency)
        waiting: deque[tuple[_Row, asyncio.Task[_Row]]] = deque()
        try:
            for row in chain(rows, [None]):
                if row is not None:
                    waiting.append((row, asyncio.create_task(work(row))))
                    await asyncio.sleep(0)  # which begins it, and lets others look at the time
                while waiting and (row is None or len(waiting) >= max_rows or waiting[0][1].done()):
                    note(waiting[0][0], await waiting[0][1])
                    waiting.popleft()
        finally:
            tasks = [task for _, task in waiting]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @contextlib.contextmanager
    def _engine(self, metrics: Sequence[Metric], budget: Budget | None) -> Iterator[ScoringEngine]:
        engine = ScoringEngine(
            metrics=metrics,
            concurrency=self.settings.concurrency,
            score_unsampled=True,
            budget=budget,
            waits_for_budget=True,
            metric_timeout=self.settings.metric_timeout,
            exit_timeout=0,
            judging=self.settings.judging,
            name="ragspan-evaluate",
        )
        try:
            yield engine
        finally:
            log = logging.getLogger("ragspan")
            before, log.disabled = log.disabled, True  # who stops a run knows that records are abandoned
            engine.shutdown(0)
            log.disabled = before


def _may_change(outcome: Outcome, asked: Asked | None) -> bool:
    """Whether it failed, or had no budget, or the embedded judge's score stands in for that of a judge that was asked."""
    return is_passing(outcome) or (asked is not None and isinstance(outcome, Score) and outcome.fallback is not None)


def _with_screen(outcome: Outcome, screened: Outcome) -> Outcome:
    """What the judge says beside the embedded judge, which stands in where the budget denied the judge, too."""
    is_denied = isinstance(outcome, NotApplicable) and outcome.reason == BUDGET_EXHAUSTED
    if isinstance(screened, Score) and (is_denied or (isinstance(outcome, Score) and outcome.fallback is not None)):
        return replace(screened, fallback=BUDGET_EXHAUSTED)
    return beside_screen(outcome, screened)


def run_in_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run it. Unlike with `asyncio.run`, Ctrl-C interrupts the reading of the table as well."""
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        task = loop.create_task(work)
        try:
            loop.run_until_complete(task)
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    loop.run_until_complete(task)
            _ = task.cancelled() or task.exception()  # an error is raised already, so asyncio need not log it


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
def progress_on_stderr(
    *, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[Run], None]]:
    """A function that shows how far a run is: on a terminal it renews a line, else it adds one every ten seconds."""
    target = sys.stderr if file is None else file
    began = shown = clock()
    with contextlib.ExitStack() as stack:
        status = stack.enter_context(Console(file=target).status("")) if target.isatty() else None

        def display(run: Run) -> None:
            nonlocal shown
            now, done, share = clock(), run.counts.done, run.share_done
            if status is None and now - shown < _LINE_PAUSE:
                return
            shown = now
            rows = counted(run.screened if run.is_reading else done, "row", grouped=True)
            words = f"{rows}{' read by the embedded judge' if run.is_reading else ''}"
            words += "" if share is None else f" ({share:.0%})"
            if run.outage is not None:
                words += f" · {run.outage}"
            elif done > run.resumed:
                words += f" · {(done - run.resumed) / (now - began):,.1f} rows/s"
            if status is not None:
                status.update(Text(words))
            else:
                print(words, file=target, flush=True)

        yield display
