"""One run over a table, from its first row to its last: read, score, note, count.

Guarantees:
- Each row ends exactly once, in the order of the table: with an outcome for each metric, or as a bad row. At most
  `_ROWS_PER_PLACE` records for each that is judged are in work.
- Where a judge is asked about a share of the rows, the embedded judge reads all of them first, each once. Nothing is sent, noted
  or counted before it is known which rows the judge is asked about.
- Each row with a record is in the journal before it is counted. The result file is made from the journal and replaces an
  earlier one in one step, so the process may be killed at any moment.
- Memory does not grow with the table, except for eight bytes a score, and with a share for some tens of bytes a row.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ragspan.arguments import SECONDS, WHOLE, choice
from ragspan.config import Settings, is_enabled
from ragspan.engine import Budget, Dropped, ScoringEngine
from ragspan.engine.asking import Reading
from ragspan.engine.patience import Patience
from ragspan.engine.table_share import TableShare
from ragspan.evaluate.columns import LABEL, ColumnChoices
from ragspan.evaluate.evaluated import Evaluation
from ragspan.evaluate.files import STANDARD_INPUT
from ragspan.evaluate.first_reading import FirstReading
from ragspan.evaluate.journal import Journal, described, journal_of
from ragspan.evaluate.opening import table_of
from ragspan.evaluate.progress import RunProgress
from ragspan.evaluate.records import RecordReader
from ragspan.evaluate.result_file import ResultFile, format_of, write_results
from ragspan.evaluate.results import BadRow, EvaluatedRow, ResultRow
from ragspan.evaluate.written_files import replacing, require_apart
from ragspan.exceptions import ConfigurationError, NothingToResume, TableError
from ragspan.metrics.doubt import doubt_of
from ragspan.metrics.metric import Metric
from ragspan.outcomes import MetricFailure, is_passing
from ragspan.redaction import RedactedRecord
from ragspan.telemetry.content import Dimensions
from ragspan.telemetry.emitter_protocols import Emitter

OnError: TypeAlias = Literal["skip", "stop"]
_Row: TypeAlias = "EvaluatedRow | BadRow"
"""A row that has no outcomes yet, or has them all."""

_ROWS_PER_PLACE = 4  # a slow record holds back those that came after it
_LEAST_ROWS = 64
_LOOK_AGAIN = 0.5  # seconds between two looks at `Plan.stop`
_FLUSH_TIMEOUT = 30.0  # seconds for further emitters to send what they hold
_LOST = MetricFailure(error_type="worker_error", message="the engine lost the record: its log says why")


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
    of_file: Mapping[str, Any] = field(default_factory=dict)
    """How the data are read, if they are a file."""
    output: Path | None = None
    resume: bool = False
    on_error: OnError = "skip"
    limit: int | None = None
    patience: float | None = None
    """Seconds that a judge may be away; see `Patience`."""
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
        choice("skip", "stop").check_fields(self, "on_error")
        if self.output is not None:
            format_of(self.output)  # an ending without a format should be known before anything is scored
            require_apart({"the table": self.data}, {"the output": self.output, "its journal": journal_of(self.output)})
        elif self.resume:
            raise ConfigurationError("there is nothing to resume without the output file of the earlier run")


def run(plan: Plan) -> Evaluation:
    """Evaluate the table.

    Raises:
        TableError: the table cannot be read, a column is missing, the output cannot be written, or the table or the
            settings differ from those of the run that is continued. What was done is in the journal.
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
    share = None
    if plan.has_share and plan.settings.judge_share is not None:
        share = TableShare(plan.settings.judge_share, plan.metrics)
    with contextlib.closing(table_of(plan.data, **plan.of_file)) as table:
        dimensions = Dimensions(plan.settings.dimensions)
        reader = RecordReader(plan.columns, table, with_spans=plan.with_spans, dimensions=dimensions.names)
        names = [metric.name for metric in plan.metrics]
        progress = RunProgress(names, lambda done: table.share_done(done, plan.limit), dimensions, share)
        journal = _open_journal(plan, reader, share)
        is_complete = False
        try:
            plan.on_begin(reader)
            rows = (row if isinstance(row, BadRow) else reader.read(row) for row in islice(table.entries, plan.limit))
            is_complete = _run_in_loop(_evaluate(plan, rows, journal, progress, share), plan.stop)
        except KeyboardInterrupt:
            if not plan.ends_on_ctrl_c:
                raise
        finally:
            journal.close()
    stream = _finish(plan.output, journal, is_complete=is_complete, is_final=not progress.passing)
    is_file = isinstance(plan.data, (str, os.PathLike)) and os.fspath(plan.data) != STANDARD_INPUT
    source = Path(plan.data).name if is_file else None
    return progress.evaluation(
        stream=stream,
        is_complete=is_complete,
        source=source,
        columns=reader.columns_read,
        data=plan.data if is_file or hasattr(plan.data, "__len__") else None,
        of_file=plan.of_file,
        limit=plan.limit,
        label_name=label if isinstance(label := plan.columns.get(LABEL), str) else LABEL,
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


async def _evaluate(
    plan: Plan, rows: Iterator[_Row], journal: Journal, progress: RunProgress, share: TableShare | None
) -> None:
    """Evaluate the rows that are not done yet."""
    patience = Patience(plan.patience)

    def note(row: _Row, done: _Row) -> None:
        is_old = done.row <= journal.last_row and not _to_judge(plan, row, share)
        if not is_old:
            _refuse_bad(plan, done)
        if isinstance(done, EvaluatedRow) and not is_old:
            journal.add(done)
        progress.add(done)
        progress.resumed += is_old
        plan.on_row(progress)

    async def tell_of_waiting() -> None:
        while True:
            await asyncio.sleep(_LOOK_AGAIN)
            progress.away = patience.away
            if progress.away is not None:
                plan.on_row(progress)

    rows = chain(journal.resume(rows), rows)
    telling = asyncio.create_task(tell_of_waiting())
    try:
        with contextlib.ExitStack() as stack:
            if share is not None:
                first = stack.enter_context(contextlib.closing(FirstReading(share)))
                await _read_first(plan, rows, first, progress, journal.last_row)
                progress.total, rows = first.rows, first.second()
            engine = stack.enter_context(_engine(plan, patience))
            await _in_order(plan, rows, functools.partial(_judged, plan, engine, share), note)
    finally:
        telling.cancel()
        await asyncio.gather(telling, return_exceptions=True)  # a task that has not ended would be logged as lost


async def _read_first(
    plan: Plan, rows: Iterator[_Row], first: FirstReading, progress: RunProgress, last_row: int
) -> None:
    """Let the embedded judge score each row that an earlier run has not done."""

    async def read(row: _Row) -> _Row:
        if isinstance(row, BadRow) or row.outcomes:
            return row
        result = await engine.score(RedactedRecord(row.record))
        if isinstance(result, Dropped):
            return row
        return replace(row, screened=result.outcomes, doubt=doubt_of(result.outcomes))

    def note(_: _Row, done: _Row) -> None:
        if done.row > last_row:
            _refuse_bad(plan, done)
        first.add(done)
        progress.read = first.rows
        plan.on_row(progress)

    with _engine(plan, screens=first.share.screens) as engine:
        await _in_order(plan, rows, read, note)


def _refuse_bad(plan: Plan, row: _Row) -> None:
    if plan.on_error == "stop" and isinstance(row, BadRow):
        raise TableError(f"stopped at a bad row, as --on-error stop asks: {row}")


def _to_judge(plan: Plan, row: _Row, share: TableShare | None) -> list[str]:
    """The metrics that have no outcome of the row, or one that another try may change."""
    if isinstance(row, BadRow):
        return []
    outcomes = ((metric.name, row.outcomes.get(metric.name)) for metric in plan.metrics)
    return [
        name
        for name, outcome in outcomes
        if outcome is None or is_passing(outcome) or (share is not None and share.is_replaced(name, outcome, row.asked))
    ]


# Scoring --------------------------------------------------------------------------------------------------------------


async def _judged(plan: Plan, engine: ScoringEngine, share: TableShare | None, row: _Row) -> _Row:
    """The row with all its outcomes."""
    left = _to_judge(plan, row, share)
    if isinstance(row, BadRow) or not left:
        return row
    reading = None if share is None else Reading(outcomes=row.screened, asked=row.asked)
    result = await engine.score(RedactedRecord(row.record), only=left, reading=reading)  # the reader has redacted it
    outcomes = {**row.outcomes, **dict.fromkeys(left, _LOST)}
    outcomes |= {} if isinstance(result, Dropped) else result.outcomes
    return replace(row, outcomes={metric.name: outcomes[metric.name] for metric in plan.metrics}, screened={})


async def _in_order(
    plan: Plan,
    rows: Iterator[_Row],
    work: Callable[[_Row], Coroutine[Any, Any, _Row]],
    note: Callable[[_Row, _Row], None],
) -> None:
    """Do some work on each row, on many at the same time, and note each one and what became of it in their order."""
    max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * plan.settings.concurrency)
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
def _engine(
    plan: Plan, patience: Patience | None = None, *, screens: Sequence[Metric] | None = None
) -> Iterator[ScoringEngine]:
    """An engine for the plan; with screens one that asks only these, and sends nothing."""
    is_first = screens is not None
    emitters = () if is_first else plan.emitters
    engine = ScoringEngine(
        metrics=plan.metrics if screens is None else screens,
        emitters=emitters,
        concurrency=plan.settings.concurrency,
        score_unsampled=True,
        budget=None if is_first else plan.budget,
        judge_share=plan.settings.judge_share if plan.has_share and not is_first else None,
        metric_timeout=plan.settings.metric_timeout,
        exit_timeout=0,
        judging=plan.settings.judging,
        patience=patience,
        name="ragspan-evaluate",
    )
    try:
        yield engine
    finally:
        for emitter in emitters:
            emitter.flush(_FLUSH_TIMEOUT)
        log = logging.getLogger("ragspan")
        before, log.disabled = log.disabled, True  # who stops a run knows that records are abandoned
        engine.shutdown(0)
        log.disabled = before


def _open_journal(plan: Plan, reader: RecordReader, share: TableShare | None) -> Journal:
    metrics = [described(metric) for metric in plan.metrics]
    about = {
        "metrics": metrics,
        "columns": reader.columns,
        "limit": plan.limit,
        "judge_share": share and str(share.share),
    }
    path = None if plan.output is None else journal_of(plan.output)
    if plan.resume and plan.output is not None and plan.output.exists() and path is not None and not path.exists():
        raise NothingToResume(
            f"there is nothing to resume: {plan.output} is finished; to evaluate anew leave out --resume"
        )
    return Journal(path, about, resume=plan.resume)


def _finish(
    output: Path | None, journal: Journal, *, is_complete: bool, is_final: bool
) -> Callable[[], Iterator[ResultRow]]:
    """Make the result file of the journal, if the run is complete; returns a function that reads the results.

    The journal stays where outcomes are not final: `resume` judges these again.
    """
    if output is None or not is_complete:
        return journal.results
    try:
        with replacing(output) as unfinished:
            write_results(unfinished, format_of(output), journal.results())
    except OSError as error:
        raise TableError(
            f"{output} cannot be written: {error.strerror or error}; all results are in {journal.path}"
        ) from None
    if is_final:
        journal.path.unlink(missing_ok=True)  # there is none where no row could be read
    else:
        journal.end()
    return ResultFile(output).results
