"""What the command says when it is done: a table for people, and the same for machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragspan.datasets.progress import duration
from ragspan.datasets.results import SUMMARY_HEADER, BadRow, Evaluation

if TYPE_CHECKING:
    from rich.table import Table

_BAD_ROWS_SHOWN = 10


def summary_table(evaluation: Evaluation) -> Table:
    """The summary, a line a metric."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(SUMMARY_HEADER):
        table.add_column(name, justify="right" if place else "left", no_wrap=True)
    for summary in evaluation.summary.values():
        table.add_row(*summary.cells())
    return table


def not_scored_lines(evaluation: Evaluation) -> list[str]:
    """Why rows have no score, once for all metrics that have the same to say."""
    by_reasons: dict[str, list[str]] = {}
    for summary in evaluation.summary.values():
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in summary.not_scored.items())
        by_reasons.setdefault(reasons, []).append(summary.metric)
    if len(by_reasons) == 1:
        return [f"not scored: {reasons}" for reasons in by_reasons if reasons]
    return [f"not scored by {', '.join(metrics)}: {reasons}" for reasons, metrics in by_reasons.items() if reasons]


def headline(evaluation: Evaluation) -> str:
    """How much was done, what was skipped and why, in how long, for how much."""
    skipped = sum(evaluation.skipped.values())
    text = f"{rows_in_words(evaluation.rows + evaluation.bad_row_count - skipped)} evaluated"
    if evaluation.judges:
        text += f" by {', '.join(evaluation.judges)}"
    if skipped:
        text += f", {skipped:,} skipped ({', '.join(f'{reason} {count:,}' for reason, count in evaluation.skipped.items())})"
    new_rows = evaluation.rows + evaluation.bad_row_count - evaluation.resumed
    if evaluation.resumed:
        text += f", {new_rows:,} of the table's rows in this run"
    text += f", {duration(evaluation.seconds)}"
    if new_rows >= evaluation.seconds > 0:
        text += f" ({new_rows / evaluation.seconds:,.0f} rows/s)"
    usage = evaluation.usage
    if usage.requests:
        text += f"; {usage.requests:,} requests, {usage.input_tokens + usage.output_tokens:,} tokens"
    return text + (f", ${usage.usd:.4f}" if usage.usd is not None else "")


def rows_in_words(count: int) -> str:
    """A number of rows."""
    return "1 row" if count == 1 else f"{count:,} rows"


def bad_row_lines(bad_rows: Iterable[BadRow], count: int) -> list[str]:
    """The first bad rows, and how many more there are."""
    lines = [f"skipped {bad}" for bad, _ in zip(bad_rows, range(_BAD_ROWS_SHOWN), strict=False)]
    if count > len(lines):
        lines.append(f"... and {count - len(lines):,} more; --json lists them")
    return lines


def as_plain(evaluation: Evaluation, shortfalls: Mapping[str, str]) -> dict[str, Any]:
    """The summary as JSON has it."""
    return {
        "rows": evaluation.rows,
        "complete": evaluation.is_complete,
        "seconds": round(evaluation.seconds, 3),
        "metrics": {metric: asdict(summary) for metric, summary in evaluation.summary.items()},
        "usage": asdict(evaluation.usage),
        "source": evaluation.source,
        "columns": evaluation.columns,
        "skipped": dict(evaluation.skipped),
        "bad_row_count": evaluation.bad_row_count,
        "bad_rows": [asdict(bad) for bad in evaluation.bad_rows],
        "below_minimum": dict(shortfalls),
    }
