"""`evaluate`: a table in, scores out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragspan.config import Settings, settings_with
from ragspan.defaults import budget_from
from ragspan.engine import Budget
from ragspan.evaluate.columns import ColumnChoice, column_choices
from ragspan.evaluate.evaluated import Evaluation
from ragspan.evaluate.progress import progress_on_stderr
from ragspan.evaluate.running import Plan, run
from ragspan.judge_share import JudgeShare
from ragspan.judges.judge_catalogue import JudgeChoice
from ragspan.metrics.metric import Metric
from ragspan.metrics.metric_catalogue import metrics_from
from ragspan.telemetry.emitter_protocols import Emitter


def evaluate(
    data: Any,
    metrics: str | Iterable[str | Metric] | None = None,
    *,
    judge: JudgeChoice | None = None,
    question_column: ColumnChoice | None = None,
    contexts_column: ColumnChoice | None = None,
    answer_column: ColumnChoice | None = None,
    label_column: ColumnChoice | None = None,
    id_column: ColumnChoice | None = None,
    by: str | Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    limit: int | None = None,
    concurrency: int | None = None,
    budget: Budget | None = None,
    patience: float | None = None,
    judge_share: float | str | JudgeShare | None = None,
    emitters: Sequence[Emitter] = (),
    progress: bool = False,
) -> Evaluation:
    """Score every row of a table. Rows stream: neither the table nor the results have to fit into memory.

    In a running event loop, as in a notebook, it blocks the loop: `await asyncio.to_thread(evaluate, ...)` leaves it free.

    Args:
        data: a path to a CSV, JSONL or Parquet file, `phoenix:NAME` or `mlflow:NAME`; a frame of pandas or polars; a data set of
            Hugging Face; an Arrow table; or an iterable of dictionaries or of `RagRecord`s.
        metrics: names (in a list, or separated by commas) and metrics; by default those of `RAGSPAN_METRICS`.
        judge: of metrics given by name: a judge, such as `"openai:gpt-4o-mini"`, or a list for a jury; else `RAGSPAN_JUDGE`.
        question_column: a column's name, a path into a column of dictionaries such as `"prediction.contexts"`, or a
            function of the row. By default the names of Ragas, DeepEval, TruLens, LangSmith and `RagRecord` are known.
        contexts_column: like `question_column`, or several in a list; a cell is a list, the JSON text of a list, or a single text.
        answer_column: like `question_column`: the response that is scored.
        label_column: what people say of some responses, such as `yes` or `no`; `Evaluation.labels` has it.
        id_column: by default `id`, `record_id` or `example_id`; else rows are named by their number.
        by: columns by whose values the figures are also given, such as a model or a prompt's version.
        output: the file of rows, JSONL: each row with its texts and outcomes.
        resume: continue an earlier run with this output; what failed, or had no budget, is judged again.
        limit: rows to evaluate, at least 1; None is all.
        concurrency: records that are scored at the same time; by default `RAGSPAN_CONCURRENCY`.
        budget: else `RAGSPAN_BUDGET_*`. Limits per minute pace the run; a day's dollars end it, the rest is `budget_exhausted`.
        patience: seconds without an answer after which a judge has failed, 0 or more; else 600, and 90 before its first answer.
        judge_share: the share of the rows that the judge is asked about, above 0, up to 1; else `RAGSPAN_JUDGE_SHARE`, or all.
            It gets the most doubtful rows, by the embedded judge, and a random part: a quarter of the share, or what follows
            a colon, as in `"0.2:0.1"`. `MetricSummary.asked` has its figures and estimates.
        emitters: where scores also go.
        progress: show on stderr how much is done.

    Raises:
        TableError: the table cannot be read, a column is missing, or a file cannot be written.
        ConfigurationError: an argument or a variable is wrong; the message names it.
    """
    options = locals()
    with progress_on_stderr() if progress else contextlib.nullcontext(lambda _: None) as on_row:
        return run(plan_from(options, emitters=emitters, on_row=on_row))


def plan_from(options: Mapping[str, Any], **more: Any) -> Plan:
    """The plan of an evaluation, from the options of `evaluate` or of a command, which have the same names.

    Raises:
        ConfigurationError: one of them is wrong.
    """
    judge, output, share, by = (options.get(name) for name in ("judge", "output", "judge_share", "by"))
    settings = settings_with(
        judge=judge,
        concurrency=options.get("concurrency"),
        judge_share=None if share is None else JudgeShare.of(share),
    )
    return Plan(
        data=options["data"],
        metrics=metrics_of(settings, options.get("metrics"), judge),
        settings=settings,
        budget=options.get("budget") or budget_from(settings),
        columns=column_choices(options),
        by=[by] if isinstance(by, str) else list(by or ()),
        output=None if output is None else Path(output),
        resume=bool(options.get("resume")),
        limit=options.get("limit"),
        patience=options.get("patience"),
        **more,
    )


def metrics_of(
    settings: Settings, chosen: str | Iterable[str | Metric] | None, judge: JudgeChoice | None
) -> list[Metric]:
    """The metrics that a user chooses: names in a list, or separated by commas, and metrics; None is those of the settings."""
    if isinstance(chosen, str):
        chosen = [name.strip() for name in chosen.split(",") if name.strip()]
    return metrics_from(settings, chosen, judge=judge)
