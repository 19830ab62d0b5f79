"""What `ragspan evaluate` and `ragspan agree` do: the evaluation, and everything that is written and said about it."""

from __future__ import annotations

import importlib.util
import json as json_text
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from ragspan.arguments import SHARE
from ragspan.config import job_summary_file, settings_with
from ragspan.counted import counted
from ragspan.evaluate.back_fill import BackFill
from ragspan.evaluate.ci import append_summary, write_junit
from ragspan.evaluate.evaluated import Evaluation, print_evaluation
from ragspan.evaluate.evaluation import plan_from
from ragspan.evaluate.gates import Gate, GateResult, Kind, check_gates, parse_gates, require_metrics
from ragspan.evaluate.label_agreement import LabelAgreement, agreement, agreement_tables, measures_of, rate_in_words
from ragspan.evaluate.progress import progress_on_stderr
from ragspan.evaluate.records import RecordReader
from ragspan.evaluate.row_file import ResultFile, partial_of
from ragspan.evaluate.running import run
from ragspan.evaluate.sources import stored_answers
from ragspan.evaluate.written_files import replacing, require_apart
from ragspan.exceptions import ConfigurationError, TableError

NOT_MET, INTERRUPTED = 1, 130
_REASONS_SHOWN = 10


def evaluate_table(options: Namespace) -> int:
    """Do what the options of the command ask for; returns the exit code."""
    try:
        return _evaluate_table(options)
    except KeyboardInterrupt:  # before the first row, or for the second time
        _tell([_how_to_continue(options)])
        return INTERRUPTED


def _evaluate_table(options: Namespace) -> int:
    _check_files(options)
    gates = _gates(options)
    baseline = None if options.compare is None else ResultFile(options.compare)
    _ = baseline and baseline.metrics  # an error should come before an hour of judging
    plan = plan_from({**vars(options), "data": _data(options)}, with_spans=options.to_trace, ends_on_ctrl_c=True)
    require_metrics(gates, [metric.name for metric in plan.metrics])
    back_fill = BackFill(plan.settings, tool=options.source) if options.to_trace else None
    readers: list[RecordReader] = []

    def begin(reader: RecordReader) -> None:
        readers.append(reader)
        _tell([reader.columns_read] if reader.columns_read else [])

    with ExitStack() as stack:
        if back_fill is not None:
            stack.callback(lambda: back_fill.is_delivered)  # sends what was scored before a failure, too
        on_row = stack.enter_context(progress_on_stderr())
        emitters = back_fill.emitters if back_fill else ()
        evaluation = run(replace(plan, emitters=emitters, on_begin=begin, on_row=on_row))
    _tell(_skipped(evaluation))
    is_delivered = back_fill is None or _delivered(back_fill, readers[0])
    results: list[GateResult] = []
    if evaluation.is_complete:
        results = check_gates(evaluation, gates, min_scored=options.min_scored)
    if evaluation.is_complete or evaluation.rows:
        from rich.console import Console

        print_evaluation(evaluation, Console(highlight=False))
    found = agreement(evaluation)
    if found is not None and found.failures is not None:
        print(rate_in_words(found))  # noqa: T201 - a command's own words
    if options.json is not None:
        _write_json(options.json, _summary_of(evaluation, results, found))
    if not evaluation.is_complete:
        _tell([_how_to_continue(options, evaluation.rows)])
        return INTERRUPTED
    _write_files(options, evaluation, baseline, results)
    if options.output is not None and evaluation.has_passing:
        _tell(["some rows failed: the same command with --resume judges only these again"])
    if not evaluation.is_scored:
        _tell([f"nothing was scored: {evaluation.why_not_scored}"])
        return NOT_MET
    below = [result.trouble for result in results if result.trouble is not None]
    _tell(f"a gate failed: {line}" for line in below)
    return NOT_MET if below or not is_delivered else 0


def agree_with_labels(options: Namespace) -> int:
    """Evaluate the file, and print how well the metrics that measure its label agree with it; returns the exit code.

    Metrics that are named are compared whatever they measure.
    """
    from rich.console import Console

    require_apart({"the table": options.data}, {"--json": options.json})
    is_chosen = options.metrics is not None
    if not is_chosen:
        measures, usual = measures_of(options.label_column), settings_with().metrics
        options.metrics = [metric for metric in measures if metric in usual] or measures[:1]
    with progress_on_stderr() as on_row:  # a judge that is compared with labels reads all rows
        evaluation = run(plan_from(vars(options), has_share=False, on_row=on_row))
    _tell(_skipped(evaluation))
    if not evaluation.labels:
        raise TableError(f"no row of {options.data} has a label that says good or bad")
    found = agreement(evaluation, with_all=is_chosen)
    console = Console(highlight=False)
    rows = evaluation.rows + evaluation.bad_row_count
    console.print(f"{len(evaluation.labels):,} of {rows:,} rows have a label")
    if found is not None:
        console.print(*agreement_tables(found), sep="\n", soft_wrap=True)
    if options.json is not None:
        _write_json(options.json, found)
    if found is None:
        _tell([f"none of them has a score: {evaluation.why_not_scored}"])
    return NOT_MET if found is None else 0


# Options --------------------------------------------------------------------------------------------------------------


def _gates(options: Namespace) -> list[Gate]:
    kinds: dict[Kind, Sequence[str] | None] = {
        "mean": options.fail_under,
        "passing": options.min_passing,
        "none_below": options.none_below,
    }
    if options.min_scored is not None:
        SHARE.check("--min-scored", options.min_scored)
    return [gate for kind, texts in kinds.items() for gate in parse_gates(kind, texts or ())]


def _data(options: Namespace) -> Any:
    """The file, or the records that a tool has stored."""
    if (options.data is None) is (options.source is None):
        raise ConfigurationError("give a FILE, or a tool after --from, and not both")
    if options.source is not None:
        if options.label_column is not None:
            raise ConfigurationError(
                "--label-column is about a FILE: `ragspan labels pull` makes one of a tool's annotations"
            )
        return (stored.record for stored in stored_answers(options.source, options.project, options.since))
    if options.project or options.since:
        raise ConfigurationError("--project and --since are about a tool: name it after --from")
    return options.data


def _check_files(options: Namespace) -> None:
    """What is wrong with a file should be known before anything is read or scored."""
    written = {
        "--output": options.output,
        "--report": options.report,
        "--json": options.json,
        "--junit": options.junit,
    }
    partial = {} if options.output is None else {"the .partial file of --output": partial_of(options.output)}
    require_apart({"the table": options.data, "the baseline of --compare": options.compare}, {**written, **partial})
    for option, path in written.items():
        if path is not None and not path.absolute().parent.is_dir():
            raise ConfigurationError(
                f"{option} is {str(path)!r}, but there is no folder {str(path.parent)!r}: make it first"
            )
    if options.compare is not None and options.report is None:
        raise ConfigurationError("--compare puts two runs side by side in a report: give --report FILE.html, too")
    if options.report is None:
        return
    if options.report.suffix.lower() not in {".html", ".htm"}:
        raise ConfigurationError(
            f"--report is {str(options.report)!r}, but a report is HTML: name it {options.report.stem}.html"
        )
    if importlib.util.find_spec("jinja2") is None:
        raise ConfigurationError('a report needs jinja2: pip install "ragspan[report]"')


# What is said ---------------------------------------------------------------------------------------------------------


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)  # noqa: T201 - a command's own words


def _skipped(evaluation: Evaluation) -> list[str]:
    """The bad rows, in one line for each reason."""
    rows: dict[str, list[str]] = {}
    for bad in evaluation.bad_rows:
        rows.setdefault(bad.reason, []).append(bad.place)
    shown = [
        f"skipped {places[0]}{f' and {len(places) - 1:,} more rows' if len(places) > 1 else ''}: {reason}"
        for reason, places in rows.items()
    ]
    rest = len(shown) - _REASONS_SHOWN
    return shown[:_REASONS_SHOWN] + ([f"... and {rest:,} more reasons; --json lists the rows"] if rest > 0 else [])


def _how_to_continue(options: Namespace, rows: int = 0) -> str:
    partial = None if options.output is None else partial_of(options.output)
    if not rows and (partial is None or not partial.exists()):
        return "Stopped by Ctrl-C before a row was done. Start again with the same command."
    done = f"Stopped by Ctrl-C after {counted(rows, 'row', grouped=True)}" if rows else "Stopped by Ctrl-C"
    if partial is None:
        return f"{done}. Their scores are not saved: with --output FILE a run can be continued later."
    return f"{done}. What is done is saved in {partial}: continue with the same command and --resume."


def _delivered(back_fill: BackFill, reader: RecordReader) -> bool:
    """Say how many scores were sent; returns whether all were."""
    if reader.span_trouble is not None:
        rows = counted(reader.span_troubles, "row", grouped=True)
        _tell([f"not sent: no valid span in {rows}; the first is {reader.span_trouble}"])
    answers = counted(reader.traced, "answer", grouped=True)
    _tell([f"the scores of {answers} go to {back_fill.tool or 'their spans'}"])
    if not back_fill.is_delivered:
        unsent = counted(back_fill.unsent, "span", grouped=True)
        _tell([f"not everything was sent ({unsent} not); the log above says why"])
    return back_fill.is_delivered


# Files ----------------------------------------------------------------------------------------------------------------


def _summary_of(evaluation: Evaluation, gates: Sequence[GateResult], found: LabelAgreement | None) -> Any:
    names = (
        *("rows", "seconds", "by_dimension", "usage", "source", "columns", "skipped", "failing", "special"),
        *("judged", "judge_share", "failures", "bad_row_count", "bad_rows"),
    )
    return {
        **{name: getattr(evaluation, name) for name in names},
        "complete": evaluation.is_complete,
        "metrics": evaluation.summary,
        "gates": gates,
        "agreement": found,
    }


def _write_files(
    options: Namespace, evaluation: Evaluation, baseline: ResultFile | None, results: Sequence[GateResult]
) -> None:
    if options.report is not None:
        from ragspan.evaluate.report import write_report

        _write(options.report, lambda path: write_report(evaluation, path, baseline=baseline, gates=results))
    if options.junit is not None:
        _write(options.junit, lambda path: write_junit(evaluation, results, path))
    if (summary := job_summary_file()) is not None:
        _errors_named(Path(summary), lambda path: append_summary(evaluation, results, path))


def _write_json(path: Path, figures: Any) -> None:
    text = json_text.dumps(msgspec.to_builtins(figures), indent=2, allow_nan=False) + "\n"
    _write(path, lambda file: file.write_text(text, encoding="utf-8"))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    def write_whole(path: Path) -> None:
        with replacing(path) as unfinished:
            write(unfinished)

    _errors_named(path, write_whole)


def _errors_named(path: Path, write: Callable[[Path], object]) -> None:
    try:
        write(path)
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror or error}") from None
