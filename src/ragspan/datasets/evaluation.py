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

from ragspan.config import settings_with
from ragspan.datasets.columns import ColumnChoice, ColumnChoices
from ragspan.datasets.columns import answer_column as one_answer_column
from ragspan.datasets.metrics import metrics_for
from ragspan.datasets.plan import Plan, carry_out
from ragspan.datasets.results import Evaluation
from ragspan.datasets.run import OnError
from ragspan.defaults import budget_from
from ragspan.engine import Budget
from ragspan.judges.base import Judge
from ragspan.metrics.base import Metric
from ragspan.telemetry.base import Emitter

_P = ParamSpec("_P")
_T = TypeVar("_T")


def _never() -> bool:
    return False


_should_stop: ContextVar[Callable[[], bool]] = ContextVar("ragspan_should_stop", default=_never)


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
    with contextlib.ExitStack() as stack:
        seen: dict[str, Any] = {}
        if progress:
            from ragspan.datasets.progress import progress_on_stderr

            seen["on_row"] = stack.enter_context(progress_on_stderr())
        return carry_out(
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
                should_stop=_should_stop.get(),
                **seen,
            )
        )


def _in_thread(function: Callable[_P, _T]) -> Callable[_P, Coroutine[Any, Any, _T]]:
    """The same as a coroutine, which leaves the event loop free. Cancelled, it ends when the rows in work are let go of."""

    @functools.wraps(function)
    async def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        stop = threading.Event()
        token = _should_stop.set(stop.is_set)
        try:
            work = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
        finally:
            _should_stop.reset(token)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait([work])
            work.cancelled() or work.exception()  # it is nobody's any more
            raise

    return run


aevaluate = _in_thread(evaluate)
