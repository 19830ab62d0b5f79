"""`evaluate`: a table in, scores out; and what the mean of a metric should be at least, for gates and tests."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import os
import textwrap
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec

from ragspan.arguments import SHARE, wrong
from ragspan.config import METRIC_NAMES, settings_with
from ragspan.datasets.columns import ColumnChoice, column_choices
from ragspan.datasets.progress import progress_on_stderr
from ragspan.datasets.results import Evaluation
from ragspan.datasets.run import OnError, Plan, run
from ragspan.defaults import budget_from
from ragspan.engine import Budget
from ragspan.exceptions import TableError
from ragspan.judges.base import Judge
from ragspan.metrics.base import Metric
from ragspan.metrics.named import metrics_from, require_known
from ragspan.outcomes import Score
from ragspan.telemetry.base import Emitter

_P = ParamSpec("_P")
_ROWS_SHOWN = 3
_TEXT_SHOWN = 300  # characters


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
        plan = plan_from(options, emitters=options["emitters"], stop=stop, on_row=on_row)
        return run(plan if options["budget"] is None else replace(plan, budget=options["budget"]))


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


def plan_from(options: Mapping[str, Any], **more: Any) -> Plan:
    """The plan of an evaluation, from the options of `evaluate` or of the command, which have the same names.

    Raises:
        ConfigurationError: one of them is wrong.
    """
    judge, chosen, output = options["judge"], options["metrics"], options["output"]
    settings = settings_with(judge, concurrency=options["concurrency"])
    if isinstance(chosen, str):
        chosen = [name.strip() for name in chosen.split(",") if name.strip()]
    return Plan(
        metrics=metrics_from(settings, chosen, judge=None if isinstance(judge, str) else judge),
        settings=settings,
        budget=budget_from(settings),
        columns=column_choices(options),
        of_file={name: options[name] for name in ("file_format", "delimiter", "encoding")},
        output=None if output is None else Path(output),
        **{name: options[name] for name in ("data", "resume", "on_error", "limit")},
        **more,
    )


# Minimums ------------------------------------------------------------------------------------------------------------


def parse_minimums(texts: Iterable[str]) -> dict[str, float]:
    """The minimum by metric, from texts such as `faithfulness=0.8`."""
    minimums = {}
    for text in texts:
        metric, _, value = map(str.strip, text.partition("="))
        try:
            minimums[metric] = float(value if metric else "")
        except ValueError:
            raise wrong("--fail-under", text, "a metric and a mean, such as faithfulness=0.8") from None
    return minimums


def require_minimums(minimums: Mapping[str, float], metrics: Sequence[str] = METRIC_NAMES) -> None:
    """Raise a `ConfigurationError` unless each is about one of these metrics, and from 0 to 1."""
    for metric, minimum in minimums.items():
        require_known(metric, metrics)
        SHARE.check(f"the minimum of {metric}", minimum)


def shortfalls(evaluation: Evaluation, minimums: Mapping[str, float], *, allow_skipped: bool = True) -> dict[str, str]:
    """By metric, what is wrong with those whose mean is below its minimum. Nothing scored counts as below.

    So do, unless `allow_skipped`, rows that were skipped and should be in the mean.
    """
    found = {}
    for metric, minimum in minimums.items():
        summary = evaluation.summary[metric]
        wanted = f"{metric} should have a mean of at least {minimum:g}"
        skipped = summary.skipped + evaluation.bad_row_count
        if summary.mean is None:
            found[metric] = f"{wanted}, but nothing was scored: {summary.reasons or 'there are no rows'}"
        elif summary.mean < minimum:
            found[metric] = f"{wanted}, but has {summary.mean:.4g} over {summary.scored} scored rows"
        elif skipped and not allow_skipped:
            found[metric] = (
                f"{metric} has a mean of {summary.mean:.4g} over {summary.scored:,} scored rows, but {skipped:,} more had to"
                " be skipped: complete them, or accept this with --allow-skipped"
            )
    return found


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
        raise AssertionError(
            "\n".join(line for metric in below for line in (below[metric], *_lowest(evaluation, metric)))
        )


def _lowest(evaluation: Evaluation, metric: str) -> Iterator[str]:
    for evaluated in evaluation.worst_by(metric)[:_ROWS_SHOWN]:
        score, record = evaluated.outcomes[metric], evaluated.record
        if isinstance(score, Score):
            yield f"  row {evaluated.row} ({record.record_id}): {score.value:.3f}"
            shown = {"question": record.question, "response": record.response, "why": score.explanation}
            for name, text in shown.items():
                if text:
                    yield f"    {name}: {textwrap.shorten(text, _TEXT_SHOWN, placeholder=' ...')}"
