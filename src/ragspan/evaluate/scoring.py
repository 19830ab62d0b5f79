"""`evaluate` and `score`: a table or one answer in, scores out."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

from ragspan.arguments import SECONDS, SOME_SHARE, WHOLE
from ragspan.config import Settings, is_enabled, settings_with
from ragspan.defaults import budget_from
from ragspan.engine import Budget, ScoringEngine
from ragspan.engine.judge_share_decisions import check_share
from ragspan.engine.metric_judges import screens_of
from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.records import ColumnChoice, RecordReader
from ragspan.evaluate.rows import RowWriter, partial_of, require_apart, require_jsonl
from ragspan.evaluate.running import Run, outside_loop, progress_on_stderr, run_in_loop
from ragspan.evaluate.tables import STANDARD_INPUT, table_of
from ragspan.exceptions import ConfigurationError, RagspanError
from ragspan.judges.judge_catalogue import JudgeChoice
from ragspan.metrics.metric import Metric
from ragspan.metrics.metric_catalogue import metrics_from
from ragspan.outcomes import ScoredRecord
from ragspan.process import in_use
from ragspan.records import RagRecord


def evaluate(
    data: Any,
    metrics: str | Iterable[str | Metric] | None = None,
    *,
    judge: JudgeChoice | None = None,
    question_column: ColumnChoice | None = None,
    contexts_column: ColumnChoice | None = None,
    answer_column: ColumnChoice | None = None,
    label_column: ColumnChoice | None = None,
    by: str | Sequence[str] = (),
    output: str | os.PathLike[str] | None = None,
    resume: bool = False,
    limit: int | None = None,
    concurrency: int | None = None,
    budget: Budget | None = None,
    patience: float | None = None,
    judge_share: float | None = None,
    progress: bool = False,
) -> Evaluation:
    """Score every row of a table. Rows stream: neither the table nor the results have to fit into memory.

    In a running event loop, as in a notebook, it blocks the loop: `await asyncio.to_thread(evaluate, ...)` leaves it free.

    Args:
        data: a path to a CSV, JSONL or Parquet file, `phoenix:NAME` or `mlflow:NAME`; a frame of pandas or polars; a data set of
            Hugging Face; or an iterable of dictionaries or of `RagRecord`s.
        metrics: names (in a list, or separated by commas) and metrics; by default those of `RAGSPAN_METRICS`.
        judge: of metrics given by name: a judge, such as `"openai:gpt-4o-mini"`, or a list for a jury; else `RAGSPAN_JUDGE`.
        question_column: a column's name, a path into a column of dictionaries such as `"prediction.contexts"`, or a
            function of the row. By default the names of Ragas, DeepEval, TruLens, LangSmith and `RagRecord` are known.
        contexts_column: like `question_column`, or several in a list; a cell is a list, the JSON text of a list, or a single text.
        answer_column: like `question_column`: the response that is scored.
        label_column: what people say of some responses, such as `yes` or `no`; `Evaluation.labels` has it.
        by: columns by whose values the figures are also given, such as a model or a prompt's version.
        output: the file of rows, JSONL: each row with its texts and outcomes.
        resume: continue an earlier run with this output; what failed, or had no budget, is judged again.
        limit: rows to evaluate, at least 1; None is all.
        concurrency: records that are scored at the same time; by default `RAGSPAN_CONCURRENCY`.
        budget: else `RAGSPAN_BUDGET_*`. Limits per minute pace the run; a day's dollars end it, the rest is `budget_exhausted`.
        patience: seconds without an answer after which a judge has failed, 0 or more; else 600, and 90 before its first answer.
        judge_share: the share of the rows that the judge is asked about, above 0, up to 1 (all); else `RAGSPAN_JUDGE_SHARE`, or all.
            It gets the most doubtful rows, by the embedded judge, and a random part: a quarter of the share.
            `MetricSummary.asked` has its figures and estimates.
        progress: show on stderr which columns are read, and how much is done.

    Raises:
        TableError: the table cannot be read, a column is missing, or a file cannot be written.
        ConfigurationError: an argument or a variable is wrong; the message names it.
    """
    SOME_SHARE.or_none().check("judge_share", judge_share)
    settings = settings_with(judge=judge, concurrency=concurrency, judge_share=judge_share)
    share = settings.judge_share if settings.judge_share != 1 else None
    chosen = metrics_of(settings, metrics, judge)
    file = None if output is None else Path(output)
    if not is_enabled():
        raise ConfigurationError("RAGSPAN_ENABLED is false, so nothing would be scored")
    WHOLE.or_none().check("limit", limit)
    SECONDS.or_none().check("patience", patience)
    if file is not None:
        require_jsonl(file, "output")
        require_apart({"the table": data}, {"the output": file, "its .partial file": partial_of(file)})
    elif resume:
        raise ConfigurationError("there is nothing to resume without the output file of the earlier run")
    if share is not None:
        check_share(chosen)
    columns = {"question": question_column, "contexts": contexts_column, "answer": answer_column, "label": label_column}
    groups = [by] if isinstance(by, str) else list(by or ())
    stop = threading.Event()

    def work() -> Evaluation:
        with contextlib.closing(table_of(data)) as table:
            reader = RecordReader({part: one for part, one in columns.items() if one}, table, by=groups)
            if progress and reader.columns_read:
                print(reader.columns_read, file=sys.stderr)  # noqa: T201 - of the progress
            about = {"columns": reader.columns, "limit": limit, "judge_share": share}
            writer = RowWriter(file, chosen, about, resume=resume)
            is_file = isinstance(data, (str, os.PathLike)) and os.fspath(data) != STANDARD_INPUT
            evaluation = Evaluation(
                metrics=tuple(metric.name for metric in chosen),
                by=groups,
                shared=frozenset(() if share is None else screens_of(chosen)),
                source=Path(data).name if is_file else None,
                label_name=label_column if isinstance(label_column, str) else "label",
                columns=reader.columns_read,
                judge_share=share,
                all_rows=writer.rows,
            )
            engine = ScoringEngine(
                metrics=chosen,
                concurrency=settings.concurrency,
                score_unsampled=True,
                judge_share=share,
                budget=budget or budget_from(settings),
                waits_for_budget=True,
                metric_timeout=settings.metric_timeout,
                exit_timeout=0,
                judging=settings.judging,
                name="ragspan-evaluate",
            )
            run = Run(
                engine=engine,
                concurrency=settings.concurrency,
                table=table,
                writer=writer,
                evaluation=evaluation,
                patience=patience,
                tell=tell,
                stop=stop,
            )
            is_complete, began = False, time.monotonic()
            try:
                run_in_loop(run.evaluate(map(reader.read, count(1), islice(table.rows, limit))))
                is_complete = True
            finally:
                writer.finish(is_complete=is_complete)
            evaluation.seconds = time.monotonic() - began
        return evaluation

    with progress_on_stderr() if progress else contextlib.nullcontext(lambda _: None) as tell:
        return outside_loop(work, stop.set)


def metrics_of(
    settings: Settings, chosen: str | Iterable[str | Metric] | None, judge: JudgeChoice | None
) -> list[Metric]:
    """The metrics that a user chooses, by names in a list or separated by commas, or as such; None is those of the settings."""
    if isinstance(chosen, str):
        chosen = [name.strip() for name in chosen.split(",") if name.strip()]
    found = metrics_from(settings, chosen, judge=judge)
    if not found:
        raise ConfigurationError("metrics is empty: name one at least")
    return found


# One answer


def score(
    *,
    question: str | None = None,
    contexts: str | Sequence[Any] | None = None,
    response: str | None,
    metrics: str | Iterable[str | Metric] | None = None,
    judge: JudgeChoice | None = None,
) -> ScoredRecord:
    """Score one answer. For many answers `ragspan.evaluate.evaluate` is faster, and waits where a judge is away.

        print(ragspan.score(question="How high is it?", contexts=["It is 330 m high."], response="It is 330 m high."))

    Inside a running event loop, as in a notebook, it works and blocks the loop: `ascore` leaves the loop free.

    Args:
        question: of the user.
        contexts: what the model was given: texts, dictionaries or documents of a framework; a text is a single one. None says
            that they are not known, an empty list that there were none.
        response: the answer that is scored.
        metrics: names (in a list, or separated by commas) and metrics; by default those of `configure`, else of `RAGSPAN_METRICS`.
        judge: of the metrics that are given by name; by default that of `configure`, else of `RAGSPAN_JUDGE`.

    Returns:
        The answer with the outcome of each metric: `scored.outcomes["faithfulness"]`. It prints as a table.

    Raises:
        ConfigurationError: an argument or a variable is wrong; the message names it.
    """
    scoring = ascore(question=question, contexts=contexts, response=response, metrics=metrics, judge=judge)
    return outside_loop(lambda: asyncio.run(scoring))


async def ascore(
    *,
    question: str | None = None,
    contexts: str | Sequence[Any] | None = None,
    response: str | None,
    metrics: str | Iterable[str | Metric] | None = None,
    judge: JudgeChoice | None = None,
) -> ScoredRecord:
    """As `score`, for code that runs in an event loop: judges are asked in a thread of their own."""
    settings = settings_with(judge=judge)
    configured = in_use.configured.engine if in_use.configured else None
    if configured and configured.metrics and metrics is None and judge is None:
        chosen = list(configured.metrics)
    else:
        chosen = metrics_of(settings, metrics, judge)
    several = [contexts] if isinstance(contexts, str) else contexts
    record = RagRecord(question=question, contexts=several, response=response, framework="ragspan")
    engine = ScoringEngine(
        metrics=chosen,
        budget=budget_from(settings),
        metric_timeout=settings.metric_timeout,
        exit_timeout=0,
        judging="thread",
        score_unsampled=True,
        name="ragspan-score",
    )
    try:
        scored = await engine.score(record, sample=False)
    finally:
        await asyncio.to_thread(engine.shutdown, 0)
    if not isinstance(scored, ScoredRecord):
        raise RagspanError(f"the answer was not scored: {scored.reason}")
    return scored
