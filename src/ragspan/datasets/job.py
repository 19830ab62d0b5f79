"""What `ragspan evaluate` and `ragspan agree` do: the evaluation, and everything that is written and said about it."""

from __future__ import annotations

import importlib.util
import json as json_text
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from ragspan.datasets.agreement import MetricAgreement, agreement_tables, agreements, rate_in_words, text_table
from ragspan.datasets.back_fill import BackFill
from ragspan.datasets.evaluation import evaluate, plan_from
from ragspan.datasets.gates import parse_minimums, require_minimums, shortfalls
from ragspan.datasets.journal import journal_of
from ragspan.datasets.progress import duration, progress_on_stderr
from ragspan.datasets.records import RecordReader
from ragspan.datasets.result_file import ResultFile
from ragspan.datasets.results import Evaluation
from ragspan.datasets.running import run
from ragspan.datasets.sources import stored_answers
from ragspan.datasets.summaries import SUMMARY_HEADER
from ragspan.exceptions import ConfigurationError, NothingToResume, TableError

NOT_MET, INTERRUPTED = 1, 130
_WORST_SHOWN = 3
_REASONS_SHOWN = 10


def evaluate_table(options: Namespace) -> int:
    """Do what the options of the command ask for; returns the exit code."""
    try:
        return _evaluate_table(options)
    except KeyboardInterrupt:  # before the first row, or for the second time
        _tell([_how_to_continue(options)])
        return INTERRUPTED
    except NothingToResume as finished:
        if options.fail_under or options.report or options.json or options.plots:
            raise  # of what is in the result file alone no gate and no report can be made
        _tell([str(finished)])
        return 0


def _evaluate_table(options: Namespace) -> int:
    minimums = parse_minimums(options.fail_under or ())
    baseline = _baseline(options)
    plan = plan_from({**vars(options), "data": _data(options)}, with_spans=options.to_trace, ends_on_ctrl_c=True)
    require_minimums(minimums, [metric.name for metric in plan.metrics])
    _require_writable(options)
    back_fill = BackFill(plan.settings, tool=options.source) if options.to_trace else None
    readers: list[RecordReader] = []

    def begin(reader: RecordReader) -> None:
        readers.append(reader)
        _tell([reader.told] if reader.told else [])

    with ExitStack() as stack:
        if back_fill is not None:
            stack.callback(lambda: back_fill.is_delivered)  # sends what was scored before a failure, too
        on_row = stack.enter_context(progress_on_stderr(quiet=options.quiet))
        emitters = back_fill.emitters if back_fill else ()
        evaluation = run(replace(plan, emitters=emitters, on_begin=begin, on_row=on_row))
    _tell(_skipped(evaluation))
    is_delivered = back_fill is None or _told_delivery(back_fill, readers[0])
    below = shortfalls(evaluation, minimums, allow_skipped=options.allow_skipped) if evaluation.is_complete else {}
    if evaluation.is_complete or evaluation.rows:
        _print_summary(evaluation)
    found = agreements(evaluation)
    for one in found:
        if one.failures is not None:
            print(rate_in_words(one.metric, one.failures))  # noqa: T201 - a command's own words
    if options.json is not None:
        _write_json(options.json, _summary_of(evaluation, below, found))
    if not evaluation.is_complete:
        _tell([_how_to_continue(options, evaluation.rows)])
        return INTERRUPTED
    _write_report(options, evaluation, baseline)
    if plan.output is not None and (kept := journal_of(plan.output)).exists():
        _tell([f"some rows failed: the same command with --resume judges only these again ({kept} is kept for it)"])
    if not evaluation.is_scored:
        _tell([f"nothing was scored: {evaluation.why_not_scored}"])
        return NOT_MET
    _tell(f"--fail-under is not met: {told}" for told in below.values())
    return NOT_MET if below or not is_delivered else 0


def agree_with_labels(data: str, label_column: str | None, json: Path | None, **options: Any) -> int:
    """Evaluate the file, and print how well the metrics agree with its labels; returns the exit code.

    `options` are those of `evaluate`.
    """
    from rich.console import Console

    evaluation = evaluate(data, progress=True, label_column=label_column or "label", **options)
    _tell(_skipped(evaluation))
    if not evaluation.labels:
        raise TableError(f"no row of {data} has a label that says good or bad")
    found = agreements(evaluation)
    console = Console(highlight=False)
    rows = evaluation.rows + evaluation.bad_row_count
    console.print(f"{len(evaluation.labels):,} of {rows:,} rows have a label")
    if found:
        console.print(*agreement_tables(found), sep="\n")
    if json is not None:
        _write_json(json, found)
    if not found:
        _tell([f"none of them has a score: {evaluation.why_not_scored}"])
    return 0 if found else NOT_MET


# Options --------------------------------------------------------------------------------------------------------------


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


def _baseline(options: Namespace) -> ResultFile | None:
    if options.compare is None:
        return None
    if options.report is None:
        raise ConfigurationError("--compare puts two runs side by side in a report: give --report FILE.html, too")
    baseline = ResultFile(options.compare)
    if not baseline.metrics:  # reads the file: an error should come before an hour of judging
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
    if not rows and (options.output is None or not journal_of(options.output).exists()):
        return "Stopped by Ctrl-C before a row was done. Start again with the same command."
    done = f"Stopped by Ctrl-C after {_rows(rows)}" if rows else "Stopped by Ctrl-C"
    if options.output is None:
        return f"{done}. Their scores are not saved: with --output FILE a run can be continued later."
    return (
        f"{done}. What is done is saved in {journal_of(options.output)}: continue with the same command and --resume."
    )


def _told_delivery(back_fill: BackFill, reader: RecordReader) -> bool:
    """Say how many scores were sent; returns whether all were."""
    if reader.span_trouble is not None:
        _tell([f"not sent: {reader.span_troubles:,} rows name no valid span; the first is {reader.span_trouble}"])
    _tell([f"the scores of {reader.traced:,} answers go to {back_fill.tool or 'their spans'}"])
    if not back_fill.is_delivered:
        _tell([f"not everything was sent ({back_fill.unsent:,} spans were not); the log above says why"])
    return back_fill.is_delivered


def _print_summary(evaluation: Evaluation) -> None:
    from rich.console import Console

    table = text_table("", *SUMMARY_HEADER)
    for summary in evaluation.summary.values():
        table.add_row(*summary.cells())
    console = Console(highlight=False)
    console.print(table)
    for text in _worst_answers(evaluation):
        console.print(text, soft_wrap=True)
    for line in [*_not_scored(evaluation), _headline(evaluation)]:
        console.print(line, markup=False)


def _worst_answers(evaluation: Evaluation) -> Iterator[Any]:
    """The first responses of the report's order that fail, and where they do."""
    from rich.text import Text

    failing = sorted((row for row in evaluation.worst if row.failing), key=lambda row: row.badness)
    if failing:
        yield Text("The worst responses" if len(failing) > 1 else "The failing response", style="bold")
        for row in failing[:_WORST_SHOWN]:
            yield from row.told(*row.failing)
        yield Text()


def _not_scored(evaluation: Evaluation) -> list[str]:
    """Why rows have no score, once for all metrics with the same reasons, and without those that the headline has."""
    by_reasons: dict[str, list[str]] = {}
    for summary in evaluation.summary.values():
        by_reasons.setdefault(summary.reasons, []).append(summary.metric)
    if len(by_reasons) == 1:
        told = set(evaluation.skipped.items())
        rest = [f"{reason} {count:,}" for reason, count in summary.not_scored.items() if (reason, count) not in told]
        return [f"not scored: {', '.join(rest)}"] if rest else []
    return [f"not scored by {', '.join(metrics)}: {reasons}" for reasons, metrics in by_reasons.items() if reasons]


def _headline(evaluation: Evaluation) -> str:
    """How much was done, what was skipped and why, in how long, for how much."""
    done, skipped = evaluation.rows + evaluation.bad_row_count, sum(evaluation.skipped.values())
    text = f"{_rows(done - skipped)} evaluated"
    if evaluation.judges:
        text += f" by {', '.join(evaluation.judges)}"
    if skipped:
        text += f", {skipped:,} skipped ({', '.join(f'{reason} {count:,}' for reason, count in evaluation.skipped.items())})"
    new_rows = done - evaluation.resumed
    if evaluation.resumed:
        text += f", {new_rows:,} of the table's rows in this run"
    text += f", {duration(evaluation.seconds)}"
    if new_rows >= evaluation.seconds > 0:
        text += f" ({new_rows / evaluation.seconds:,.0f} rows/s)"
    usage = evaluation.usage
    if usage.requests:
        text += f"; {usage.requests:,} requests, {usage.input_tokens + usage.output_tokens:,} tokens"
    return text + (f", ${usage.usd:.4f}" if usage.usd is not None else "")


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


# Files ----------------------------------------------------------------------------------------------------------------


def _summary_of(evaluation: Evaluation, shortfalls: Mapping[str, str], found: Sequence[MetricAgreement]) -> Any:
    names = ("rows", "seconds", "by_dimension", "usage", "source", "columns", "skipped", "bad_row_count", "bad_rows")
    return {
        **{name: getattr(evaluation, name) for name in names},
        "complete": evaluation.is_complete,
        "metrics": evaluation.summary,
        "below_minimum": shortfalls,
        "agreement": found,
    }


def _write_json(path: Path, figures: Any) -> None:
    text = json_text.dumps(msgspec.to_builtins(figures), indent=2, allow_nan=False) + "\n"
    _write(path, lambda path: path.write_text(text, encoding="utf-8"))


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
