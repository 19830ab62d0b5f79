"""An evaluation in words and tables, for a terminal and for `print`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ragspan.datasets.progress import duration
from ragspan.datasets.summaries import SUMMARY_HEADER

if TYPE_CHECKING:
    from rich.console import Console

    from ragspan.datasets.results import Evaluation

_WORST_SHOWN = 3
_WIDTH = 120  # of a text that is not printed to a terminal
_COUNTS = {
    "refusal": ("refusal", "refusals"),
    "cannot_tell": ("unsure", "unsure"),
    "no_contexts": ("without contexts", "without contexts"),
}


def print_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print the figures of each metric, the worst responses, and what was done."""
    console.print(summary_table(evaluation))
    for text in _worst_answers(evaluation):
        console.print(text, soft_wrap=True)
    for line in [*_not_scored(evaluation), headline(evaluation)]:
        console.print(line, markup=False)


def as_text(evaluation: Evaluation) -> str:
    """The table of figures with what was done, without colours."""
    from rich.console import Console

    written = io.StringIO()
    console = Console(file=written, highlight=False, width=_WIDTH)
    console.print(summary_table(evaluation))
    for line in [*_not_scored(evaluation), headline(evaluation)]:
        console.print(line, markup=False, soft_wrap=True)
    return "\n".join(line.rstrip() for line in written.getvalue().strip("\n").splitlines())


def summary_table(evaluation: Evaluation) -> Any:
    """A line for each metric."""
    table = text_table("", *SUMMARY_HEADER)
    for summary in evaluation.summary.values():
        table.add_row(*summary.cells())
    return table


def text_table(title: str, *headings: str) -> Any:
    """An empty table of Rich's."""
    from rich import box
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in {"", "metric"} else "right", no_wrap=True)
    return table


def headline(evaluation: Evaluation) -> str:
    """How much was done, what was skipped and why, in how long, for how much."""
    done, skipped = evaluation.rows + evaluation.bad_row_count, sum(evaluation.skipped.values())
    text = f"{rows_in_words(done - skipped)} evaluated"
    if evaluation.judges:
        text += f" by {', '.join(evaluation.judges)}"
    for counted in counted_rows(evaluation):
        text += f", {counted}"
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


def counted_rows(evaluation: Evaluation) -> list[str]:
    """How many rows are refusals, how many nobody can tell of, and how many had no contexts, in words."""
    counts = ((evaluation.special.get(reason, 0), words) for reason, words in _COUNTS.items())
    return [f"{count:,} {one if count == 1 else more}" for count, (one, more) in counts if count]


def rows_in_words(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def _worst_answers(evaluation: Evaluation) -> Iterator[Any]:
    """The first responses of the report's order that fail, and where they do."""
    from rich.text import Text

    failing = evaluation.worst_responses
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
        told = {*evaluation.skipped.items(), *evaluation.special.items()}
        rest = [f"{reason} {count:,}" for reason, count in summary.not_scored.items() if (reason, count) not in told]
        return [f"not scored: {', '.join(rest)}"] if rest else []
    return [f"not scored by {', '.join(metrics)}: {reasons}" for reasons, metrics in by_reasons.items() if reasons]
