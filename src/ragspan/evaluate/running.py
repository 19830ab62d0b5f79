"""One run over a table, from its first row to its last: read, score, write, count.

- Each row ends exactly once, in the order of the table, and is in the file of rows before it is counted or sent.
- Where a judge is asked about a share of the rows, the embedded judge reads all of them first; the file of rows keeps what it says.
- Memory does not grow with the table, except for eight bytes a score, and with a share for some tens of bytes a row.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ragspan.arguments import SECONDS, WHOLE
from ragspan.config import Settings, is_enabled
from ragspan.engine import Budget, Dropped, ScoringEngine
from ragspan.engine.emitter_group import EmitterGroup
from ragspan.engine.judge_share_decisions import TableDecisions, beside_screen, check_share
from ragspan.engine.metric_judges import screens_of, spenders_of
from ragspan.engine.metric_outcome import about_response
from ragspan.engine.threads import Deadline
from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.outages import OutageRetry
from ragspan.evaluate.progress import RunProgress, is_replaced
from ragspan.evaluate.records import ColumnChoices, RecordReader
from ragspan.evaluate.rows import LABEL, BadRow, EvaluatedRow, RowWriter, partial_of
from ragspan.evaluate.tables import STANDARD_INPUT, Table, table_of
from ragspan.evaluate.written_files import require_apart, require_jsonl
from ragspan.exceptions import ConfigurationError
from ragspan.judge_share import JudgeShare
from ragspan.metrics.doubt import doubt_of
from ragspan.metrics.metric import Metric
from ragspan.outcomes import BUDGET_EXHAUSTED, MetricFailure, NotApplicable, Outcome, Score, ScoredRecord, is_passing
from ragspan.redaction import RedactedRecord
from ragspan.telemetry.emitter_protocols import Emitter
from ragspan.throttled_log import ThrottledLog

_T = TypeVar("_T")
_Row: TypeAlias = "EvaluatedRow | BadRow"

_ROWS_PER_PLACE = 4  # a slow record holds back those that came after it
_LEAST_ROWS = 64
_TICK = 0.5  # seconds between two looks at `Plan.stop` and at outages
_FLUSH_TIMEOUT = 30.0  # seconds for further emitters to send what they hold
_LOST = MetricFailure(error_type="worker_error", message="the engine lost the record: its log says why")
_NOT_ASKED = NotApplicable(reason="not_asked")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What one evaluation is to do.

    Raises:
        ConfigurationError: something in it cannot be right; the message names it.
    """

    data: Any
    metrics: Sequence[Metric]
    settings: Settings
    budget: Budget | None = None
    columns: ColumnChoices = field(default_factory=dict)
    by: Sequence[str] = ()
    output: Path | None = None
    resume: bool = False
    limit: int | None = None
    patience: float | None = None
    has_share: bool = True
    """Ask the judge about `settings.judge_share` of the rows; False asks it about all of them."""
    emitters: Sequence[Emitter] = ()
    ends_on_ctrl_c: bool = False
    """Ctrl-C ends the evaluation with what is done, in place of a `KeyboardInterrupt`."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Once it is set, the evaluation ends with what is done."""
    on_begin: Callable[[str], None] = lambda _: None
    """Called with what is read as what, in a line."""
    on_row: Callable[[RunProgress], None] = lambda _: None

    def __post_init__(self) -> None:
        if not is_enabled():
            raise ConfigurationError("RAGSPAN_ENABLED is false, so nothing would be scored")
        if not self.metrics:
            raise ConfigurationError("metrics is empty: name one at least")
        WHOLE.or_none().check_fields(self, "limit")
        SECONDS.or_none().check_fields(self, "patience")
        if self.output is not None:
            require_jsonl(self.output, "output")
            written = {"the output": self.output, "its .partial file": partial_of(self.output)}
            require_apart({"the table": self.data}, written)
        elif self.resume:
            raise ConfigurationError("there is nothing to resume without the output file of the earlier run")
        if self.share is not None:
            check_share(self.metrics)

    @property
    def share(self) -> JudgeShare | None:
        """Of the rows, that the judge is asked about; None asks it about all."""
        return self.settings.judge_share if self.has_share else None


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


def run(plan: Plan) -> Evaluation:
    """Evaluate the table.

    Raises:
        TableError: the table cannot be read, a column is missing, the output cannot be written, or the table or the
            settings differ from those of the run that is continued. What was done is in the file of rows.
        ConfigurationError: a setting is wrong.
        KeyboardInterrupt: at Ctrl-C, unless the plan says otherwise.
    """
    return outside_loop(lambda: _run(plan), plan.stop.set)


def _run(plan: Plan) -> Evaluation:
    with contextlib.closing(table_of(plan.data)) as table:
        reader = RecordReader(plan.columns, table, by=plan.by)
        about = {"columns": reader.columns, "limit": plan.limit, "judge_share": plan.share and str(plan.share)}
        writer = RowWriter(plan.output, plan.metrics, about, resume=plan.resume)
        work = _Run(plan, table, writer)
        is_complete = False
        try:
            plan.on_begin(reader.columns_read)
            rows = map(reader.read, islice(table.entries, plan.limit))
            is_complete = _run_in_loop(work.evaluate(rows))
        except KeyboardInterrupt:
            if not plan.ends_on_ctrl_c:
                raise
        finally:
            writer.finish(is_complete=is_complete)
    is_file = isinstance(plan.data, (str, os.PathLike)) and os.fspath(plan.data) != STANDARD_INPUT
    return work.progress.evaluation(
        stream=writer.rows,
        is_complete=is_complete,
        source=Path(plan.data).name if is_file else None,
        columns=reader.columns_read,
        judge_share=plan.share,
        label_name=label if isinstance(label := plan.columns.get(LABEL), str) else LABEL,
    )


def _run_in_loop(work: Coroutine[Any, Any, None]) -> bool:
    """Run it; returns whether it came to its end. Unlike with `asyncio.run`, Ctrl-C interrupts the reading of the table as well."""
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        task = loop.create_task(work)
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            return False
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    loop.run_until_complete(task)
            _ = task.cancelled() or task.exception()  # an error is raised already, so asyncio need not log it
    return True


class _Run:
    """The work on the rows of one table."""

    def __init__(self, plan: Plan, table: Table, writer: RowWriter) -> None:
        self._plan, self._writer, self._share_read = plan, writer, table.share_read
        self._screens: Mapping[str, Metric | None] = {} if plan.share is None else screens_of(plan.metrics)
        self.progress = RunProgress([metric.name for metric in plan.metrics], plan.by, {*self._screens})
        self._totals = [known for known in (table.count, plan.limit) if known is not None]
        self._read = 0
        self._retry = OutageRetry(plan.patience)
        self._paid = {metric.name for metric in plan.metrics if any(spenders_of(metric))}
        self._emission = EmitterGroup(plan.emitters, ThrottledLog())

    async def evaluate(self, rows: Iterator[_Row]) -> None:
        """Evaluate the rows that are not done yet."""
        ticking = asyncio.create_task(self._tick(asyncio.current_task()))
        try:
            rows = chain(self._writer.resume(rows), rows)
            if self._plan.share is not None:
                rows = await self._screened(rows, TableDecisions(self._plan.share))
            with self._engine(self._plan.metrics, self._plan.budget) as engine:
                await self._in_order(rows, lambda row: self._judged(engine, row), self._note)
        finally:
            ticking.cancel()
            await asyncio.gather(ticking, return_exceptions=True)  # a task that has not ended would be logged as lost
            self._emission.flush(Deadline(_FLUSH_TIMEOUT))

    async def _tick(self, work: asyncio.Task[Any] | None) -> None:
        while work is not None:
            await asyncio.sleep(_TICK)
            if self._plan.stop.is_set():
                work.cancel()
            self.progress.outage = self._retry.outage
            if self.progress.outage is not None:
                self._plan.on_row(self.progress)

    def _note(self, row: _Row, done: _Row) -> None:
        if isinstance(done, EvaluatedRow) and done is not row:
            self._writer.add(done)
        self.progress.add(done)
        self.progress.resumed += done.row <= self._writer.last_row and done is row
        self._tell(self.progress.done)

    def _tell(self, rows: int) -> None:
        # Rows are read before they are done; those that a file still has are as large as those that are read.
        of_file, shares = self._share_read(), [rows / max(total, 1) for total in self._totals]
        shares += [] if of_file is None else [of_file * rows / max(self._read, 1)]
        self.progress.share_done = min(max(shares), 1.0) if shares else None
        self._plan.on_row(self.progress)

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
            if isinstance(done, BadRow):
                self.progress.add(done)
            else:
                decisions.add(done.record.record_id, done.doubt)
                if done is not row:
                    self._writer.add(done)
            self.progress.read += 1
            self._tell(self.progress.read)

        self.progress.is_reading = True
        with self._engine([metric for metric in self._screens.values() if metric is not None], None) as engine:
            await self._in_order(rows, read, note)
        self.progress.is_reading = False

        def decided() -> Iterator[_Row]:
            for row, reason in zip(self._writer.rows(), decisions.asked(), strict=True):
                if row.asked is not None or reason is None:
                    yield row  # the judge was asked in an earlier run, or is not
                else:
                    rest = {name: outcome for name, outcome in row.outcomes.items() if name not in self._screens}
                    yield replace(row, asked=reason, outcomes=rest, screened=row.outcomes)

        return decided()

    async def _judged(self, engine: ScoringEngine, row: _Row) -> _Row:
        """The row with all its outcomes; the same object where none is new. While a judge is away it is asked again, after a pause."""
        if isinstance(row, BadRow):
            return row
        left = [
            name
            for metric in self._plan.metrics
            if (outcome := row.outcomes.get(name := metric.name)) is None
            or ((is_passing(outcome) or is_replaced(outcome, row.asked)) and (row.asked or name not in self._screens))
        ]

        async def ask(names: Sequence[str]) -> Mapping[str, Outcome] | None:
            result = await engine.score(RedactedRecord(row.record), only=names)  # the reader has redacted it
            return None if isinstance(result, Dropped) else result.outcomes

        found = {**dict.fromkeys(left, _LOST), **await self._retry.outcomes(left, ask, self._paid)} if left else {}
        for name in left if row.asked and self._screens else ():
            screened, before = row.screened.get(name), row.outcomes.get(name)
            if screened is None and isinstance(before, Score) and before.fallback:
                screened = replace(before, fallback=None, usage=None)  # it has stood in for the judge in an earlier run
            if name in self._screens and screened is not None:
                found[name] = _with_screen(found[name], screened)
        outcomes = {metric.name: found.get(metric.name) or row.outcomes[metric.name] for metric in self._plan.metrics}
        is_new = row.row > self._writer.last_row
        if self._plan.emitters and (left or is_new):
            handle = self._emission.start(row.record)
            refusal, language = about_response(row.record)
            scored = ScoredRecord(
                record=row.record,
                outcomes=outcomes if is_new else found,
                span=handle.span,
                refusal=refusal,
                language=language,
                asked=row.asked,
            )
            handle.tell(lambda one: one.finish(scored))
        return replace(row, outcomes=outcomes, screened={}) if left else row

    async def _in_order(
        self,
        rows: Iterator[_Row],
        work: Callable[[_Row], Coroutine[Any, Any, _Row]],
        note: Callable[[_Row, _Row], None],
    ) -> None:
        """Do some work on each row, on many at the same time, and note each one and what became of it in their order."""
        max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * self._plan.settings.concurrency)
        waiting: deque[tuple[_Row, asyncio.Task[_Row]]] = deque()
        self._read = 0
        try:
            for row in chain(rows, [None]):
                if row is None:
                    self._totals.append(self._read)
                else:
                    self._read += 1
                    waiting.append((row, asyncio.create_task(work(row))))
                    await asyncio.sleep(0)  # which begins it, and lets `stop` be looked at
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
        settings = self._plan.settings
        engine = ScoringEngine(
            metrics=metrics,
            concurrency=settings.concurrency,
            score_unsampled=True,
            budget=budget,
            waits_for_budget=True,
            metric_timeout=settings.metric_timeout,
            exit_timeout=0,
            judging=settings.judging,
            name="ragspan-evaluate",
        )
        try:
            yield engine
        finally:
            log = logging.getLogger("ragspan")
            before, log.disabled = log.disabled, True  # who stops a run knows that records are abandoned
            engine.shutdown(0)
            log.disabled = before


def _with_screen(outcome: Outcome, screened: Outcome) -> Outcome:
    """What the judge says beside the embedded judge, which stands in where the budget denied the judge, too."""
    is_denied = isinstance(outcome, NotApplicable) and outcome.reason == BUDGET_EXHAUSTED
    if isinstance(screened, Score) and (is_denied or (isinstance(outcome, Score) and outcome.fallback is not None)):
        return replace(screened, fallback=BUDGET_EXHAUSTED)
    return beside_screen(outcome, screened)
