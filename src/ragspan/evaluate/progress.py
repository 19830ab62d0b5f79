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
from ragspan.evaluate.evaluated import Evaluation, duration
from ragspan.evaluate.outages import JudgeOutage
from ragspan.evaluate.rows import BAD_ROWS_KEPT, WORST_KEPT, BadRow, EvaluatedRow, named_judge
from ragspan.evaluate.summaries import SKIPPED_REASONS, MetricSummary, MetricTally
from ragspan.judge_share import JudgeShare
from ragspan.judges.judge_protocols import CANNOT_TELL
from ragspan.metrics.metric import REFUSAL
from ragspan.outcomes import Asked, MetricFailure, NotApplicable, Outcome, Score, is_passing
from ragspan.records import RagRecord, RetrievedContext
from ragspan.telemetry.content import MAX_DIMENSION_VALUES
from ragspan.telemetry.semconv import DIMENSION_OTHER
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
        by: entries of the records' metadata by which scores are also counted.
        share: of the rows that a judge is asked about; None asks it about all.
        shared: the names of the metrics that ask it about a share.
    """

    def __init__(
        self,
        metrics: Sequence[str],
        share_done: Callable[[int], float | None] = lambda _: None,
        by: Sequence[str] = (),
        share: JudgeShare | None = None,
        shared: frozenset[str] = frozenset(),
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
        self.passing = 0
        """Outcomes that another try may change."""
        self.outage: JudgeOutage | None = None
        """Of the judge that is waited for."""
        self.usage = Usage()
        self._share, self._shared = share, shared
        self.tallies = {metric: self._new_tally(metric) for metric in metrics}
        self._failing = 0
        self._failures: dict[str, str] = {}
        """What they said, by type: the first of each."""
        self._labels: dict[int, bool] = {}
        self._bad_rows: list[BadRow] = []
        self._skipped: Counter[str] = Counter()
        self._special: Counter[str] = Counter()
        self._judged: Counter[str] = Counter()
        self._began = time.monotonic()
        self._share_done = share_done
        self._lowest: dict[str, list[tuple[float, int, EvaluatedRow]]] = {metric: [] for metric in metrics}
        self._by = by
        self._groups: dict[tuple[str, str, str], MetricTally] = {}
        """By dimension, value and metric."""
        self._values: dict[str, set[str]] = {}
        """Of each dimension, bounded."""

    @property
    def done(self) -> int:
        """Rows of the table, bad ones included."""
        return self.rows + self.bad_row_count

    @property
    def share_done(self) -> float | None:
        if self.total is not None:
            return self.done / max(self.total, 1)
        return self._share_done(self.done or self.read)

    def is_replaced(self, metric: str, outcome: Outcome, asked: Asked | None) -> bool:
        """Whether the embedded judge's score stands in for that of the judge, which failed, or which the budget denied."""
        is_asked = asked is not None and metric in self._shared
        return is_asked and isinstance(outcome, Score) and outcome.fallback is not None

    def add(self, done: EvaluatedRow | BadRow) -> None:
        if isinstance(done, BadRow):
            self.bad_row_count += 1
            self._skipped["unreadable"] += 1
            if len(self._bad_rows) < BAD_ROWS_KEPT:
                self._bad_rows.append(done)
            return
        self.rows += 1
        self._failing += bool(done.failing)
        if done.label is not None:
            self._labels[done.row] = done.label
        outcomes = done.outcomes.values()
        self._special.update({reason for outcome in outcomes if (reason := _special(outcome))})
        self._skipped.update([reason for reason in map(_skipped, outcomes) if reason][:1])
        self._judged.update({judge for outcome in outcomes if isinstance(outcome, Score) for judge in _judges(outcome)})
        groups = list(dict.fromkeys(self._groups_of(done.record)))
        for metric, outcome in done.outcomes.items():
            self.tallies[metric].add(outcome, done.asked)
            self.passing += is_passing(outcome) or self.is_replaced(metric, outcome, done.asked)
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

    def _groups_of(self, record: RagRecord) -> Iterator[tuple[str, str]]:
        """The dimensions of a record with its values; an answer may have contexts of several sources."""
        found = [(name, record.metadata.get(name)) for name in self._by]
        found += [(SOURCE, source_of(one)) for one in record.contexts or () if SOURCE not in self._by]
        for name, value in found:
            if isinstance(value, (str, int, float)):
                known = self._values.setdefault(name, set())
                if len(known) < MAX_DIMENSION_VALUES:
                    known.add(str(value))
                yield name, str(value) if str(value) in known else DIMENSION_OTHER

    def _new_tally(self, metric: str) -> MetricTally:
        return MetricTally(has_share=metric in self._shared)

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
            failing=self._failing,
            special=dict(self._special),
            judged=dict(self._judged.most_common()),
            resumed=self.resumed,
            usage=self.usage,
            seconds=time.monotonic() - self._began,
            scores={metric: tally.scores for metric, tally in self.tallies.items()},
            by_dimension=by_dimension,
            labels=self._labels,
            judge_share=self._share,
            **more,
        )


def source_of(context: RetrievedContext) -> str | None:
    """Where a context is from, as it or its metadata says."""
    named = (context.metadata.get(name) for name in field_names.SOURCE)
    return context.source or next((name for name in named if isinstance(name, str) and name), None)


def _judges(score: Score) -> Iterator[str]:
    if (judge := named_judge(score)) is not None:
        yield judge
    if score.screen is not None and score.screen.judge is not None:
        yield score.screen.judge


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
    *, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[RunProgress], None]]:
    """A function to call with each row that is done: on a terminal it renews a line, else it adds one every ten seconds."""
    target = sys.stderr if file is None else file
    if not target.isatty():
        yield _Display(lambda text: print(text, file=target, flush=True), _LINE_PAUSE, _WAITING_PAUSE, clock)
        return
    from rich.console import Console
    from rich.text import Text

    with Console(file=target).status("") as status:
        yield _Display(lambda text: status.update(Text(text)), _STATUS_PAUSE, _STATUS_PAUSE, clock)


class _Display:
    """Says how far a run is, with a pause in seconds between two times, and with another one while it waits for a judge."""

    def __init__(
        self, show: Callable[[str], object], pause: float, waiting_pause: float, clock: Callable[[], float]
    ) -> None:
        self._show, self._pause, self._waiting_pause, self._clock = show, pause, waiting_pause, clock
        self._shown, self._says_waiting = clock(), False
        # The rate counts from the first row that an earlier run had not done.
        self._began, self._done_before, self._share_before = clock(), 0, 0.0

    def __call__(self, progress: RunProgress) -> None:
        now = self._clock()
        if progress.resumed == progress.done:
            self._began, self._done_before, self._share_before = now, progress.done, progress.share_done or 0.0
        is_waiting = progress.outage is not None
        if now - self._shown >= (self._waiting_pause if is_waiting and self._says_waiting else self._pause):
            self._shown, self._says_waiting = now, is_waiting
            self._show(self._words(progress, now - self._began))

    def _words(self, progress: RunProgress, seconds: float) -> str:
        share, done = progress.share_done, progress.done - self._done_before
        percent = "" if share is None else f" ({share:.0%})"
        if progress.total is None and progress.read:
            return f"{progress.read:,} rows read by the embedded judge{percent}"
        parts = [f"{progress.done:,} rows{percent}"]
        if (outage := progress.outage) is not None:
            left = max(outage.patience - outage.seconds, 0)
            words = f"{outage.failure.error_type}: {outage.failure.message}"[:_LONGEST_REASON]
            since = f"since {duration(outage.seconds)}, for {duration(left)} more ({words})"
            return f"{parts[0]} · waiting for the judge of {outage.metric} {since}"
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
