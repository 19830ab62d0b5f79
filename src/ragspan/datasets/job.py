"""What `ragspan evaluate` does: the evaluation, and everything that is written and said about it."""

from __future__ import annotations

import importlib.util
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from ragspan.datasets.agree import as_plain as agreement_as_plain
from ragspan.datasets.agree import rate_in_words
from ragspan.datasets.back_fill import BackFill
from ragspan.datasets.evaluation import parse_minimums, plan_from, require_minimums, shortfalls
from ragspan.datasets.journal import journal_of
from ragspan.datasets.labels import agreements, labels_of
from ragspan.datasets.records import RecordReader
from ragspan.datasets.result_file import ResultFile
from ragspan.datasets.results import Evaluation
from ragspan.datasets.run import run
from ragspan.datasets.sources import stored_answers
from ragspan.datasets.terminal import (
    as_plain,
    bad_row_lines,
    headline,
    not_scored_lines,
    progress_on_stderr,
    rows_in_words,
    summary_table,
)
from ragspan.exceptions import ConfigurationError, TableError

BELOW, INTERRUPTED = 1, 130
_TROUBLES_SHOWN = 10


def run_job(options: Namespace) -> int:
    """Evaluate, write and print; returns the exit code.

    Args:
        options: of the command; see there.

    Raises:
        RagspanError: the input or an option is wrong.
    """
    try:
        return _run(options)
    except KeyboardInterrupt:  # before the first row, or for the second time
        _tell(_how_to_go_on(options))
        return INTERRUPTED


def _run(options: Namespace) -> int:
    minimums = parse_minimums(options.fail_under or ())
    baseline = _baseline(options)
    plan = plan_from({**vars(options), "data": _data(options)}, with_spans=options.to_trace, ends_on_ctrl_c=True)
    require_minimums(minimums, [metric.name for metric in plan.metrics])
    _require_writable(options)
    labels = _labels(options)
    tool = options.source
    back_fill = BackFill(plan.settings, tools=(tool,) if tool else None) if options.to_trace else None
    readers: list[RecordReader] = []

    def begin(reader: RecordReader) -> None:
        readers.append(reader)
        _tell(*filter(None, [reader.told]))

    with ExitStack() as stack:
        if back_fill is not None:
            stack.callback(lambda: back_fill.is_delivered)  # what was scored before a failure is sent all the same
        on_row = stack.enter_context(progress_on_stderr(quiet=options.quiet))
        emitters = back_fill.emitters if back_fill else ()
        evaluation = run(replace(plan, emitters=emitters, on_begin=begin, on_row=on_row))
    _tell(*bad_row_lines(evaluation.bad_rows, evaluation.bad_row_count))
    is_delivered = back_fill is None or _told_delivery(back_fill, readers[0])
    below = shortfalls(evaluation, minimums, allow_skipped=options.allow_skipped) if evaluation.is_complete else {}
    if evaluation.is_complete or evaluation.rows:
        _print_summary(evaluation)
    found = agreements(evaluation, labels) if labels else []
    for one in found:
        if one.rate is not None:
            print(rate_in_words(one.metric, one.rate))  # noqa: T201 - as above
    if options.json is not None:
        plain = as_plain(evaluation, below) | {"agreement": [agreement_as_plain(one) for one in found]}
        text = json.dumps(plain, indent=2, allow_nan=False)
        _write(options.json, lambda path: path.write_text(text + "\n", encoding="utf-8"))
    if not evaluation.is_complete:
        _tell(_how_to_go_on(options, evaluation.rows + evaluation.bad_row_count))
        return INTERRUPTED
    _write_report(options, evaluation, baseline)
    _tell(*(f"--fail-under is not met: {told}" for told in below.values()))
    return BELOW if below or not is_delivered else 0


def _tell(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr)  # noqa: T201 - a command's own words


def _data(options: Namespace) -> Any:
    """The file, or the records that a tool has stored."""
    if (options.data is None) is (options.source is None):
        raise ConfigurationError("give a FILE, or a tool after --from, and not both")
    if options.source is not None:
        return (stored.record for stored in stored_answers(options.source, options.project, options.since))
    if options.project or options.since:
        raise ConfigurationError("--project and --since are about a tool: name it after --from")
    return options.data


def _labels(options: Namespace) -> Mapping[int, bool]:
    """What people say of the rows; a wrong column should be known before anything is scored."""
    if options.label_column is None:
        return {}
    if options.data is None:
        raise ConfigurationError(
            "--label-column is about a FILE: `ragspan labels pull` makes one of a tool's annotations"
        )
    of_file = {name: getattr(options, name) for name in ("file_format", "delimiter", "encoding")}
    return labels_of(options.data, options.label_column, **of_file)


def _baseline(options: Namespace) -> ResultFile | None:
    if options.compare is None:
        return None
    if options.report is None:
        raise ConfigurationError("--compare puts two runs side by side in a report: give --report FILE.html, too")
    baseline = ResultFile(options.compare)
    if not baseline.metrics:  # reads it: a wrong file is better known before than after an hour of judging
        raise TableError(f"{options.compare} holds no results to compare with")
    return baseline


def _require_writable(options: Namespace) -> None:
    """What is wrong with a file that is written at the end should be known before anything is scored."""
    if options.report is not None and options.report.suffix.lower() not in {".html", ".htm"}:
        raise ConfigurationError(
            f"--report is {str(options.report)!r}, but a report is HTML: name it {options.report.stem}.html"
        )
    for option, path in {"--report": options.report, "--json": options.json, "--output": options.output}.items():
        if path is not None and not path.absolute().parent.is_dir():
            raise ConfigurationError(
                f"{option} is {str(path)!r}, but there is no folder {str(path.parent)!r}: make it first"
            )
    if (options.report or options.plots) and importlib.util.find_spec("jinja2") is None:
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


def _write_report(options: Namespace, evaluation: Evaluation, baseline: ResultFile | None) -> None:
    if options.report is None and options.plots is None:
        return
    from ragspan.datasets.report import write_plots, write_report

    if options.report is not None:
        _write(options.report, lambda path: write_report(evaluation, path, baseline=baseline))
    if options.plots is not None:
        _write(options.plots, lambda path: write_plots(evaluation, path))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    try:
        write(path)
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror or error}") from None


def _how_to_go_on(options: Namespace, rows: int = 0) -> str:
    if not rows and (options.output is None or not journal_of(options.output).exists()):
        return "Stopped by Ctrl-C before a row was done. Start again with the same command."
    done = f"Stopped by Ctrl-C after {rows_in_words(rows)}" if rows else "Stopped by Ctrl-C"
    if options.output is None:
        return f"{done}. Their scores are not saved: with --output FILE a run can be continued later."
    return (
        f"{done}. What is done is saved in {journal_of(options.output)}: continue with the same command and --resume."
    )


def _told_delivery(back_fill: BackFill, reader: RecordReader) -> bool:
    """Say what became of the scores; whether all that could be sent was."""
    for row, trouble in list(reader.span_troubles.items())[:_TROUBLES_SHOWN]:
        _tell(f"not sent: row {row} {trouble}")
    if reader.span_trouble_count > _TROUBLES_SHOWN:
        _tell(f"... and {reader.span_trouble_count - _TROUBLES_SHOWN:,} more rows whose ids name no span")
    if back_fill.tools:
        _tell(f"the scores of {reader.traced:,} answers go to {', '.join(back_fill.tools)}")
        trouble = "the scores that are left are lost"
    else:
        _tell(f"{reader.traced:,} rows name a span; {back_fill.spans.sent:,} evaluation spans were sent")
        trouble = f"{back_fill.spans.failed:,} spans failed"
    if not back_fill.is_delivered:
        _tell(f"not everything was sent: {trouble}; the log above says why")
    return back_fill.is_delivered
