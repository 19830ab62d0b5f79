"""What a run over a table has done so far: its rows, their scores, the lowest of them, and how that is shown."""

from __future__ import annotations

import contextlib
import sys
import time
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from ragspan import field_names
from ragspan.engine.patience import Away
from ragspan.engine.table_share import TableShare
from ragspan.evaluate.evaluated import Evaluation, duration
from ragspan.evaluate.results import BAD_ROWS_KEPT, WORST_KEPT, BadRow, EvaluatedRow
from ragspan.evaluate.summaries import SKIPPED_REASONS, MetricSummary, MetricTally
from ragspan.judges.judge_protocols import CANNOT_TELL
from ragspan.metrics.metric import REFUSAL
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, is_passing
from ragspan.records import RagRecord, RetrievedContext
from ragspan.telemetry.content import MAX_DIMENSION_VALUES, Dimensions
from ragspan.telemetry.semconv import DIMENSION, DIMENSION_OTHER
from ragspan.usage import Usage

_STATUS_PAUSE = 0.2  # seconds between two times on a terminal
_LINE_PAUSE = 10.0  # seconds between two lines
_WAITING_PAUSE = 60.0  # the same between two that say that a judge is waited for
SOURCE = "source"
"""What the sources of contexts are called among the dimensions, unless a dimension of the user's has this name."""
_SPECIAL = frozenset({REFUSAL, CANNOT_TELL, "no_contexts"})
_FAILURES_KEPT = 100  # types
_LONGEST_REASON = 200  # characters


class RunProgress:
    """Counts what a run does; in the end it makes the result.

    Args:
        metrics: by name, in their order.
        share_done: of the table, from 0 to 1, for a number of rows; None where its size is not known.
        dimensions: of the records, by which scores are also counted.
        share: of the rows, where a judge is asked about a share of them only.
    """

    def __init__(
        self,
        metrics: Sequence[str],
        share_done: Callable[[int], float | None] = lambda _: None,
        dimensions: Dimensions | None = None,
        share: TableShare | None = None,
    ) -> None:
        self.read = 0
        """Rows that the embedded judge has read to tell which ones the judge is asked about."""
        self.total: int | None = None
        """Rows of the table, once all have been read."""
        self.rows = 0
        """Records that were evaluated, those of earlier runs included."""
        self.resumed = 0
        """Rows of earlier runs among all."""
        self.bad_row_count = 0
        self.failing = 0
        """Rows that fail at least one metric."""
        self.passing = 0
        """Outcomes that another try may change."""
        self.away: Away | None = None
        """The judge that is waited for."""
        self.usage = Usage()
        self._share = share
        self.tallies = {metric: self._new_tally(metric) for metric in metrics}
        self._failures: dict[str, str] = {}
        """What they said, by type: the first of each."""
        self._labels: dict[int, bool] = {}
        self._bad_rows: list[BadRow] = []
        self._skipped: Counter[str] = Counter()
        self._special: Counter[str] = Counter()
        self._began = time.monotonic()
        self._share_done = share_done
        self._lowest: dict[str, list[tuple[float, int, EvaluatedRow]]] = {metric: [] for metric in metrics}
        self._dimensions = dimensions or Dimensions()
        self._groups: dict[tuple[str, str, str], MetricTally] = {}
        """By dimension, value and metric."""
        self._sources: set[str] = set()

    @property
    def done(self) -> int:
        """Rows of the table, bad ones included."""
        return self.rows + self.bad_row_count

    @property
    def share(self) -> float | None:
        if self.total is not None:
            return self.done / max(self.total, 1)
        return self._share_done(self.done or self.read)

    def add(self, done: EvaluatedRow | BadRow) -> None:
        if isinstance(done, BadRow):
            self.bad_row_count += 1
            self._skipped["unreadable"] += 1
            if len(self._bad_rows) < BAD_ROWS_KEPT:
                self._bad_rows.append(done)
            return
        self.rows += 1
        self.failing += bool(done.failing)
        if done.label is not None:
            self._labels[done.row] = done.label
        self._special.update({reason for outcome in done.outcomes.values() if (reason := _special(outcome))})
        self._skipped.update([reason for reason in map(_skipped, done.outcomes.values()) if reason][:1])
        groups = [*self._dimensions_of(done.record), *self._sources_of(done.record)]
        for metric, outcome in done.outcomes.items():
            self.tallies[metric].add(outcome, done.asked)
            self.passing += is_passing(outcome) or self._is_replaced(metric, done)
            if isinstance(outcome, MetricFailure) and len(self._failures) < _FAILURES_KEPT:
                self._failures.setdefault(outcome.error_type, outcome.message)
            for name, value in groups:
                key = (name, value, metric)
                if key not in self._groups:
                    self._groups[key] = self._new_tally(metric)
                self._groups[key].add(outcome, done.asked)
            if isinstance(outcome, Score):
                lowest = self._lowest[metric]
                insort(lowest, (outcome.value, done.row, done))
                del lowest[WORST_KEPT:]
            if outcome.usage is not None:
                self.usage += outcome.usage

    def _dimensions_of(self, record: RagRecord) -> Iterator[tuple[str, str]]:
        for name, value in self._dimensions.bounded(record).items():
            yield name.removeprefix(DIMENSION), value

    def _sources_of(self, record: RagRecord) -> Iterator[tuple[str, str]]:
        """The sources of its contexts, each once: an answer may have several."""
        if SOURCE in self._dimensions.names:
            return
        sources = dict.fromkeys(map(_source_of, record.contexts or ()))
        for source in dict.fromkeys(self._bounded_source(source) for source in sources if source):
            yield SOURCE, source

    def _bounded_source(self, source: str) -> str:
        if len(self._sources) < MAX_DIMENSION_VALUES:
            self._sources.add(source)
        return source if source in self._sources else DIMENSION_OTHER

    def _new_tally(self, metric: str) -> MetricTally:
        return MetricTally(has_share=self._share is not None and metric in self._share.metrics)

    def _is_replaced(self, metric: str, done: EvaluatedRow) -> bool:
        return self._share is not None and self._share.is_replaced(metric, done.outcomes[metric], done.asked)

    def evaluation(self, **more: Any) -> Evaluation:
        """The result so far, with the fields that are not counted here."""
        worst = {row: done for lowest in self._lowest.values() for _, row, done in lowest}
        by_dimension: dict[str, dict[str, dict[str, MetricSummary]]] = {}
        for (name, value, metric), tally in sorted(self._groups.items(), key=lambda item: item[0][:2]):
            by_dimension.setdefault(name, {}).setdefault(value, {})[metric] = tally.summary(metric)
        return Evaluation(
            metrics=tuple(self.tallies),
            rows=self.rows,
            summary={metric: tally.summary(metric) for metric, tally in self.tallies.items()},
            worst=tuple(worst[row] for row in sorted(worst)),
            bad_rows=tuple(self._bad_rows),
            bad_row_count=self.bad_row_count,
            skipped=dict(self._skipped.most_common()),
            failures=self._failures,
            failing=self.failing,
            special=dict(self._special),
            resumed=self.resumed,
            usage=self.usage,
            seconds=time.monotonic() - self._began,
            scores={metric: tally.scores for metric, tally in self.tallies.items()},
            by_dimension=by_dimension,
            labels=self._labels,
            judge_share=None if self._share is None else self._share.share,
            **more,
        )


def _source_of(context: RetrievedContext) -> str | None:
    """Where a context is from, as it or its metadata says."""
    named = (context.metadata.get(name) for name in field_names.SOURCE)
    return context.source or next((name for name in named if isinstance(name, str) and name), None)


def _skipped(outcome: Outcome) -> str | None:
    """Why there is no score, where there should be one."""
    if isinstance(outcome, MetricFailure):
        return outcome.error_type
    return outcome.reason if isinstance(outcome, NotApplicable) and outcome.reason in SKIPPED_REASONS else None


def _special(outcome: Outcome) -> str | None:
    """What the row is, where the outcome is not a fault of anybody's."""
    return outcome.reason if isinstance(outcome, NotApplicable) and outcome.reason in _SPECIAL else None


# On the terminal ------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def progress_on_stderr(
    *, quiet: bool = False, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[RunProgress], None]]:
    """A function to call with each row that is done: on a terminal it renews a line unless it is `quiet`, else it adds lines."""
    target = sys.stderr if file is None else file
    if quiet or not target.isatty():
        yield ProgressDisplay(
            lambda text: print(text, file=target, flush=True),
            pause=_LINE_PAUSE,
            waiting_pause=_WAITING_PAUSE,
            clock=clock,
        )
        return
    from rich.console import Console
    from rich.text import Text

    with Console(file=target).status("") as status:
        yield ProgressDisplay(
            lambda text: status.update(Text(text)), pause=_STATUS_PAUSE, waiting_pause=_STATUS_PAUSE, clock=clock
        )


class ProgressDisplay:
    """Says how far a run is, with a pause in seconds between two times, and with another one while it waits for a judge."""

    def __init__(
        self,
        show: Callable[[str], object],
        *,
        pause: float,
        waiting_pause: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._show, self._pause, self._waiting_pause, self._clock = show, pause, waiting_pause, clock
        self._shown, self._says_waiting = clock(), False
        # The rate counts from the first row that an earlier run had not done.
        self._began, self._done_before, self._share_before = clock(), 0, 0.0

    def __call__(self, progress: RunProgress) -> None:
        now = self._clock()
        if progress.resumed == progress.done:
            self._began, self._done_before, self._share_before = now, progress.done, progress.share or 0.0
        is_waiting = progress.away is not None
        if now - self._shown >= (self._waiting_pause if is_waiting and self._says_waiting else self._pause):
            self._shown, self._says_waiting = now, is_waiting
            self._show(self._words(progress, now - self._began))

    def _words(self, progress: RunProgress, seconds: float) -> str:
        share, done = progress.share, progress.done - self._done_before
        parts = [f"{progress.done:,} rows" + ("" if share is None else f" ({share:.0%})")]
        if progress.total is None and progress.read:
            return f"{progress.read:,} rows read by the embedded judge" + ("" if share is None else f" ({share:.0%})")
        if progress.away is not None:
            return f"{parts[0]} · {_waiting(progress.away)}"
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


def _waiting(away: Away) -> str:
    """What is waited for, and why."""
    left = max(away.patience - away.seconds, 0)
    words = f"{away.failure.error_type}: {away.failure.message}"[:_LONGEST_REASON]
    return f"waiting for the judge of {away.metric} since {duration(away.seconds)}, for {duration(left)} more ({words})"
