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
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ragspan.config import Settings, is_enabled
from ragspan.datasets.columns import ColumnChoices
from ragspan.datasets.journal import Journal, JournalRow, journal_of
from ragspan.datasets.records import RecordReader, RecordRow, digest_of
from ragspan.datasets.result_file import ResultFormat, format_of, read_results, replacing, write_results
from ragspan.datasets.results import BadRow, EvaluatedRow, Evaluation
from ragspan.datasets.summary import RunProgress
from ragspan.datasets.tables import STANDARD_INPUT, Table, table_of
from ragspan.engine import Budget, Dropped, ScoringEngine
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.metrics.base import Metric
from ragspan.outcomes import MetricFailure, ScoredRecord
from ragspan.redaction import RedactedRecord
from ragspan.telemetry.base import Emitter

OnError: TypeAlias = Literal["skip", "stop"]
_Entry: TypeAlias = "RecordRow | BadRow"
_Done: TypeAlias = "EvaluatedRow | BadRow"
_Result: TypeAlias = "Future[ScoredRecord | Dropped]"

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
    should_stop: Callable[[], bool] = lambda: False
    """Called twice a second at least; once it is true the evaluation ends with what is done."""
    on_begin: Callable[[RecordReader], None] = lambda _: None
    on_row: Callable[[RunProgress], None] = lambda _: None

    def __post_init__(self) -> None:
        if not is_enabled():
            raise ConfigurationError("RAGSPAN_ENABLED is false, so nothing would be scored")
        if not self.metrics:
            raise ConfigurationError("metrics is empty: name one at least")
        if self.limit is not None and self.limit < 1:
            raise ConfigurationError(f"limit is {self.limit!r}, but should be a whole number, at least 1")
        if self.on_error not in {"skip", "stop"}:
            raise ConfigurationError(f"on_error is {self.on_error!r}, but should be 'skip' or 'stop'")
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
    chosen = format_of(plan.output) if plan.output is not None else None
    table = table_of(plan.data, **plan.of_file)
    is_complete = False
    try:
        reader = RecordReader(plan.columns, table, with_spans=plan.with_spans)
        journal = _open_journal(plan, table, reader)
        names = tuple(metric.name for metric in plan.metrics)
        progress = RunProgress(names, share_done=partial(_share_done, table, plan.limit))
        try:
            plan.on_begin(reader)
            _evaluate_rows(plan, table, reader, journal, progress)
            is_complete = not plan.should_stop()
        except BaseException as error:
            journal.close()
            if not (plan.ends_on_ctrl_c and isinstance(error, KeyboardInterrupt)):
                journal.remove_if_empty()
                raise
    finally:
        table.close()
    stream = _finish(plan.output, chosen, journal, is_complete=is_complete)
    is_file = isinstance(plan.data, (str, os.PathLike)) and os.fspath(plan.data) != STANDARD_INPUT
    source = Path(plan.data).name if is_file else None
    return progress.evaluation(stream, is_complete=is_complete, source=source, columns=reader.told)


def _evaluate_rows(plan: Plan, table: Table, reader: RecordReader, journal: Journal, progress: RunProgress) -> None:
    """Evaluate what is not done yet."""
    entries = (
        entry if isinstance(entry, BadRow) else reader.read(entry) for entry in islice(table.entries, plan.limit)
    )

    def count(done: _Done) -> None:
        progress.add(done)
        plan.on_row(progress)

    for done in _replayed(plan, journal, entries):
        progress.resumed += 1
        count(done)
    if plan.should_stop():  # what was not compared with the journal is not scored after its rows
        return
    with contextlib.closing(_scored(plan, entries)) as rows:
        for done in rows:
            if isinstance(done, BadRow) and plan.on_error == "stop":
                raise TableError(f"stopped at a bad row, as --on-error stop asks: {done}")
            journal.add(done)
            count(done)


# Scoring --------------------------------------------------------------------------------------------------------------


def _scored(plan: Plan, entries: Iterator[_Entry]) -> Generator[_Done, None, None]:
    """Each entry's end, in their order."""
    max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * plan.settings.concurrency)
    waiting: deque[tuple[_Entry, _Result | None, int]] = deque()
    with _engine(plan) as engine, _event_loop() as loop:
        for entry in entries:
            size = entry.record.size_hint if isinstance(entry, RecordRow) else 0
            while len(waiting) >= max_rows or (waiting and size + sum(held for *_, held in waiting) > _MAX_BYTES):
                if not _has_ended(waiting[0][1], plan.should_stop):
                    return
                yield _end_of(plan, *waiting.popleft())
            result = None
            if isinstance(entry, RecordRow):  # which the reader has redacted
                result = asyncio.run_coroutine_threadsafe(engine.score(RedactedRecord(entry.record)), loop)
            waiting.append((entry, result, size))
            while waiting and ((head := waiting[0][1]) is None or head.done()):
                if plan.should_stop():
                    return
                yield _end_of(plan, *waiting.popleft())
            if plan.should_stop():
                return
        while waiting and _has_ended(waiting[0][1], plan.should_stop):
            yield _end_of(plan, *waiting.popleft())


def _has_ended(result: _Result | None, should_stop: Callable[[], bool]) -> bool:
    """Wait for it; False where somebody wants an end."""
    while not should_stop():
        with contextlib.suppress(FutureTimeoutError):
            if result is not None:
                result.exception(_LOOK_AGAIN)
            return True
    return False


def _end_of(plan: Plan, entry: _Entry, result: _Result | None, _size: int) -> _Done:
    if isinstance(entry, BadRow):
        return entry
    scored = result.result() if result else Dropped(reason="nothing_to_score")
    outcomes = {} if isinstance(scored, Dropped) else scored.outcomes
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


@contextlib.contextmanager
def _event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in a thread of its own, because the caller's thread blocks. At the end its tasks are cancelled."""
    begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run_until_end() -> None:
        end = asyncio.Event()
        begun.set_result((asyncio.get_running_loop(), end))
        await end.wait()

    thread = threading.Thread(target=asyncio.run, args=(run_until_end(),), name="ragspan-evaluate", daemon=True)
    thread.start()
    loop, end = begun.result()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join()


# The journal ----------------------------------------------------------------------------------------------------------


def _open_journal(plan: Plan, table: Table, reader: RecordReader) -> Journal:
    about = {
        "metrics": [described(metric) for metric in plan.metrics],
        "columns": dict(reader.columns),
        "limit": plan.limit,
        "input": dict(table.identity),
    }
    if plan.output is None:
        return Journal.temporary(about)
    path = journal_of(plan.output)
    if plan.resume and path.exists():
        return Journal.resume(path, about)
    if plan.resume and plan.output.exists():
        raise TableError(
            f"there is nothing to resume: {plan.output} is finished, and {path} is gone; to evaluate anew leave out --resume"
            " (resume=True)"
        )
    return Journal.begin(path, about)


def described(metric: Metric) -> dict[str, Any]:
    """What tells a metric from another, or from itself with other settings, in plain data; no key and no address."""
    about: dict[str, Any] = {"name": metric.name}
    data: Any = metric
    if is_dataclass(data):
        for item in fields(data):
            value = getattr(data, item.name)
            if isinstance(value, (str, int, float)) or value is None:
                about[item.name] = value
            elif isinstance(name := getattr(value, "name", None), str):
                version = getattr(value, "prompt_version", None)
                about[item.name] = f"{name}, prompts {version}" if isinstance(version, str) else name
    return about


def _replayed(plan: Plan, journal: Journal, entries: Iterator[_Entry]) -> Iterator[_Done]:
    """The rows that an earlier run did, with the texts that its journal does not have."""
    for noted in journal.done() if journal.rows else ():
        entry = next(entries, None)
        if plan.should_stop():
            return
        if entry is None:
            raise TableError(f"the table ends before row {noted.row}, which {journal.path} has: it is another one")
        if isinstance(noted, BadRow) and noted == entry:
            yield noted
        elif isinstance(noted, JournalRow) and isinstance(entry, RecordRow) and _is_same(noted, entry):
            record = replace(entry.record, record_id=noted.record_id)
            yield EvaluatedRow(row=noted.row, record=record, outcomes=noted.outcomes)
        else:
            raise TableError(
                f"row {noted.row} is not what it was when {journal.path} was written, so that run cannot be continued"
            )


def _is_same(noted: JournalRow, entry: RecordRow) -> bool:
    return noted.row == entry.row and noted.digest == digest_of(entry.record)


def _share_done(table: Table, limit: int | None, done: int) -> float | None:
    """Of the rows where their number is known, else of the file's bytes."""
    if table.count is not None:
        total = table.count if limit is None else min(table.count, limit)
        return min(1.0, done / total) if total else 1.0
    shares = [share for share in (table.share_read(), done / limit if limit else None) if share is not None]
    return min(1.0, max(shares)) if shares else None


def _finish(
    output: Path | None, chosen: ResultFormat | None, journal: Journal, *, is_complete: bool
) -> Callable[[], Any]:
    """Make the journal the result file, if the run is complete; returns where the results are to be read."""
    journal.close()
    if output is not None and not is_complete and journal.remove_if_empty():
        return lambda: iter(())
    if output is None or chosen is None or not is_complete:
        return journal.results
    try:
        with replacing(output) as unfinished:
            write_results(unfinished, chosen, journal.results())
    except OSError as error:
        raise TableError(
            f"{output} cannot be written: {error.strerror or error}; all results are in {journal.path}"
        ) from None
    journal.remove()
    return partial(read_results, output, chosen)
