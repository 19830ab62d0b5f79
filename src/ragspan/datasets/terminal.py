"""What `ragspan evaluate` shows: its progress on stderr, and in the end a table for people and the same for programs."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TextIO

from ragspan.datasets.progress import RunProgress
from ragspan.datasets.results import SUMMARY_HEADER, BadRow, Evaluation

if TYPE_CHECKING:
    from rich.table import Table

_BAR_PAUSE = 0.2  # seconds between two drawings
_LINE_PAUSE = 10.0  # seconds between two lines
_MINUTE, _HOUR = 60, 3600
_BAD_ROWS_SHOWN = 10


@contextlib.contextmanager
def progress_on_stderr(
    *, quiet: bool = False, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[RunProgress], None]]:
    """A function to call with each row that is done: it draws a bar on a terminal, else it prints a line every so often.

    Args:
        quiet: print lines, even on a terminal.
        file: in place of stderr.
        clock: seconds that do not go backwards.
    """
    target = sys.stderr if file is None else file
    if quiet or not target.isatty():
        yield ProgressDisplay(lambda text, _: print(text, file=target, flush=True), pause=_LINE_PAUSE, clock=clock)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=Console(file=target, highlight=False), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield ProgressDisplay(
            lambda text, share: bar.update(task, description=text, completed=share or 0.0),
            pause=_BAR_PAUSE,
            clock=clock,
        )


class ProgressDisplay:
    """Shows how far a run is, but not more often than every few seconds.

    Args:
        show: is given the words, and the share that is done.
        pause: seconds from one call of `show` to the next, and to the first.
        clock: seconds that do not go backwards.
    """

    def __init__(
        self, show: Callable[[str, float | None], object], *, pause: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._show, self._pause, self._clock = show, pause, clock
        self._next = clock() + pause
        # The rate counts from the first row that an earlier run had not done.
        self._began, self._done_before, self._share_before = clock(), 0, 0.0

    def __call__(self, progress: RunProgress) -> None:
        now = self._clock()
        if progress.resumed == progress.done:
            self._began, self._done_before, self._share_before = now, progress.done, progress.share or 0.0
        if now >= self._next:
            self._next = now + self._pause
            self._show(self._words(progress, now - self._began), progress.share)

    def _words(self, progress: RunProgress, seconds: float) -> str:
        share, done = progress.share, progress.done - self._done_before
        parts = [f"{progress.done:,} rows" + ("" if share is None else f" ({share:.0%})")]
        if done and seconds > 0:
            parts.append(f"{done / seconds:,.1f} rows/s")
        if share is not None and share > self._share_before:
            parts.append(f"{duration(seconds * (1 - share) / (share - self._share_before))} left")
        means = {metric: tally.mean for metric, tally in progress.tallies.items()}
        parts += [f"{metric} {mean:.3f}" for metric, mean in means.items() if mean is not None]
        if progress.bad_row_count:
            parts.append(f"{progress.bad_row_count:,} bad")
        if progress.usage.usd is not None:
            parts.append(f"${progress.usage.usd:.4f}")
        return " · ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    whole = round(seconds)
    if whole >= _HOUR:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"
    return f"{whole // _MINUTE} min {whole % _MINUTE:02} s" if whole >= _MINUTE else f"{whole} s"


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
    """Why rows have no score, once for all metrics with the same reasons."""
    by_reasons: dict[str, list[str]] = {}
    for summary in evaluation.summary.values():
        by_reasons.setdefault(summary.reasons, []).append(summary.metric)
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
        "by_dimension": {
            name: {value: {metric: asdict(one) for metric, one in by.items()} for value, by in values.items()}
            for name, values in evaluation.by_dimension.items()
        },
        "usage": asdict(evaluation.usage),
        "source": evaluation.source,
        "columns": evaluation.columns,
        "skipped": dict(evaluation.skipped),
        "bad_row_count": evaluation.bad_row_count,
        "bad_rows": [asdict(bad) for bad in evaluation.bad_rows],
        "below_minimum": dict(shortfalls),
    }
