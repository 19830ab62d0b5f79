"""`evaluate` and `score`: a table or one answer in, scores out.

A run over a table reads, judges, writes and counts. Each row ends exactly once, in the order of the table, and is in the file of rows
before it is counted. Memory does not grow with the table, except for eight bytes a score.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import shutil
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeAlias

from rich.console import Console
from rich.text import Text

from ragspan.arguments import SECONDS, SOME_SHARE, WHOLE, counted
from ragspan.config import Settings, is_enabled, settings_with
from ragspan.defaults import budget_from
from ragspan.engine import Budget, Dropped, ScoringEngine
from ragspan.engine.judge_share_decisions import check_share
from ragspan.engine.metric_judges import screens_of
from ragspan.engine.redaction import RedactedRecord
from ragspan.engine.threads import outside_loop, run_in_loop
from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.records import ColumnChoice, RecordReader
from ragspan.evaluate.rows import BadRow, EvaluatedRow, RowWriter, partial_of, require_apart, require_jsonl
from ragspan.evaluate.tables import STANDARD_INPUT, Table, table_of
from ragspan.exceptions import ConfigurationError, RagspanError
from ragspan.judges.judge_catalogue import JudgeChoice
from ragspan.metrics.metric import Metric
from ragspan.metrics.metric_catalogue import metrics_from
from ragspan.outcomes import BUDGET_EXHAUSTED, MetricFailure, NotApplicable, Score, ScoredRecord
from ragspan.process import in_use
from ragspan.records import RagRecord
from ragspan.usage import Usage

_Row: TypeAlias = "EvaluatedRow | BadRow"

_ROWS_PER_PLACE = 4  # a slow record holds back those that came after it
_LEAST_ROWS = 64
_TICK = 0.2  # seconds of waiting for a row until the next look at whether to stop, and at how far the run is
_LINE_PAUSE = 10.0  # seconds between two lines of progress where there is no terminal
_LOST = MetricFailure(error_type="worker_error", message="the engine lost the record: its log says why")
_PATIENCE, _BEFORE_FIRST = 600.0, 90.0
"""Seconds for which a judge may be away, by default; before it has answered once its address may be wrong."""
_LASTING = frozenset({401, 402, 403, 404, 407})
"""HTTP statuses that time does not change: the key, the money, the model's name."""
_TOO_MANY = 429
_LONGEST_PAUSE = 10.0  # seconds before a row asks again a judge that is away
_MOST_IN_VAIN, _SUSPECT = 3, 60.0
"""Attempts of a row while others are answered, then it is the row that the judge cannot take; and seconds from the first of them on."""


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
            writer = RowWriter(file or Path(mkdtemp(prefix="ragspan-"), "rows.jsonl"), chosen, about, resume=resume)
            if file is None:
                weakref.finalize(writer, shutil.rmtree, writer.path.parent, ignore_errors=True)
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
            run = Run(
                metrics=chosen,
                settings=settings,
                budget=budget or budget_from(settings),
                table=table if limit is None else replace(table, share_read=None),
                writer=writer,
                evaluation=evaluation,
                patience=patience,
                stop=stop,
                progress=progress,
            )
            with run.status or contextlib.nullcontext():
                run_in_loop(run.evaluate, map(reader.read, count(1), islice(table.rows, limit)))
            writer.finish()
            evaluation.seconds = time.monotonic() - run.began
        return evaluation

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


@dataclass(kw_only=True)
class Run:
    """The work on the rows of one table."""

    metrics: Sequence[Metric]
    settings: Settings
    budget: Budget | None
    table: Table
    writer: RowWriter
    evaluation: Evaluation
    """Counts the rows that are done."""
    patience: float | None
    """Seconds for which a judge may be away; None is the default."""
    stop: threading.Event
    """Once it is set, the run ends."""
    progress: bool
    """Whether it is said how far the run is."""
    began: float = field(default_factory=time.monotonic)
    shown: float = field(default_factory=time.monotonic)
    begun: int = 0  # rows that were read
    outage: str | None = None
    """Which judge is waited for, and why."""
    _answered: dict[str, tuple[float, float]] = field(default_factory=dict)
    """By metric, when its judge has answered last, else was asked first, and the seconds that it may be away from then on."""

    def __post_init__(self) -> None:
        self.status = Console(stderr=True).status("") if self.progress and sys.stderr.isatty() else None
        self._engine = ScoringEngine(
            metrics=self.metrics,
            concurrency=self.settings.concurrency,
            score_unsampled=True,
            judge_share=self.evaluation.judge_share,
            budget=self.budget,
            waits_for_budget=True,
            metric_timeout=self.settings.metric_timeout,
            exit_timeout=0,
            judging=self.settings.judging,
            name="ragspan-evaluate",
        )

    async def evaluate(self, rows: Iterator[_Row]) -> None:
        """Judge the rows that are not done yet, many at the same time; write and count all in their order."""
        max_rows = max(_LEAST_ROWS, _ROWS_PER_PLACE * self.settings.concurrency)
        waiting: deque[tuple[_Row, asyncio.Task[_Row]]] = deque()
        try:
            for row in chain(self.writer.resume(rows), rows, [None]):
                if row is not None:
                    self.begun += 1
                    waiting.append((row, asyncio.create_task(self._judged(row))))
                    await asyncio.sleep(0)  # which begins it
                while waiting and (row is None or len(waiting) >= max_rows or waiting[0][1].done()):
                    before, task = waiting[0]
                    while not task.done():
                        await asyncio.wait([task], timeout=_TICK)
                        if self.stop.is_set():
                            raise asyncio.CancelledError
                        self.show_progress()
                    waiting.popleft()
                    done = task.result()
                    if isinstance(done, EvaluatedRow) and done is not before:
                        self.writer.add(done)
                    elif isinstance(done, EvaluatedRow):
                        self.evaluation.resumed += done.row <= self.writer.last_row
                    self.evaluation.add(done)
        finally:
            log = logging.getLogger("ragspan")
            was_disabled, log.disabled = log.disabled, True  # who stops a run knows that records are abandoned
            self._engine.shutdown(0)
            log.disabled = was_disabled

    async def _judged(self, row: _Row) -> _Row:
        """The row with all its outcomes; the same object where none is new. A judge that is away is asked again, after pauses."""
        if isinstance(row, BadRow) or not (
            left := [metric.name for metric in self.metrics if self._is_left(row, metric)]
        ):
            return row
        is_new, asked, known = not row.outcomes, row.asked, dict(row.outcomes)
        began = now = time.monotonic()
        pause, in_vain, failed_at = 1.0, 0, math.inf
        while left:
            for name in left:
                self._answered.setdefault(name, (now, _BEFORE_FIRST if self.patience is None else self.patience))
            # The reader has redacted it. A row that is judged again keeps why the judge is asked about it.
            result = await self._engine.score(RedactedRecord(row.record), sample=is_new, only=left)
            left, now = [], time.monotonic()
            if isinstance(result, Dropped):
                break
            asked = asked or result.asked
            for name, outcome in result.outcomes.items():
                spent = known[name].usage if name in known else None  # in an earlier run, too
                known[name] = replace(outcome, usage=spent + (outcome.usage or Usage())) if spent else outcome
                if isinstance(outcome, MetricFailure) and outcome.outage and outcome.status not in _LASTING:
                    answered_at, patience = self._answered[name]
                    in_vain += answered_at > failed_at and outcome.status != _TOO_MANY
                    patience = min(patience, _SUSPECT) if in_vain else patience
                    if in_vain < _MOST_IN_VAIN and now < min(answered_at, began) + patience:
                        left = [*left, name]
                        self.outage = f"waiting for the judge of {name} ({outcome.error_type}: {outcome.message[:200]})"
                elif not isinstance(outcome, NotApplicable):
                    self._answered[name] = (now, _PATIENCE if self.patience is None else self.patience)
                    self.outage = None
            if left:
                failed_at = now
                await asyncio.sleep(min(pause, _LONGEST_PAUSE))
                pause *= 2
        outcomes = {metric.name: known.get(metric.name, _LOST) for metric in self.metrics}
        return replace(row, asked=asked, outcomes=outcomes)

    def show_progress(self) -> None:
        """On a terminal renew a line, else add one every ten seconds."""
        now, evaluation = time.monotonic(), self.evaluation
        if not self.progress or (self.status is None and now - self.shown < _LINE_PAUSE):
            return
        self.shown = now
        done = evaluation.rows + evaluation.bad_row_count
        words, share_read = counted(done, "row", grouped=True), self.table.share_read
        words += f" ({share_read(self.begun) * done / max(self.begun, 1):.0%})" if share_read else ""
        if self.outage is not None:
            words += f" · {self.outage}"
        elif done > evaluation.resumed:
            words += f" · {(done - evaluation.resumed) / (now - self.began):,.1f} rows/s"
        if self.status is not None:
            self.status.update(Text(words))
        else:
            print(words, file=sys.stderr, flush=True)  # noqa: T201 - a command's own words

    def _is_left(self, row: EvaluatedRow, metric: Metric) -> bool:
        """Whether the metric has no outcome, or one that another try may change: of a judge only where it is asked."""
        outcome = row.outcomes.get(metric.name)
        is_spent = isinstance(outcome, NotApplicable) and outcome.reason == BUDGET_EXHAUSTED
        may_change = is_spent or isinstance(outcome, MetricFailure)
        if outcome is None or (may_change and (row.asked or metric.name not in self.evaluation.shared)):
            return True
        return row.asked is not None and isinstance(outcome, Score) and outcome.fallback is not None


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
    if metrics is None and judge is None and in_use.configured and in_use.configured.engine:
        metrics = in_use.configured.engine.metrics or None
    several = [contexts] if isinstance(contexts, str) else contexts
    record = RagRecord(question=question, contexts=several, response=response, framework="ragspan")
    engine = ScoringEngine(
        metrics=metrics_of(settings, metrics, judge),
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
