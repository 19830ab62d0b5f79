"""One evaluation from its first row to its last: read, score, note, count.

Guarantees:
- Each row ends exactly once, in the order of the table: with an outcome for each metric, or as a bad row. At most
  `_ROWS_PER_PLACE` records for each that is judged, and `_MAX_BYTES` of their texts, are on their way (but always one).
- Each row is in the journal before it is counted. The result file is made from the journal and takes its place in one
  step, so the process may be killed at any moment.
- Memory does not grow with the table, but for eight bytes a score.
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
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ragspan.arguments import WHOLE, choice
from ragspan.config import Settings, is_enabled
from ragspan.datasets.columns import ColumnChoices
from ragspan.datasets.files import STANDARD_INPUT
from ragspan.datasets.journal import Journal, JournalRow, journal_of
from ragspan.datasets.progress import RunProgress
from ragspan.datasets.records import RecordReader, RecordRow
from ragspan.datasets.result_file import ResultFile, format_of, replacing, write_results
from ragspan.datasets.results import BadRow, EvaluatedRow, Evaluation, ResultRow
from ragspan.datasets.tables import Table, table_of
from ragspan.engine import Budget, Dropped, ScoringEngine
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.metrics.base import Metric
from ragspan.outcomes import MetricFailure, ScoredRecord
from ragspan.redaction import RedactedRecord
from ragspan.telemetry.base import Emitter
from ragspan.telemetry.content import Dimensions

OnError: TypeAlias = Literal["skip", "stop"]
_Entry: TypeAlias = "RecordRow | BadRow"
_Done: TypeAlias = "EvaluatedRow | BadRow"

_ROWS_PER_PLACE = 4  # a slow record holds back those that came after it
_LEAST_ROWS = 64
_MAX_BYTES = 64 * 1024 * 1024
_LOOK_AGAIN = 0.5  # seconds between two looks whether somebody wants an end
_FLUSH_TIMEOUT = 30.0  # seconds for further emitters to send what they hold
_LOST = MetricFailure(error_type="worker_error", message="the engine lost the record: its log says why")


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What one evaluation is to be.

    Raises:
        ConfigurationError: something in it cannot be right; the message names it.
    """

    data: Any
    metrics: Sequence[Metric]
    settings: Settings
    """Of the engine."""
    budget: Budget | None = None
    columns: ColumnChoices = field(default_factory=ColumnChoices)
    of_file: Mapping[str, Any] = field(default_factory=dict)
    """How the data are read, if they are a file."""
    output: Path | None = None
    resume: bool = False
    on_error: OnError = "skip"
    limit: int | None = None
    emitters: Sequence[Emitter] = ()
    """Where scores go besides."""
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
    if plan.output is not None:
        format_of(plan.output)  # an ending that stands for nothing is better known before anything is scored
    with contextlib.closing(table_of(plan.data, **plan.of_file)) as table:
        dimensions = Dimensions(plan.settings.dimensions)
        reader = RecordReader(plan.columns, table, with_spans=plan.with_spans, dimensions=dimensions.names)
        journal = _open_journal(plan, table, reader)
        progress = RunProgress(
            [metric.name for metric in plan.metrics], lambda done: _share(table, plan.limit, done), dimensions
        )
        is_complete = False
        try:
            plan.on_begin(reader)
            entries = (
                entry if isinstance(entry, BadRow) else reader.read(entry)
                for entry in islice(table.entries, plan.limit)
            )
            _run_in_loop(_evaluate(plan, entries, journal, progress), plan.stop)
            is_complete = True
        except asyncio.CancelledError:  # by `plan.stop`
            pass
        except BaseException as error:
            if not (plan.ends_on_ctrl_c and isinstance(error, KeyboardInterrupt)):
                journal.remove(if_empty=True)
                raise
    stream = _finish(plan.output, journal, is_complete=is_complete)
    is_file = isinstance(plan.data, (str, os.PathLike)) and os.fspath(plan.data) != STANDARD_INPUT
    source = Path(plan.data).name if is_file else None
    return progress.evaluation(stream=stream, is_complete=is_complete, source=source, columns=reader.told)


def _run_in_loop(work: Coroutine[Any, Any, None], stop: threading.Event) -> None:
    """Run it to its end, or until somebody wants an end: then it is cancelled.

    Other than with `asyncio.run`, Ctrl-C interrupts at once, also where the table is read, which may block.
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
        finally:
            if not task.done():
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    loop.run_until_complete(task)
            _ = task.cancelled() or task.exception()  # which has been raised already


async def _evaluate(plan: Plan, entries: Iterator[_Entry], journal: Journal, progress: RunProgress) -> None:
    """Evaluate what is not done yet."""
    for noted in journal.done() if journal.rows else ():
        progress.resumed += 1
        progress.add(_again(noted, next(entries, None), journal))
        plan.on_row(progress)
        await asyncio.sleep(0)  # somebody may want an end

    def note(done: _Done) -> None:
        if isinstance(done, BadRow) and plan.on_error == "stop":
            raise TableError(f"stopped at a bad row, as --on-error stop asks: {done}")
        journal.add(done)
        progress.add(done)
        plan.on_row(progress)

    with _engine(plan) as engine:
        await _score(plan, engine, entries, note)


# Scoring --------------------------------------------------------------------------------------------------------------


async def _score(plan: Plan, engine: ScoringEngine, entries: Iterator[_Entry], note: Callable[[_Done], None]) -> None:
    """Score the entries, and note each one's end in their order."""
    max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * plan.settings.concurrency)
    waiting: deque[tuple[_Entry, asyncio.Future[ScoredRecord | Dropped], int]] = deque()
    held = 0

    async def end_first() -> None:
        nonlocal held
        entry, result, size = waiting[0]
        note(_end_of(plan, entry, await result))
        waiting.popleft()
        held -= size

    try:
        for entry in entries:
            size = entry.record.size_hint if isinstance(entry, RecordRow) else 0
            while waiting and (len(waiting) >= max_rows or held + size > _MAX_BYTES):
                await end_first()
            waiting.append((entry, _result_of(engine, entry), size))
            held += size
            await asyncio.sleep(0)  # which begins it
            while waiting and waiting[0][1].done():
                await end_first()
        while waiting:
            await end_first()
    finally:
        for _, result, _ in waiting:
            result.cancel()
        await asyncio.gather(*(result for _, result, _ in waiting), return_exceptions=True)


def _result_of(engine: ScoringEngine, entry: _Entry) -> asyncio.Future[ScoredRecord | Dropped]:
    if isinstance(entry, RecordRow):
        return asyncio.ensure_future(engine.score(RedactedRecord(entry.record)))  # which the reader has redacted
    nothing: asyncio.Future[ScoredRecord | Dropped] = asyncio.get_running_loop().create_future()
    nothing.set_result(Dropped(reason="nothing_to_score"))
    return nothing


def _end_of(plan: Plan, entry: _Entry, result: ScoredRecord | Dropped) -> _Done:
    if isinstance(entry, BadRow):
        return entry
    outcomes = {} if isinstance(result, Dropped) else result.outcomes
    whole = {metric.name: outcomes.get(metric.name, _LOST) for metric in plan.metrics}
    return EvaluatedRow(row=entry.row, record=entry.record, outcomes=whole)


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
        log.addFilter(_nothing)  # whoever stops a run knows that records are abandoned
        engine.shutdown(0)
        log.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False


# The journal ----------------------------------------------------------------------------------------------------------


def _open_journal(plan: Plan, table: Table, reader: RecordReader) -> Journal:
    about = {
        "metrics": [described(metric) for metric in plan.metrics],
        "columns": dict(reader.columns),
        "limit": plan.limit,
        "input": dict(table.identity),
    }
    path = journal_of(plan.output) if plan.output is not None else None
    if path is not None and plan.output is not None and plan.resume and plan.output.exists() and not path.exists():
        raise TableError(
            f"there is nothing to resume: {plan.output} is finished, and {path} is gone; to evaluate anew leave out --resume"
            " (resume=True)"
        )
    return Journal(path, about, resume=plan.resume)


def described(metric: Metric) -> dict[str, Any]:
    """What tells a metric from another, or from itself with other settings, in plain data; no key and no address."""
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


def _again(noted: JournalRow | BadRow, entry: _Entry | None, journal: Journal) -> _Done:
    """A row that an earlier run did, with the texts that its journal does not have."""
    if entry is None:
        raise TableError(f"the table ends before row {noted.row}, which {journal.path} has: it is another one")
    if isinstance(noted, BadRow):
        if noted == entry:
            return noted
    elif isinstance(entry, RecordRow) and noted.row == entry.row:
        done = noted.of(entry.record)
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
    """Make the journal the result file, if the run is complete; returns where the results are to be read."""
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
