"""What a run over a table has done so far: its rows, their scores, and the lowest of them."""

from __future__ import annotations

import heapq
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ragspan.datasets.results import (
    BAD_ROWS_KEPT,
    SKIPPED_REASONS,
    WORST_KEPT,
    BadRow,
    EvaluatedRow,
    Evaluation,
    MetricSummary,
    MetricTally,
    ResultRow,
)
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, Usage
from ragspan.telemetry.content import Dimensions
from ragspan.telemetry.semconv import DIMENSION


class LowestScores:
    """At most `WORST_KEPT` rows of each metric; of rows with equal scores the earlier ones."""

    def __init__(self, metrics: Iterable[str]) -> None:
        # The root of each heap is its best row, which goes first: of equals the latest.
        self._heaps: dict[str, list[tuple[float, int, EvaluatedRow]]] = {metric: [] for metric in metrics}

    def offer(self, evaluated: EvaluatedRow) -> None:
        """Keep the row if it is among the lowest so far."""
        for metric, heap in self._heaps.items():
            outcome = evaluated.outcomes.get(metric)
            if isinstance(outcome, Score):
                put = heapq.heappush if len(heap) < WORST_KEPT else heapq.heappushpop
                put(heap, (-outcome.value, -evaluated.row, evaluated))

    def rows(self) -> tuple[EvaluatedRow, ...]:
        """All of them, in the order of the table, each once."""
        kept = {evaluated.row: evaluated for heap in self._heaps.values() for _, _, evaluated in heap}
        return tuple(kept[row] for row in sorted(kept))


class RunProgress:
    """What a run has done so far: what its progress shows, and in the end its result."""

    def __init__(
        self, metrics: Sequence[str], share_done: Callable[[int], float | None], dimensions: Dimensions | None = None
    ) -> None:
        self.rows = 0
        """Records that were evaluated, those of earlier runs included."""
        self.resumed = 0
        """Rows of earlier runs among all."""
        self.bad_rows: list[BadRow] = []
        """The first of them."""
        self.bad_row_count = 0
        self.usage = Usage()
        self.tallies = {metric: MetricTally() for metric in metrics}
        self._skipped: Counter[str] = Counter()
        self._began = time.monotonic()
        self._lowest = LowestScores(metrics)
        self._share_done = share_done
        self._dimensions = dimensions or Dimensions()
        self._groups: defaultdict[tuple[str, str, str], MetricTally] = defaultdict(MetricTally)
        """By dimension, value and metric."""

    @property
    def done(self) -> int:
        """Rows of the table, bad ones included."""
        return self.rows + self.bad_row_count

    @property
    def share(self) -> float | None:
        """Of the table, from 0 to 1; None where its size is not known."""
        return self._share_done(self.done)

    def add(self, done: EvaluatedRow | BadRow) -> None:
        if isinstance(done, BadRow):
            self.bad_row_count += 1
            self._skipped["unreadable"] += 1
            if len(self.bad_rows) < BAD_ROWS_KEPT:
                self.bad_rows.append(done)
            return
        self.rows += 1
        self._lowest.offer(done)
        self._skipped.update([reason for reason in map(_skipped, done.outcomes.values()) if reason][:1])
        groups = self._dimensions.bounded(done.record)
        for metric, outcome in done.outcomes.items():
            result = ResultRow.from_outcome(outcome, row=done.row, record_id=done.record.record_id, metric=metric)
            threshold = getattr(outcome, "threshold", None)
            self.tallies[metric].add(result, threshold)
            for name, value in groups.items():
                self._groups[name.removeprefix(DIMENSION), value, metric].add(result, threshold)
            if isinstance(outcome, Score) and outcome.usage is not None:
                self.usage += outcome.usage

    def evaluation(self, **more: Any) -> Evaluation:
        return Evaluation(
            metrics=tuple(self.tallies),
            rows=self.rows,
            summary={metric: tally.summary(metric) for metric, tally in self.tallies.items()},
            worst=self._lowest.rows(),
            bad_rows=tuple(self.bad_rows),
            bad_row_count=self.bad_row_count,
            skipped=dict(self._skipped.most_common()),
            resumed=self.resumed,
            usage=self.usage,
            seconds=time.monotonic() - self._began,
            scores={metric: tally.scores for metric, tally in self.tallies.items()},
            by_dimension=self._by_dimension(),
            **more,
        )

    def _by_dimension(self) -> dict[str, dict[str, dict[str, MetricSummary]]]:
        found: dict[str, dict[str, dict[str, MetricSummary]]] = {}
        for (name, value, metric), tally in sorted(self._groups.items(), key=lambda item: item[0][:2]):
            found.setdefault(name, {}).setdefault(value, {})[metric] = tally.summary(metric)
        return found


def _skipped(outcome: Outcome) -> str | None:
    """Why there is no score, where there should be one."""
    if isinstance(outcome, MetricFailure):
        return outcome.error_type
    return outcome.reason if isinstance(outcome, NotApplicable) and outcome.reason in SKIPPED_REASONS else None
