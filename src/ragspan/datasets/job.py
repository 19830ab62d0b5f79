"""What `ragspan evaluate` does: the evaluation, and everything that is written and said about it."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ragspan.config import settings_with
from ragspan.datasets.back_fill import BackFill
from ragspan.datasets.columns import ColumnChoices, answer_column
from ragspan.datasets.evaluation import metrics_for
from ragspan.datasets.gates import parse_minimums, require_minimums, shortfalls
from ragspan.datasets.journal import journal_of
from ragspan.datasets.records import RecordReader
from ragspan.datasets.result_file import ResultFile
from ragspan.datasets.results import Evaluation
from ragspan.datasets.run import OnError, Plan, run
from ragspan.datasets.terminal import (
    as_plain,
    bad_row_lines,
    headline,
    not_scored_lines,
    progress_on_stderr,
    rows_in_words,
    summary_table,
)
from ragspan.defaults import budget_from
from ragspan.exceptions import ConfigurationError, TableError

DONE = 0
BELOW = 1
INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """The options of the command; see there."""

    file: str
    question_column: str | None
    contexts_column: str | None
    answer_column: str | None
    ground_truth_column: str | None
    id_column: str | None
    metrics: str | None
    judge: str | None
    output: Path | None
    resume: bool
    report: Path | None
    compare: Path | None
    plots: Path | None
    json: Path | None
    fail_under: list[str] | None
    allow_skipped: bool
    limit: int | None
    concurrency: int | None
    on_error: OnError
    file_format: str | None
    delimiter: str | None
    encoding: str
    to_trace: bool
    trace_id_column: str | None
    span_id_column: str | None
    started_column: str | None
    ended_column: str | None
    quiet: bool

    @property
    def columns(self) -> ColumnChoices:
        return ColumnChoices(
            question=self.question_column,
            contexts=self.contexts_column,
            answer=answer_column(self.answer_column, self.ground_truth_column),
            id=self.id_column,
            trace_id=self.trace_id_column,
            span_id=self.span_id_column,
            started=self.started_column,
            ended=self.ended_column,
        )


def run_job(job: Job) -> int:
    """Evaluate, write and print; returns the exit code.

    Raises:
        RagspanError: the input or an option is wrong.
    """
    try:
        return _run(job)
    except KeyboardInterrupt:  # before the first row, or for the second time
        _tell(_how_to_go_on(job))
        return INTERRUPTED


def _run(job: Job) -> int:
    minimums = parse_minimums(job.fail_under or ())
    baseline = _baseline(job)
    settings = settings_with(job.judge, concurrency=job.concurrency)
    metrics = metrics_for(job.metrics, settings)
    require_minimums(minimums, [metric.name for metric in metrics])
    _require_writable(job)
    back_fill = BackFill(settings) if job.to_trace else None
    readers: list[RecordReader] = []

    def begin(reader: RecordReader) -> None:
        readers.append(reader)
        _tell(*filter(None, [reader.told]))

    with ExitStack() as stack:
        if back_fill is not None:
            stack.callback(back_fill.finish)  # what was scored before a failure is sent all the same
        on_row = stack.enter_context(progress_on_stderr(quiet=job.quiet))
        evaluation = run(
            Plan(
                data=job.file,
                metrics=metrics,
                settings=settings,
                budget=budget_from(settings),
                columns=job.columns,
                of_file={"file_format": job.file_format, "delimiter": job.delimiter, "encoding": job.encoding},
                output=job.output,
                resume=job.resume,
                on_error=job.on_error,
                limit=job.limit,
                emitters=back_fill.emitters if back_fill else (),
                with_spans=job.to_trace,
                on_begin=begin,
                on_row=on_row,
                ends_on_ctrl_c=True,
            )
        )
    _tell(*bad_row_lines(evaluation.bad_rows, evaluation.bad_row_count))
    is_delivered = back_fill is None or _told_delivery(back_fill, readers[0])
    below = shortfalls(evaluation, minimums, allow_skipped=job.allow_skipped) if evaluation.is_complete else {}
    if evaluation.is_complete or evaluation.rows:
        _print_summary(evaluation)
    if job.json is not None:
        text = json.dumps(as_plain(evaluation, below), indent=2, allow_nan=False)
        _write(job.json, lambda path: path.write_text(text + "\n", encoding="utf-8"))
    if not evaluation.is_complete:
        _tell(_how_to_go_on(job, evaluation.rows + evaluation.bad_row_count))
        return INTERRUPTED
    _write_report(job, evaluation, baseline)
    _tell(*(f"--fail-under is not met: {told}" for told in below.values()))
    return BELOW if below or not is_delivered else DONE


def _tell(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr)  # noqa: T201 - a command's own words


def _baseline(job: Job) -> ResultFile | None:
    if job.compare is None:
        return None
    if job.report is None:
        raise ConfigurationError("--compare puts two runs side by side in a report: give --report FILE.html, too")
    baseline = ResultFile(job.compare)
    if not baseline.metrics:  # reads it: a wrong file is better known before than after an hour of judging
        raise TableError(f"{job.compare} holds no results to compare with")
    return baseline


def _require_writable(job: Job) -> None:
    """What is wrong with a file that is written at the end should be known before anything is scored."""
    if job.report is not None and job.report.suffix.lower() not in {".html", ".htm"}:
        raise ConfigurationError(
            f"--report is {str(job.report)!r}, but a report is HTML: name it {job.report.stem}.html"
        )
    for option, path in {"--report": job.report, "--json": job.json, "--output": job.output}.items():
        if path is not None and not path.absolute().parent.is_dir():
            raise ConfigurationError(
                f"{option} is {str(path)!r}, but there is no folder {str(path.parent)!r}: make it first"
            )
    if (job.report or job.plots) and importlib.util.find_spec("jinja2") is None:
        raise ConfigurationError('reports and plots need jinja2: pip install "ragspan[report]"')


def _print_summary(evaluation: Evaluation) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    console.print(summary_table(evaluation))
    for line in not_scored_lines(evaluation):
        console.print(line, markup=False)
    console.print(headline(evaluation), markup=False)
    if not evaluation.rows:
        _tell("the table has no rows that can be evaluated")


def _write_report(job: Job, evaluation: Evaluation, baseline: ResultFile | None) -> None:
    if job.report is not None:
        from ragspan.datasets.report import write_report

        _write(job.report, lambda path: write_report(evaluation, path, baseline=baseline))
    if job.plots is not None:
        from ragspan.datasets.report import write_plots

        _write(job.plots, lambda path: write_plots(evaluation, path))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    try:
        write(path)
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror or error}") from None


def _how_to_go_on(job: Job, rows: int = 0) -> str:
    if not rows and (job.output is None or not journal_of(job.output).exists()):
        return "Stopped by Ctrl-C before a row was done. Start again with the same command."
    done = f"Stopped by Ctrl-C after {rows_in_words(rows)}" if rows else "Stopped by Ctrl-C"
    if job.output is None:
        return f"{done}. Their scores are not saved: with --output FILE a run can be continued later."
    return f"{done}. What is done is saved in {journal_of(job.output)}: continue with the same command and --resume."


def _told_delivery(back_fill: BackFill, reader: RecordReader) -> bool:
    """Say what became of the scores; whether all that could be sent was."""
    is_delivered = back_fill.finish()
    for row, trouble in list(reader.span_troubles.items())[:_TROUBLES_SHOWN]:
        _tell(f"not sent: row {row} {trouble}")
    if reader.span_trouble_count > _TROUBLES_SHOWN:
        _tell(f"... and {reader.span_trouble_count - _TROUBLES_SHOWN:,} more rows whose ids name no span")
    _tell(f"{reader.traced:,} rows name a span; {back_fill.sent:,} evaluation spans were sent")
    if not is_delivered:
        _tell(f"not everything was sent: {back_fill.failed:,} spans failed; the log above says why")
    return is_delivered


_TROUBLES_SHOWN = 10
