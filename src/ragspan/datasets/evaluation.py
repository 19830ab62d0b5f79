"""`evaluate`: a table in, scores out. One run from its first row to its last: read, score, note, count.

Guarantees:
- Each row ends exactly once, in the order of the table: with an outcome for each metric, or as a bad row. At most
  `_ROWS_PER_PLACE` records for each that is judged are in work.
- Each row with a record is in the journal before it is counted. The result file is made from the journal and replaces an
  earlier one in one step, so the process may be killed at any moment.
- Memory does not grow with the table, except for eight bytes a score.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeAlias

from ragspan.arguments import WHOLE, choice
from ragspan.config import Settings, is_enabled, settings_with
from ragspan.datasets.columns import ColumnChoice, ColumnChoices, column_choices
from ragspan.datasets.files import STANDARD_INPUT
from ragspan.datasets.journal import Journal, described, journal_of
from ragspan.datasets.progress import RunProgress, progress_on_stderr
from ragspan.datasets.records import RecordReader
from ragspan.datasets.result_file import ResultFile, format_of, replacing, write_results
from ragspan.datasets.results import BadRow, EvaluatedRow, Evaluation, ResultRow
from ragspan.datasets.tables import table_of
from ragspan.defaults import budget_from
from ragspan.engine import Budget, Dropped, ScoringEngine
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.judges.catalogue import JudgeChoice
from ragspan.metrics.base import Metric
from ragspan.metrics.catalogue import metrics_from
from ragspan.outcomes import MetricFailure
from ragspan.redaction import RedactedRecord
from ragspan.telemetry.base import Emitter
from ragspan.telemetry.content import Dimensions

OnError: TypeAlias = Literal["skip", "stop"]
_P = ParamSpec("_P")
_Row: TypeAlias = "EvaluatedRow | BadRow"
"""A row that has no outcomes yet, or has them all."""

_ROWS_PER_PLACE = 4  # a slow record holds back those that came after it
_LEAST_ROWS = 64
_LOOK_AGAIN = 0.5  # seconds between two looks at `Plan.stop`
_FLUSH_TIMEOUT = 30.0  # seconds for further emitters to send what they hold
_LOST = MetricFailure(error_type="worker_error", message="the engine lost the record: its log says why")


def evaluate(
    data: Any,
    metrics: str | Iterable[str | Metric] | None = None,
    *,
    judge: JudgeChoice | None = None,
    question_column: ColumnChoice | None = None,
    contexts_column: ColumnChoice | None = None,
    answer_column: ColumnChoice | None = None,
    ground_truth_column: ColumnChoice | None = None,
    label_column: ColumnChoice | None = None,
    id_column: ColumnChoice | None = None,
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    on_error: OnError = "skip",
    limit: int | None = None,
    concurrency: int | None = None,
    budget: Budget | None = None,
    emitters: Sequence[Emitter] = (),
    progress: bool = False,
    file_format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Evaluation:
    """Score every row of a table. Rows stream: neither the table nor the results have to fit into memory.

    Args:
        data: a path to a CSV, JSONL or Parquet file; a frame of pandas or polars; a data set of Hugging Face; an Arrow
            table; or an iterable of dictionaries or of `RagRecord`s.
        metrics: names (in a list, or separated by commas) and metrics; by default those of `RAGSPAN_METRICS`.
        judge: of the metrics that are given by name: a judge, a name such as `"openai:gpt-4o-mini"`, or a list of several
            for a jury; by default that of `RAGSPAN_JUDGE`.
        question_column: a column's name, a path into a column of dictionaries such as `"prediction.contexts"`, or a
            function of the row. By default the names of Ragas, DeepEval, TruLens, LangSmith and `RagRecord` are known.
        contexts_column: as above; a list, the JSON text of a list, or a single text.
        answer_column: as above.
        ground_truth_column: another name for `answer_column`: the response that is scored.
        label_column: what people say of some responses, such as `yes` or `no`; `Evaluation.labels` has it.
        id_column: by default `id`, `record_id` or `example_id`; else rows are named by their number.
        output: the file to write results to, as CSV, JSONL or Parquet by its ending. Until all rows are done, the finished
            ones are in a journal beside it.
        resume: continue an earlier run with the same output.
        on_error: `"skip"` reports a row that cannot be read, `"stop"` ends the run with a `TableError`.
        limit: rows to evaluate, at least 1; None is all.
        concurrency: records that are scored at the same time; by default `RAGSPAN_CONCURRENCY`.
        budget: what judging may cost; by default that of `RAGSPAN_BUDGET_*`.
        emitters: where scores also go.
        progress: show on stderr how much is done.
        file_format: of a file, `csv`, `jsonl` or `parquet`; by default that of its ending.
        delimiter: of a CSV file; by default the most frequent one of its header.
        encoding: of a text file.

    Raises:
        TableError: the table cannot be read, a column is missing, or a file cannot be written.
        ConfigurationError: an argument or a variable is wrong; the message names it.
    """
    return _evaluated(locals(), threading.Event())


def _evaluated(options: Mapping[str, Any], stop: threading.Event) -> Evaluation:
    with progress_on_stderr() if options["progress"] else contextlib.nullcontext(lambda _: None) as on_row:
        return run(plan_from(options, emitters=options["emitters"], stop=stop, on_row=on_row))


def _as_coroutine(function: Callable[_P, Evaluation]) -> Callable[_P, Coroutine[Any, Any, Evaluation]]:
    """`evaluate` in a thread, which leaves the event loop free. If it is cancelled, it waits until the run has stopped."""

    @functools.wraps(function)
    async def evaluated(*args: _P.args, **kwargs: _P.kwargs) -> Evaluation:
        call = inspect.signature(function).bind(*args, **kwargs)
        call.apply_defaults()
        stop = threading.Event()
        work = asyncio.ensure_future(asyncio.to_thread(_evaluated, call.arguments, stop))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([work])
            work.cancelled() or work.exception()  # nobody else reads it
            raise

    return evaluated


aevaluate = _as_coroutine(evaluate)


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
        if self.output is not None:
            format_of(self.output)  # an ending without a format should be known before anything is scored
        elif self.resume:
            raise ConfigurationError("there is nothing to resume without the output file of the earlier run")


def plan_from(options: Mapping[str, Any], **more: Any) -> Plan:
    """The plan of an evaluation, from the options of `evaluate` or of the command, which have the same names.

    Raises:
        ConfigurationError: one of them is wrong.
    """
    judge, chosen, output = options["judge"], options["metrics"], options["output"]
    settings = settings_with(judge=judge, concurrency=options["concurrency"])
    if isinstance(chosen, str):
        chosen = [name.strip() for name in chosen.split(",") if name.strip()]
    return Plan(
        metrics=metrics_from(settings, chosen, judge=judge),
        settings=settings,
        budget=options.get("budget") or budget_from(settings),
        columns=column_choices(options),
        of_file={name: options[name] for name in ("file_format", "delimiter", "encoding")},
        output=None if output is None else Path(output),
        **{name: options[name] for name in ("data", "resume", "on_error", "limit")},
        **more,
    )


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
    with contextlib.closing(table_of(plan.data, **plan.of_file)) as table:
        dimensions = Dimensions(plan.settings.dimensions)
        reader = RecordReader(plan.columns, table, with_spans=plan.with_spans, dimensions=dimensions.names)
        names = [metric.name for metric in plan.metrics]
        progress = RunProgress(names, lambda done: table.share_done(done, plan.limit), dimensions)
        journal = _open_journal(plan, reader)
        is_complete = False
        try:
            plan.on_begin(reader)
            rows = (row if isinstance(row, BadRow) else reader.read(row) for row in islice(table.entries, plan.limit))
            is_complete = _run_in_loop(_evaluate(plan, rows, journal, progress), plan.stop)
        except KeyboardInterrupt:
            if not plan.ends_on_ctrl_c:
                raise
        finally:
            journal.close()
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
    for row in journal.resume(rows):
        progress.add(row)
        progress.resumed += 1
        plan.on_row(progress)
        await asyncio.sleep(0)  # lets `stop` be looked at

    def note(done: _Row) -> None:
        if isinstance(done, EvaluatedRow):
            journal.add(done)
        elif plan.on_error == "stop":
            raise TableError(f"stopped at a bad row, as --on-error stop asks: {done}")
        progress.add(done)
        plan.on_row(progress)

    with _engine(plan) as engine:
        await _score(plan, engine, rows, note)


# Scoring --------------------------------------------------------------------------------------------------------------


async def _score(plan: Plan, engine: ScoringEngine, rows: Iterator[_Row], note: Callable[[_Row], None]) -> None:
    """Score the rows, and note each one's end in their order."""
    max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * plan.settings.concurrency)
    waiting: deque[asyncio.Task[_Row]] = deque()

    async def scored(row: _Row) -> _Row:
        if isinstance(row, BadRow):
            return row
        result = await engine.score(RedactedRecord(row.record))  # the reader has redacted it
        outcomes = {} if isinstance(result, Dropped) else result.outcomes
        return replace(row, outcomes={metric.name: outcomes.get(metric.name, _LOST) for metric in plan.metrics})

    async def end_first() -> None:
        note(await waiting[0])
        waiting.popleft()

    try:
        for row in rows:
            waiting.append(asyncio.create_task(scored(row)))
            await asyncio.sleep(0)  # which begins it
            while waiting and (len(waiting) >= max_rows or waiting[0].done()):
                await end_first()
        while waiting:
            await end_first()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


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
        before, log.disabled = log.disabled, True  # who stops a run knows that records are abandoned
        engine.shutdown(0)
        log.disabled = before


def _open_journal(plan: Plan, reader: RecordReader) -> Journal:
    metrics = [described(metric) for metric in plan.metrics]
    about = {"metrics": metrics, "columns": reader.columns, "limit": plan.limit}
    path = None if plan.output is None else journal_of(plan.output)
    if plan.resume and plan.output is not None and plan.output.exists() and path is not None and not path.exists():
        raise TableError(f"there is nothing to resume: {plan.output} is finished; to evaluate anew leave out --resume")
    return Journal(path, about, resume=plan.resume)


def _finish(output: Path | None, journal: Journal, *, is_complete: bool) -> Callable[[], Iterator[ResultRow]]:
    """Make the result file of the journal, if the run is complete; returns a function that reads the results."""
    if output is None or not is_complete:
        return journal.results
    try:
        with replacing(output) as unfinished:
            write_results(unfinished, format_of(output), journal.results())
    except OSError as error:
        raise TableError(
            f"{output} cannot be written: {error.strerror or error}; all results are in {journal.path}"
        ) from None
    journal.path.unlink(missing_ok=True)  # there is none where no row could be read
    return ResultFile(output).results
