"""`evaluate`: a table in, scores out; and what the mean of a metric should be at least, for gates and tests."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import textwrap
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ragspan.arguments import SHARE, wrong
from ragspan.config import METRIC_NAMES, Settings, settings_with
from ragspan.datasets.columns import ColumnChoice, ColumnChoices, answer_column
from ragspan.datasets.results import Evaluation, MetricSummary
from ragspan.datasets.run import OnError, Plan, run
from ragspan.datasets.terminal import progress_on_stderr
from ragspan.defaults import budget_from
from ragspan.engine import Budget
from ragspan.exceptions import TableError
from ragspan.judges.base import Judge
from ragspan.metrics.base import Metric
from ragspan.metrics.named import metrics_from, require_known
from ragspan.outcomes import Score
from ragspan.telemetry.base import Emitter

_P = ParamSpec("_P")
_T = TypeVar("_T")
_ROWS_SHOWN = 3
_TEXT_SHOWN = 300  # characters
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
    options = locals()
    with progress_on_stderr() if progress else contextlib.nullcontext(lambda _: None) as on_row:
        plan = plan_from(options, emitters=emitters, stop=_stop.get() or threading.Event(), on_row=on_row)
        return run(plan if budget is None else replace(plan, budget=budget))


def plan_from(options: Mapping[str, Any], **more: Any) -> Plan:
    """The plan of an evaluation.

    Args:
        options: of `evaluate` and of the command, which have the same names.
        more: fields of the plan that these do not set.

    Raises:
        ConfigurationError: one of them is wrong.
    """
    settings = settings_with(options["judge"], concurrency=options["concurrency"])
    columns = {part: options.get(f"{part}_column") for part in ColumnChoices.__slots__}
    columns["answer"] = answer_column(columns["answer"], options["ground_truth_column"])
    return Plan(
        metrics=metrics_for(options["metrics"], settings, options["judge"]),
        settings=settings,
        budget=budget_from(settings),
        columns=ColumnChoices(**columns),
        of_file={name: options[name] for name in ("file_format", "delimiter", "encoding")},
        output=None if options["output"] is None else Path(options["output"]),
        **{name: options[name] for name in ("data", "resume", "on_error", "limit")},
        **more,
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


# Minimums ------------------------------------------------------------------------------------------------------------


def parse_minimums(texts: Iterable[str]) -> dict[str, float]:
    """The minimum by metric, from texts such as `faithfulness=0.8`.

    Raises:
        ConfigurationError: a text is none of these.
    """
    minimums = {}
    for text in texts:
        metric, _, value = map(str.strip, text.partition("="))
        try:
            minimums[metric] = float(value if metric else "")
        except ValueError:
            raise wrong("--fail-under", text, "a metric and a mean, such as faithfulness=0.8") from None
    return minimums


def require_minimums(minimums: Mapping[str, float], metrics: Sequence[str] = METRIC_NAMES) -> None:
    """Raise unless each is about one of these metrics, and can be reached.

    Raises:
        ConfigurationError: one is not.
    """
    for metric, minimum in minimums.items():
        require_known(metric, metrics)
        SHARE.check(f"the minimum of {metric}", minimum)


def shortfalls(evaluation: Evaluation, minimums: Mapping[str, float], *, allow_skipped: bool = True) -> dict[str, str]:
    """By metric, what is wrong with those whose mean is below its minimum. Nothing scored counts as below.

    Args:
        evaluation: with a summary of each of the metrics.
        minimums: by metric.
        allow_skipped: let a mean count though rows that should be in it were skipped.
    """
    found = {}
    for metric, minimum in minimums.items():
        summary = evaluation.summary[metric]
        skipped = 0 if allow_skipped else summary.skipped + evaluation.bad_row_count
        if (words := _shortfall(summary, minimum, skipped)) is not None:
            found[metric] = words
    return found


def _shortfall(summary: MetricSummary, minimum: float, skipped: int) -> str | None:
    wanted = f"{summary.metric} should have a mean of at least {minimum:g}"
    if summary.mean is None:
        return f"{wanted}, but nothing was scored: {summary.reasons or 'there are no rows'}"
    if summary.mean < minimum:
        return f"{wanted}, but has {summary.mean:.4g} over {summary.scored} scored rows"
    if skipped:
        return (
            f"{summary.metric} has a mean of {summary.mean:.4g} over {summary.scored:,} scored rows, but {skipped:,} more"
            " had to be skipped: complete them, or accept this with --allow-skipped"
        )
    return None


def require_scores(records: Any, minimums: Mapping[str, float], judge: Judge | str | None) -> None:
    """Raise unless the mean of each metric reaches its minimum. See `ragspan.testing.assert_scores`."""
    if not minimums:
        raise TypeError("assert_scores needs a metric and the mean it should have, such as faithfulness=0.8")
    require_minimums(minimums)
    evaluation = evaluate(records, list(minimums), judge=judge)
    if evaluation.bad_row_count:
        raise TableError(
            f"{evaluation.bad_row_count} records cannot be evaluated; the first is {evaluation.bad_rows[0]}"
        )
    below = shortfalls(evaluation, minimums)
    if below:
        raise AssertionError("\n".join(_account(evaluation, below)))


def _account(evaluation: Evaluation, below: Mapping[str, str]) -> Iterator[str]:
    for metric, words in below.items():
        yield words
        for evaluated in evaluation.worst_by(metric)[:_ROWS_SHOWN]:
            score, record = evaluated.outcomes[metric], evaluated.record
            if isinstance(score, Score):
                yield f"  row {evaluated.row} ({record.record_id}): {score.value:.3f}"
                shown = {"question": record.question, "response": record.response, "why": score.explanation}
                for name, text in shown.items():
                    if text:
                        yield f"    {name}: {textwrap.shorten(text, _TEXT_SHOWN, placeholder=' ...')}"
