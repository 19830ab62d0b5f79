"""What is to be evaluated and how, and the carrying out of it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ragspan.config import Settings, is_enabled
from ragspan.datasets.columns import ColumnChoices
from ragspan.datasets.in_order import Collector, InOrder
from ragspan.datasets.journal import ENDING, Journal
from ragspan.datasets.metrics import described
from ragspan.datasets.records import RecordReader
from ragspan.datasets.result_formats import ResultFormat, format_of, read_results, write_results
from ragspan.datasets.results import Evaluation
from ragspan.datasets.run import OnError, Run, Standing, results_of
from ragspan.datasets.tables import Table, table_of
from ragspan.datasets.tables.base import Entry
from ragspan.datasets.tables.files import STANDARD_INPUT
from ragspan.engine import Budget, ScoringEngine
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.metrics.base import Metric
from ragspan.telemetry.base import Emitter

_ROWS_PER_PLACE = 4  # records on their way for each that is in work: a slow one holds back those that came after it
_LEAST_ROWS = 64
_MAX_BYTES = 64 * 1024 * 1024  # of text on its way
_NO_BOUND = 2**62  # the engine's queue never holds more than what is let on its way
_FLUSH_TIMEOUT = 30.0  # seconds for further emitters to send what they hold


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """All that one evaluation is to be.

    Raises:
        ConfigurationError: something of it cannot be right; the message names it.
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
    on_begin: Callable[[RecordReader], None] = lambda _: None
    on_row: Callable[[Standing], None] = lambda _: None
    should_stop: Callable[[], bool] = lambda: False
    reading: Callable[[Iterator[Entry]], Iterator[Entry]] = lambda entries: entries

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

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(metric.name for metric in self.metrics)


def carry_out(plan: Plan) -> Evaluation:
    """Evaluate the table.

    Raises:
        TableError: the table cannot be read, or a column is missing, or the output cannot be written.
        ConfigurationError: a setting is wrong.
    """
    chosen = format_of(plan.output) if plan.output is not None else None
    table = table_of(plan.data, **plan.of_file)
    try:
        reader = RecordReader(plan.columns, table, with_spans=plan.with_spans)
        journal = _journal(plan, table, reader.columns)
        try:
            standing = Standing(plan.names, share_done=partial(_share_done, table, plan.limit))
            plan.on_begin(reader)
            _score(plan, table, reader, journal, standing)
        except BaseException:
            journal.close()
            journal.remove_if_empty()
            raise
    finally:
        table.close()
    is_complete = not plan.should_stop()
    stream = _finish(plan.output, chosen, journal, is_complete=is_complete)
    is_file = isinstance(plan.data, (str, os.PathLike)) and os.fspath(plan.data) != STANDARD_INPUT
    source = Path(plan.data).name if is_file else None
    return standing.evaluation(stream, is_complete=is_complete, source=source, columns=reader.told)


def journal_of(output: Path) -> Path:
    """Where an evaluation with this output keeps what is done."""
    return output.with_name(output.name + ENDING)


def _journal(plan: Plan, table: Table, columns: Mapping[str, str]) -> Journal:
    about = {
        "metrics": [described(metric) for metric in plan.metrics],
        "columns": dict(columns),
        "limit": plan.limit,
        "input": dict(table.identity),
    }
    if plan.output is None:
        return Journal.temporary(about)
    path = journal_of(plan.output)
    if not plan.resume:
        return Journal.begin(path, about)
    if path.exists():
        return Journal.resume(path, about)
    if plan.output.exists():
        raise TableError(
            f"there is nothing to resume: {plan.output} is finished, and {path} is gone; to evaluate anew leave out --resume"
            " (resume=True)"
        )
    return Journal.begin(path, about)


def _score(plan: Plan, table: Table, reader: RecordReader, journal: Journal, standing: Standing) -> None:
    collector = Collector()
    max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * plan.settings.concurrency)
    engine = ScoringEngine(
        metrics=plan.metrics,
        emitters=[collector, *plan.emitters],
        queue_size=max_rows,
        queue_bytes=_NO_BOUND,
        concurrency=plan.settings.concurrency,
        score_unsampled=True,
        budget=plan.budget,
        metric_timeout=plan.settings.metric_timeout,
        exit_timeout=0,
        judging=plan.settings.judging,
        name="ragspan-evaluate",
    )
    in_order = InOrder(
        engine,
        collector,
        metrics=plan.names,
        max_rows=max_rows,
        max_bytes=_MAX_BYTES,
        should_stop=plan.should_stop,
    )
    run = Run(plan=plan, table=table, reader=reader, journal=journal, standing=standing, score_all=in_order.score)
    try:
        run.execute()
    finally:
        for emitter in plan.emitters:
            emitter.flush(_FLUSH_TIMEOUT)
        log = logging.getLogger("ragspan")
        log.addFilter(_nothing)  # whoever stops a run knows that records are abandoned
        engine.shutdown(0)
        log.removeFilter(_nothing)


def _nothing(_: logging.LogRecord) -> bool:
    return False


def _share_done(table: Table, limit: int | None, done: int) -> float | None:
    """Of the rows where their number is known, else of the file's bytes."""
    counts = [count for count in (table.count, limit) if count is not None]
    if table.count is not None:
        return min(1.0, done / min(counts)) if min(counts) else 1.0
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
        return partial(results_of, journal)
    unfinished = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        unfinished.touch(mode=0o600)  # as the journal
        write_results(unfinished, chosen, results_of(journal))
        unfinished.replace(output)
    except OSError as error:
        raise TableError(
            f"{output} cannot be written: {error.strerror or error}; all results are in {journal.path}"
        ) from None
    finally:
        unfinished.unlink(missing_ok=True)
    journal.remove()
    return partial(read_results, output, chosen)
