"""`evaluate`: a table in, scores out."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ragspan.config import Settings, settings_with
from ragspan.datasets.columns import ColumnChoice, ColumnChoices
from ragspan.datasets.columns import answer_column as one_answer_column
from ragspan.datasets.results import Evaluation
from ragspan.datasets.run import OnError, Plan, run
from ragspan.defaults import budget_from
from ragspan.engine import Budget
from ragspan.judges.base import Judge
from ragspan.metrics.base import Metric
from ragspan.metrics.named import metrics_from
from ragspan.telemetry.base import Emitter

_P = ParamSpec("_P")
_T = TypeVar("_T")
_stop: ContextVar[threading.Event | None] = ContextVar("ragspan_stop", default=None)


def evaluate(
    data: Any,
    metrics: str | Iterable[str | Metric] | None = None,
    *,
    judge: Judge | str | None = None,
    question_column: ColumnChoice | None = None,
    contexts_column: ColumnChoice | None = None,
    answer_column: ColumnChoice | None = None,
    ground_truth_column: ColumnChoice | None = None,
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
        judge: of the metrics that are given by name: a judge, `"overlap"` or `"openai:<model>"`; by default that of
            `RAGSPAN_JUDGE`.
        question_column: a column's name, a path into a column of dictionaries such as `"prediction.contexts"`, or a
            function of the row. By default the names of Ragas, DeepEval, TruLens, LangSmith and `RagRecord` are known.
        contexts_column: as above; a list, the JSON text of a list, or a single text.
        answer_column: as above.
        ground_truth_column: another name for `answer_column`: the response that is scored.
        id_column: by default `id`, `record_id` or `example_id`; else rows are named by their number.
        output: the file to write results to, as CSV, JSONL or Parquet by its ending. What is done is kept beside it until
            all is.
        resume: go on with what an earlier run with the same output left undone.
        on_error: what a row that cannot be read does: it is skipped and reported, or stops the run with a `TableError`.
        limit: rows to evaluate, at least 1; None is all.
        concurrency: records that are scored at the same time; by default `RAGSPAN_CONCURRENCY`.
        budget: what judging may cost; by default that of `RAGSPAN_BUDGET_*`.
        emitters: where scores go besides.
        progress: show on stderr how far it is.
        file_format: of a file, `csv`, `jsonl` or `parquet`; by default its ending tells.
        delimiter: of a CSV file; by default its header tells.
        encoding: of a text file.

    Raises:
        TableError: the table cannot be read, a column is missing, or a file cannot be written.
        ConfigurationError: an argument or a variable is wrong; the message names it.
    """
    settings = settings_with(judge, concurrency=concurrency)
    stop = _stop.get() or threading.Event()
    with contextlib.ExitStack() as stack:
        seen: dict[str, Any] = {}
        if progress:
            from ragspan.datasets.terminal import progress_on_stderr

            seen["on_row"] = stack.enter_context(progress_on_stderr())
        return run(
            Plan(
                data=data,
                metrics=metrics_for(metrics, settings, judge),
                settings=settings,
                budget=budget_from(settings) if budget is None else budget,
                columns=ColumnChoices(
                    question=question_column,
                    contexts=contexts_column,
                    answer=one_answer_column(answer_column, ground_truth_column),
                    id=id_column,
                ),
                of_file={"file_format": file_format, "delimiter": delimiter, "encoding": encoding},
                output=None if output is None else Path(output),
                resume=resume,
                on_error=on_error,
                limit=limit,
                emitters=emitters,
                should_stop=stop.is_set,
                **seen,
            )
        )


def metrics_for(
    chosen: str | Iterable[str | Metric] | None, settings: Settings, judge: Judge | str | None = None
) -> list[Metric]:
    """The metrics of an evaluation.

    Args:
        chosen: names, separated by commas or in a list, and metrics; None is those of the settings.
        settings: with the judge of those that are given by name.
        judge: in place of the settings', if it is one and not a name.

    Raises:
        ConfigurationError: there is no such metric, or the judge cannot answer what it asks.
    """
    wanted = [name.strip() for name in chosen.split(",") if name.strip()] if isinstance(chosen, str) else chosen
    return metrics_from(settings, wanted, judge=None if isinstance(judge, str) else judge)


def _in_thread(function: Callable[_P, _T]) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """The same as a coroutine, which leaves the event loop free. Cancelled, it ends when the rows in work are given up."""

    @functools.wraps(function)
    async def run_in_thread(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        stop = threading.Event()
        token = _stop.set(stop)
        try:
            work = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
        finally:
            _stop.reset(token)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([work])
            work.cancelled() or work.exception()  # nobody else reads it
            raise

    return run_in_thread


aevaluate = _in_thread(evaluate)
