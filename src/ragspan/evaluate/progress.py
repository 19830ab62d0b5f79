"""What a run over a table has done so far: its rows and their scores, and how that is shown."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text

from ragspan.counted import counted
from ragspan.evaluate.evaluation import Evaluation, duration
from ragspan.evaluate.rows import BadRow, EvaluatedRow, named_judge
from ragspan.evaluate.summaries import SKIPPED_REASONS, MetricTally
from ragspan.outcomes import Asked, MetricFailure, NotApplicable, Outcome, Score, is_passing
from ragspan.telemetry.content import MAX_DIMENSION_VALUES
from ragspan.telemetry.semconv import DIMENSION_OTHER
from ragspan.usage import Usage

_BAD_ROWS_KEPT = 10_000
_TERMINAL_PAUSE, _LINE_PAUSE, _WAITING_PAUSE = 0.2, 10.0, 60.0
"""Seconds between two times on a terminal, two lines of a log, and two that say that a judge is waited for."""


class RunProgress:
    """Counts what a run does; in the end it makes the result.

    Args:
        metrics: by name, in their order.
        by: entries of the records' metadata by which scores are also counted.
        shared: the names of the metrics whose judge is asked about a share of the rows.
    """

    def __init__(self, metrics: Sequence[str], by: Sequence[str] = (), shared: Collection[str] = ()) -> None:
        self.read = self.rows = self.resumed = self.bad_row_count = 0
        """Rows that the embedded judge has read to tell which ones the judge is asked about; records that were evaluated; of these and
        the bad rows those of earlier runs; bad rows."""
        self.share_done: float | None = None
        """The share of the table's rows that are done, from 0 to 1; None where its size is not known."""
        self.is_reading = False
        """Whether the embedded judge reads the rows, and none is done yet."""
        self.outage: str | None = None
        """Which judge is waited for."""
        self.usage = Usage()
        self._shared = frozenset(shared)
        self.tallies = {metric: MetricTally(has_share=metric in shared) for metric in metrics}
        self._groups: dict[str, dict[str, dict[str, MetricTally]]] = {name: {} for name in by}
        self._labelled = self._failing = self._passing = 0
        self._failures: dict[str, str] = {}
        self._labels: dict[int, bool] = {}
        self._bad_rows: list[BadRow] = []
        self._skipped: Counter[str] = Counter()
        self._judged: Counter[str] = Counter()
        self._began = time.monotonic()

    @property
    def done(self) -> int:
        """Rows of the table, bad ones included."""
        return self.rows + self.bad_row_count

    def add(self, done: EvaluatedRow | BadRow) -> None:
        if isinstance(done, BadRow):
            self.bad_row_count += 1
            self._skipped["unreadable"] += 1
            if len(self._bad_rows) < _BAD_ROWS_KEPT:
                self._bad_rows.append(done)
            return
        self.rows += 1
        scores = done.scores.values()
        self._labelled += any(one.label for one in scores)
        self._failing += bool(done.failing)
        if done.label is not None:
            self._labels[done.row] = done.label
        judges = {named_judge(one) for one in scores} | {one.screen.judge for one in scores if one.screen}
        self._judged.update(judge for judge in judges if judge is not None)
        counting, skipped = [self.tallies, *self._groups_of(done)], []
        for metric, outcome in done.outcomes.items():
            for tallies in counting:
                tallies[metric].add(outcome, done.asked)
            self._passing += is_passing(outcome) or is_replaced(outcome, done.asked)
            self.usage += outcome.usage or Usage()
            if isinstance(outcome, MetricFailure):
                skipped.append(outcome.error_type)
                self._failures.setdefault(outcome.error_type, outcome.message)
            elif isinstance(outcome, NotApplicable) and outcome.reason in SKIPPED_REASONS:
                skipped.append(outcome.reason)
        self._skipped.update(skipped[:1])

    def _groups_of(self, done: EvaluatedRow) -> Iterator[dict[str, MetricTally]]:
        for name, known in self._groups.items():
            value = done.record.metadata.get(name)
            if isinstance(value, (str, int, float)):
                key = str(value) if str(value) in known or len(known) < MAX_DIMENSION_VALUES else DIMENSION_OTHER
                new = {metric: MetricTally(has_share=metric in self._shared) for metric in self.tallies}
                yield known.setdefault(key, new)

    def evaluation(self, **more: Any) -> Evaluation:
        """The result so far, with the fields that are not counted here."""

        def summed_up(tallies: dict[str, MetricTally]) -> dict[str, Any]:
            return {metric: tally.summary(metric) for metric, tally in tallies.items()}

        groups = {
            name: {value: summed_up(tallies) for value, tallies in sorted(values.items())}
            for name, values in self._groups.items()
            if values
        }
        return Evaluation(
            metrics=tuple(self.tallies),
            rows=self.rows,
            summary=summed_up(self.tallies),
            bad_rows=tuple(self._bad_rows),
            bad_row_count=self.bad_row_count,
            skipped=dict(self._skipped.most_common()),
            failures=self._failures,
            labelled=self._labelled,
            failing=self._failing,
            judged=dict(self._judged.most_common()),
            resumed=self.resumed,
            usage=self.usage,
            seconds=time.monotonic() - self._began,
            by_dimension=groups,
            labels=self._labels,
            has_passing=self._passing > 0,
            **more,
        )


def is_replaced(outcome: Outcome, asked: Asked | None) -> bool:
    """Whether the embedded judge's score stands in for that of the judge, which failed, or which the budget denied."""
    return asked is not None and isinstance(outcome, Score) and outcome.fallback is not None


@contextlib.contextmanager
def progress_on_stderr(
    *, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[RunProgress], None]]:
    """A function to call with each row that is done: on a terminal it renews a line, else it adds one every ten seconds."""
    target = sys.stderr if file is None else file
    least = pause = _TERMINAL_PAUSE if target.isatty() else _LINE_PAUSE
    began = shown = clock()
    done_before = 0
    with contextlib.ExitStack() as stack:
        status = stack.enter_context(Console(file=target).status("")) if target.isatty() else None

        def display(progress: RunProgress) -> None:
            nonlocal began, shown, done_before, pause
            now = clock()
            if progress.resumed == progress.done:  # the rate counts from the first row that an earlier run had not done
                began, done_before = now, progress.done
            if now - shown < pause:
                return
            shown, pause = now, _WAITING_PAUSE if progress.outage and status is None else least
            words = _words(progress, progress.done - done_before, now - began)
            if status is not None:
                status.update(Text(words))
            else:
                print(words, file=target, flush=True)

        yield display


def _words(progress: RunProgress, done: int, seconds: float) -> str:
    share = progress.share_done
    percent = "" if share is None else f" ({share:.0%})"
    if progress.is_reading:
        return f"{counted(progress.read, 'row', grouped=True)} read by the embedded judge{percent}"
    parts = [f"{counted(progress.done, 'row', grouped=True)}{percent}"]
    if progress.outage is not None:
        return f"{parts[0]} · {progress.outage}"
    if done and seconds > 0:
        parts.append(f"{done / seconds:,.1f} rows/s")
        if share:
            parts.append(f"{duration(seconds * (1 - share) / share * progress.done / done)} left")
    means = {metric: tally.mean for metric, tally in progress.tallies.items()}
    parts += [f"{metric} {mean:.3f}" for metric, mean in means.items() if mean is not None]
    parts += [f"{progress.bad_row_count:,} bad"] if progress.bad_row_count else []
    parts += [f"${progress.usage.usd:.4f}"] if progress.usage.usd is not None else []
    return " · ".join(parts)
