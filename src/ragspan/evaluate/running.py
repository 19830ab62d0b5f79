"""One run over a table, from its first row to its last: read, score, write, count.

Guarantees:
- Each row ends exactly once, in the order of the table: with an outcome for each metric, or as a bad row. At most
  `_ROWS_PER_PLACE` records for each that is judged are in work.
- Where a judge is asked about a share of the rows, the embedded judge reads all of them first, each once. Nothing is sent, written
  or counted before it is known which rows the judge is asked about.
- Each row with a record is in the file of rows before it is counted, so the process may be killed at any moment.
- Memory does not grow with the table, except for eight bytes a score, and with a share for some tens of bytes a row.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import pickle
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, TypeAlias

from ragspan.arguments import SECONDS, WHOLE
from ragspan.config import Settings, is_enabled
from ragspan.engine import Budget, Dropped, ScoringEngine
from ragspan.engine.emitter_group import EmitterGroup
from ragspan.engine.helper.messages import pack, unpack
from ragspan.engine.judge_share_decisions import TableDecisions, beside_screen, check_share
from ragspan.engine.metric_judges import screens_of, spenders_of
from ragspan.engine.metric_outcome import about_response
from ragspan.engine.threads import Deadline, call_guarded
from ragspan.evaluate.columns import LABEL, ColumnChoices
from ragspan.evaluate.evaluated import Evaluation
from ragspan.evaluate.opening import STANDARD_INPUT, table_of
from ragspan.evaluate.outages import OutageRetry
from ragspan.evaluate.progress import RunProgress
from ragspan.evaluate.records import RecordReader
from ragspan.evaluate.row_file import RowWriter, partial_of, require_jsonl
from ragspan.evaluate.rows import BadRow, EvaluatedRow
from ragspan.evaluate.written_files import require_apart
from ragspan.exceptions import ConfigurationError
from ragspan.metrics.doubt import doubt_of
from ragspan.metrics.metric import Metric
from ragspan.outcomes import BUDGET_EXHAUSTED, MetricFailure, NotApplicable, Outcome, Score, ScoredRecord, is_passing
from ragspan.redaction import RedactedRecord
from ragspan.telemetry.emitter_protocols import Emitter
from ragspan.throttled_log import ThrottledLog

_Row: TypeAlias = "EvaluatedRow | BadRow"
"""A row that has no outcomes yet, or has them all."""

_ROWS_PER_PLACE = 4  # a slow record holds back those that came after it
_LEAST_ROWS = 64
_LOOK_AGAIN = 0.5  # seconds between two looks at `Plan.stop`
_FLUSH_TIMEOUT = 30.0  # seconds for further emitters to send what they hold
_LOST = MetricFailure(error_type="worker_error", message="the engine lost the record: its log says why")
_NOT_ASKED = NotApplicable(reason="not_asked")
_PROTOCOL = 5  # of pickle


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What one evaluation is to do.

    Raises:
        ConfigurationError: something in it cannot be right; the message names it.
    """

    data: Any
    metrics: Sequence[Metric]
    settings: Settings
    """Of the engine."""
    budget: Budget | None = None
    columns: ColumnChoices = field(default_factory=dict)
    by: Sequence[str] = ()
    """Columns by which rows are also grouped, beside `settings.dimensions`."""
    output: Path | None = None
    resume: bool = False
    limit: int | None = None
    patience: float | None = None
    """Seconds that a judge may be away; see `OutageRetry`."""
    has_share: bool = True
    """Ask the judge about `settings.judge_share` of the rows; False asks it about all of them."""
    emitters: Sequence[Emitter] = ()
    """Where scores also go."""
    with_spans: bool = False
    """Read the spans of the answers from the table."""
    ends_on_ctrl_c: bool = False
    """Ctrl-C ends the evaluation with what is done, in place of a `KeyboardInterrupt`."""
    stop: threading.Event = field(default_factory=threading.Event)
    """Once it is set, the evaluation ends with what is done."""
    on_begin: Callable[[RecordReader], None] = lambda _: None
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
            require_apart(
                {"the table": self.data}, {"the output": self.output, "its .partial file": partial_of(self.output)}
            )
        elif self.resume:
            raise ConfigurationError("there is nothing to resume without the output file of the earlier run")
        if self.has_share and self.settings.judge_share is not None:
            check_share(self.metrics)


def run(plan: Plan) -> Evaluation:
    """Evaluate the table.

    Raises:
        TableError: the table cannot be read, a column is missing, the output cannot be written, or the table or the
            settings differ from those of the run that is continued. What was done is in the file of rows.
        ConfigurationError: a setting is wrong.
        KeyboardInterrupt: at Ctrl-C, unless the plan says otherwise.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(plan)
    with ThreadPoolExecutor(1, "ragspan-evaluate") as pool:  # no second event loop can run in this thread
        try:
            return pool.submit(contextvars.copy_context().run, _run, plan).result()
        except KeyboardInterrupt:
            plan.stop.set()
            raise


def _run(plan: Plan) -> Evaluation:
    share = plan.settings.judge_share if plan.has_share else None
    screens = {} if share is None else screens_of(plan.metrics)
    with contextlib.closing(table_of(plan.data)) as table:
        dimensions = tuple(dict.fromkeys([*plan.settings.dimensions, *plan.by]))
        reader = RecordReader(plan.columns, table, with_spans=plan.with_spans, dimensions=dimensions, by=plan.by)
        progress = RunProgress(
            [metric.name for metric in plan.metrics],
            lambda done: table.share_done(done, plan.limit),
            dimensions,
            share,
            frozenset(screens),
        )
        about = {"columns": reader.columns, "limit": plan.limit, "judge_share": share and str(share)}
        writer = RowWriter(plan.output, list(plan.metrics), about, resume=plan.resume)
        is_complete = False
        try:
            plan.on_begin(reader)
            rows = (row if isinstance(row, BadRow) else reader.read(row) for row in islice(table.entries, plan.limit))
            is_complete = _run_in_loop(_Run(plan, writer, progress, screens).evaluate(rows), plan.stop)
        except KeyboardInterrupt:
            if not plan.ends_on_ctrl_c:
                raise
        finally:
            written = writer.finish(is_complete=is_complete)
    is_file = isinstance(plan.data, (str, os.PathLike)) and os.fspath(plan.data) != STANDARD_INPUT
    return progress.evaluation(
        stream=written.rows,
        is_complete=is_complete,
        source=Path(plan.data).name if is_file else None,
        columns=reader.columns_read,
        label_name=label if isinstance(label := plan.columns.get(LABEL), str) else LABEL,
        has_passing=progress.passing > 0,
    )


def _run_in_loop(work: Coroutine[Any, Any, None], stop: threading.Event) -> bool:
    """Run it to its end, or until `stop` is set; returns whether it came to its end.

    Unlike with `asyncio.run`, Ctrl-C interrupts at once, also while the table is read, which may block.
    """
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        task = loop.create_task(work)

        def look() -> None:
            if stop.is_set():
                task.cancel()
            else:
                loop.call_later(_LOOK_AGAIN, look)

        look()
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

    def __init__(self, plan: Plan, writer: RowWriter, progress: RunProgress, screens: dict[str, Metric | None]) -> None:
        self._plan, self._writer, self._progress, self._screens = plan, writer, progress, screens
        self._retry = OutageRetry(plan.patience)
        self._paid = {metric.name for metric in plan.metrics if any(spenders_of(metric))}
        self._emission = EmitterGroup(plan.emitters, ThrottledLog())

    async def evaluate(self, rows: Iterator[_Row]) -> None:
        """Evaluate the rows that are not done yet."""
        rows = chain(self._writer.resume(rows), rows)
        telling = asyncio.create_task(self._tell_of_outages())
        try:
            with contextlib.ExitStack() as stack:
                if self._plan.settings.judge_share is not None and self._plan.has_share:
                    kept = stack.enter_context(tempfile.TemporaryFile(prefix="ragspan-"))
                    rows = await self._screened(rows, kept, TableDecisions(self._plan.settings.judge_share))
                engine = stack.enter_context(self._engine(self._plan.metrics, self._plan.budget))
                await self._in_order(rows, lambda row: self._judged(engine, row), self._note)
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)  # a task that has not ended would be logged as lost
            self._emission.flush(Deadline(_FLUSH_TIMEOUT))

    async def _tell_of_outages(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            self._progress.outage = self._retry.outage
            if self._progress.outage is not None:
                self._plan.on_row(self._progress)

    def _note(self, row: _Row, done: _Row) -> None:
        is_old = done.row <= self._writer.last_row and not self._to_judge(row)
        if isinstance(done, EvaluatedRow) and not is_old:
            self._writer.add(done)
        self._progress.add(done)
        self._progress.resumed += is_old
        self._plan.on_row(self._progress)

    def _to_judge(self, row: _Row) -> list[str]:
        """The metrics that have no outcome of the row, or one that another try may change."""
        if isinstance(row, BadRow):
            return []
        outcomes = ((metric.name, row.outcomes.get(metric.name)) for metric in self._plan.metrics)
        return [
            name
            for name, outcome in outcomes
            if outcome is None or is_passing(outcome) or self._progress.is_replaced(name, outcome, row.asked)
        ]

    async def _screened(self, rows: Iterator[_Row], kept: IO[bytes], decisions: TableDecisions) -> Iterator[_Row]:
        """Let the embedded judge read each row that an earlier run has not done, then tell which ones the judge is asked about.

        Many tables can be read only once, so the rows wait with its scores in a temporary file, which has no name.
        """

        async def read(row: _Row) -> _Row:
            if isinstance(row, BadRow) or row.outcomes:
                return row
            result = await engine.score(RedactedRecord(row.record))
            if isinstance(result, Dropped):
                return row
            return replace(row, screened=result.outcomes, doubt=doubt_of(result.outcomes))

        def note(_: _Row, done: _Row) -> None:
            pickled, _error = call_guarded(pickle.dumps, done, _PROTOCOL)
            if pickled is None and isinstance(done, EvaluatedRow):  # metadata may hold anything
                plain = unpack(pack(done.record))
                pickled = pickle.dumps(replace(done, record=plain, screened={}), _PROTOCOL)
            kept.write(pickled or b"")
            if isinstance(done, EvaluatedRow):
                decisions.add(done.record.record_id, done.doubt)
            self._progress.read += 1
            self._plan.on_row(self._progress)

        with self._engine(list(filter(None, self._screens.values())), None) as engine:
            await self._in_order(rows, read, note)
        self._progress.total = self._progress.read

        def decided() -> Iterator[_Row]:
            reasons = iter(decisions.asked())
            kept.seek(0)
            for _ in range(self._progress.read):
                row: _Row = pickle.load(kept)  # noqa: S301 - what `note` wrote
                if isinstance(row, EvaluatedRow):
                    reason = next(reasons)
                    row = row if row.outcomes else replace(row, asked=reason)  # what an earlier run has decided stays
                yield row

        return decided()

    async def _judged(self, engine: ScoringEngine, row: _Row) -> _Row:
        """The row with all its outcomes."""
        left = self._to_judge(row)
        if isinstance(row, BadRow) or not left:
            return row
        found: dict[str, Outcome] = {}
        for name in left:  # the embedded judge's word is the last where the judge is not asked
            if name in self._screens and row.asked is None:
                found[name] = row.screened.get(name, _NOT_ASKED)
        judging = [name for name in left if name not in found]
        result = await self._asked(engine, row, judging) if judging else {}
        for name, outcome in result.items():
            screened = row.screened.get(name, _own_of(row.outcomes.get(name))) if name in self._screens else None
            found[name] = outcome if screened is None else _with_screen(outcome, screened)
        if self._plan.emitters:
            self._emit(row, {name: found[name] for name in left})
        outcomes = {**row.outcomes, **found}
        return replace(row, outcomes={metric.name: outcomes[metric.name] for metric in self._plan.metrics}, screened={})

    async def _asked(self, engine: ScoringEngine, row: EvaluatedRow, names: Sequence[str]) -> dict[str, Outcome]:
        """The outcomes of these metrics; while a judge is away it is asked again, after a pause."""

        async def ask(left: Sequence[str]) -> Mapping[str, Outcome] | None:
            result = await engine.score(RedactedRecord(row.record), only=left)  # the reader has redacted it
            return None if isinstance(result, Dropped) else result.outcomes

        return {**dict.fromkeys(names, _LOST), **await self._retry.outcomes(names, ask, self._paid)}

    def _emit(self, row: EvaluatedRow, outcomes: dict[str, Outcome]) -> None:
        handle = self._emission.start(row.record)
        refusal, language = about_response(row.record)
        scored = ScoredRecord(
            record=row.record,
            outcomes=outcomes,
            span=handle.span,
            refusal=refusal,
            language=language,
            asked=row.asked,
        )
        handle.tell(lambda one: one.finish(scored))

    async def _in_order(
        self,
        rows: Iterator[_Row],
        work: Callable[[_Row], Coroutine[Any, Any, _Row]],
        note: Callable[[_Row, _Row], None],
    ) -> None:
        """Do some work on each row, on many at the same time, and note each one and what became of it in their order."""
        max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * self._plan.settings.concurrency)
        waiting: deque[tuple[_Row, asyncio.Task[_Row]]] = deque()

        async def end_first() -> None:
            row, ended = waiting[0]
            note(row, await ended)
            waiting.popleft()

        try:
            for row in rows:
                waiting.append((row, asyncio.create_task(work(row))))
                await asyncio.sleep(0)  # which begins it, and lets `stop` be looked at
                while waiting and (len(waiting) >= max_rows or waiting[0][1].done()):
                    await end_first()
            while waiting:
                await end_first()
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


def _own_of(before: Outcome | None) -> Outcome | None:
    """The embedded judge's score that has stood in for the judge's in an earlier run."""
    return replace(before, fallback=None, usage=None) if isinstance(before, Score) and before.fallback else None


def _with_screen(outcome: Outcome, screened: Outcome) -> Outcome:
    """What the judge says beside the embedded judge, which stands in where the budget denied the judge, too."""
    is_denied = isinstance(outcome, NotApplicable) and outcome.reason == BUDGET_EXHAUSTED
    if isinstance(screened, Score) and (is_denied or (isinstance(outcome, Score) and outcome.fallback is not None)):
        return replace(screened, fallback=BUDGET_EXHAUSTED)
    return beside_screen(outcome, screened)
