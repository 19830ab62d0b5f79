"""One evaluation from its first row to its last: read, score, note, count.

Guarantees:
- Each row ends exactly once, in the order of the table: with an outcome for each metric, or as a bad row. At most
  `_ROWS_PER_PLACE` records for each that is judged, and `_MAX_BYTES` of their texts, are in work (but always one).
- Each row is in the journal before it is counted. The result file is made from the journal and replaces an earlier one in
  one step, so the process may be killed at any moment.
- Memory does not grow with the table, except for eight bytes a score.
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
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ragspan.arguments import WHOLE, choice
from ragspan.config import Settings, is_enabled
from ragspan.datasets.columns import ColumnChoices
from ragspan.datasets.files import STANDARD_INPUT
from ragspan.datasets.journal import Journal, JournalRow, journal_of
from ragspan.datasets.progress import RunProgress
from ragspan.datasets.records import RecordReader
from ragspan.datasets.result_file import ResultFile, format_of, replacing, write_results
from ragspan.datasets.results import BadRow, EvaluatedRow, Evaluation, ResultRow
from ragspan.datasets.tables import Table, table_of
from ragspan.engine import Budget, Dropped, ScoringEngine
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.metrics.base import Metric
from ragspan.outcomes import MetricFailure
from ragspan.redaction import RedactedRecord
from ragspan.telemetry.base import Emitter
from ragspan.telemetry.content import Dimensions

OnError: TypeAlias = Literal["skip", "stop"]
_Row: TypeAlias = "EvaluatedRow | BadRow"
"""A row that has no outcomes yet, or has them all."""

_ROWS_PER_PLACE = 4  # a slow record holds back those that came after it
_LEAST_ROWS = 64
_MAX_BYTES = 64 * 1024 * 1024
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
        choice("skip", "stop").check_fields(self, "on_error")
        if self.resume and self.output is None:
            raise ConfigurationError("there is nothing to resume without the output file of the earlier run")
        if self.output is not None:
            format_of(self.output)  # an ending without a format should be known before anything is scored


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
        work = pool.submit(contextvars.copy_context().run, _run, plan)
        try:
            return work.result()
        except KeyboardInterrupt:
            plan.stop.set()
            raise


def _run(plan: Plan) -> Evaluation:
    with contextlib.closing(table_of(plan.data, **plan.of_file)) as table:
        dimensions = Dimensions(plan.settings.dimensions)
        reader = RecordReader(plan.columns, table, with_spans=plan.with_spans, dimensions=dimensions.names)
        names = [metric.name for metric in plan.metrics]
        progress = RunProgress(names, lambda done: _share(table, plan.limit, done), dimensions)
        journal = _open_journal(plan, reader)
        is_complete = False
        try:
            plan.on_begin(reader)
            rows = (row if isinstance(row, BadRow) else reader.read(row) for row in islice(table.entries, plan.limit))
            is_complete = _run_in_loop(_evaluate(plan, rows, journal, progress), plan.stop)
        except BaseException as error:
            if not (plan.ends_on_ctrl_c and isinstance(error, KeyboardInterrupt)):
                journal.remove(if_empty=True)
                raise
    stream = _finish(plan.output, journal, is_complete=is_complete)
    is_file = isinstance(plan.data, (str, os.PathLike)) and os.fspath(plan.data) != STANDARD_INPUT
    source = Path(plan.data).name if is_file else None
    return progress.evaluation(stream=stream, is_complete=is_complete, source=source, columns=reader.told)


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


async def _evaluate(plan: Plan, rows: Iterator[_Row], journal: Journal, progress: RunProgress) -> None:
    """Evaluate the rows that are not done yet."""
    for noted in journal.done() if journal.rows else ():
        progress.resumed += 1
        progress.add(_again(noted, next(rows, None), journal))
        plan.on_row(progress)
        await asyncio.sleep(0)  # lets `stop` be looked at

    def note(done: _Row) -> None:
        if isinstance(done, BadRow) and plan.on_error == "stop":
            raise TableError(f"stopped at a bad row, as --on-error stop asks: {done}")
        journal.add(done)
        progress.add(done)
        plan.on_row(progress)

    with _engine(plan) as engine:
        await _score(plan, engine, rows, note)


# Scoring --------------------------------------------------------------------------------------------------------------


async def _score(plan: Plan, engine: ScoringEngine, rows: Iterator[_Row], note: Callable[[_Row], None]) -> None:
    """Score the rows, and note each one's end in their order."""
    max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * plan.settings.concurrency)
    waiting: deque[tuple[asyncio.Task[_Row], int]] = deque()
    held = 0

    async def scored(row: _Row) -> _Row:
        if isinstance(row, BadRow):
            return row
        result = await engine.score(RedactedRecord(row.record))  # the reader has redacted it
        outcomes = {} if isinstance(result, Dropped) else result.outcomes
        return replace(row, outcomes={metric.name: outcomes.get(metric.name, _LOST) for metric in plan.metrics})

    async def end_first() -> None:
        nonlocal held
        task, size = waiting[0]
        note(await task)
        waiting.popleft()
        held -= size

    try:
        for row in rows:
            size = row.record.size_hint if isinstance(row, EvaluatedRow) else 0
            while waiting and (len(waiting) >= max_rows or held + size > _MAX_BYTES):
                await end_first()
            waiting.append((asyncio.create_task(scored(row)), size))
            held += size
            await asyncio.sleep(0)  # which begins it
            while waiting and waiting[0][0].done():
                await end_first()
        while waiting:
            await end_first()
    finally:
        for task, _ in waiting:
            task.cancel()
        await asyncio.gather(*(task for task, _ in waiting), return_exceptions=True)


@contextlib.contextmanager
def _engine(plan: Plan) -> Iterator[ScoringEngine]:
    engine = ScoringEngine(
        metrics=plan.metrics,
        emitters=plan.emitters,
        concurrency=plan.settings.concurrency,
        score_unsampled=True,
        budget=plan.budget,
        metric_timeout=plan.settings.metric_timeout,
        exit_timeout=0,
        judging=plan.settings.judging,
        name="ragspan-evaluate",
    )
    try:
        yield engine
    finally:
        for emitter in plan.emitters:
            emitter.flush(_FLUSH_TIMEOUT)
        log = logging.getLogger("ragspan")
        log.addFilter(_nothing)  # who stops a run knows that records are abandoned
        engine.shutdown(0)
        log.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False


# The journal ----------------------------------------------------------------------------------------------------------


def _open_journal(plan: Plan, reader: RecordReader) -> Journal:
    about = {
        "metrics": [described(metric) for metric in plan.metrics],
        "columns": dict(reader.columns),
        "limit": plan.limit,
    }
    if plan.output is None:
        return Journal(None, about)
    path = journal_of(plan.output)
    if plan.resume and plan.output.exists() and not path.exists():
        raise TableError(
            f"there is nothing to resume: {plan.output} is finished, and {path} is gone; to evaluate anew leave out --resume"
            " (resume=True)"
        )
    return Journal(path, about, resume=plan.resume)


def described(metric: Metric) -> dict[str, Any]:
    """The metric and its settings in plain data, to compare with those of an earlier run; no key and no address."""
    about: dict[str, Any] = {"name": metric.name}
    data: Any = metric
    for item in fields(data) if is_dataclass(data) else ():
        value = getattr(data, item.name)
        if isinstance(value, (str, int, float)) or value is None:
            about[item.name] = value
        elif isinstance(name := getattr(value, "name", None), str):
            version = getattr(value, "prompt_version", None)
            about[item.name] = f"{name}, prompts {version}" if isinstance(version, str) else name
    return about


def _again(noted: JournalRow | BadRow, row: _Row | None, journal: Journal) -> _Row:
    """A row that an earlier run did, with the texts that its journal does not have."""
    if row is None:
        raise TableError(f"the table ends before row {noted.row}, which {journal.path} has: it is another one")
    if isinstance(noted, BadRow):
        if noted == row:
            return noted
    elif isinstance(row, EvaluatedRow) and noted.row == row.row:
        done = noted.of(row.record)
        if done is not None:
            return done
    raise TableError(
        f"row {noted.row} is not what it was when {journal.path} was written, so that run cannot be continued"
    )


def _share(table: Table, limit: int | None, done: int) -> float | None:
    """Of the rows where their number is known, else of the file's bytes."""
    if table.count is not None:
        total = table.count if limit is None else min(table.count, limit)
        return min(1.0, done / total) if total else 1.0
    shares = [share for share in (table.share_read(), done / limit if limit else None) if share is not None]
    return min(1.0, max(shares)) if shares else None


def _finish(output: Path | None, journal: Journal, *, is_complete: bool) -> Callable[[], Iterator[ResultRow]]:
    """Make the result file of the journal, if the run is complete; returns a function that reads the results."""
    journal.close()
    if output is not None and not is_complete and journal.remove(if_empty=True):
        return lambda: iter(())
    if output is None or not is_complete:
        return journal.results
    try:
        with replacing(output) as unfinished:
            write_results(unfinished, format_of(output), journal.results())
    except OSError as error:
        raise TableError(
            f"{output} cannot be written: {error.strerror or error}; all results are in {journal.path}"
        ) from None
    journal.remove()
    return ResultFile(output).results
