"""What is known of a run while its rows stream by: scores, reasons, the lowest rows, costs."""

from __future__ import annotations

import heapq
import math
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ragspan.datasets.results import (
    BAD_ROWS_KEPT,
    SKIPPED_REASONS,
    WORST_KEPT,
    BadRow,
    EvaluatedRow,
    Evaluation,
    MetricSummary,
    ResultRow,
)
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, Usage


class Tally:
    """The scores of each metric, eight bytes each, and the reasons where there is none."""

    def __init__(self, metrics: Iterable[str]) -> None:
        self._metrics = {metric: _MetricTally() for metric in metrics}

    @property
    def scores(self) -> Mapping[str, array[float]]:
        """By metric, in the order in which they were added."""
        return {metric: counted.scores for metric, counted in self._metrics.items()}

    def add(self, result: ResultRow, threshold: float | None = None) -> None:
        """Count one outcome. A metric that was not named before is a new one."""
        counted = self._metrics.setdefault(result.metric, _MetricTally())
        if result.score is None:
            counted.not_scored[result.reason or "unknown"] += 1
            counted.failed += result.outcome == "failure"
            return
        counted.scores.append(result.score)
        counted.total += result.score
        counted.passed += result.label == "pass"
        if counted.threshold is None:
            counted.threshold = threshold

    def means(self) -> dict[str, float | None]:
        """So far, up to the rounding of a running sum."""
        return {
            metric: counted.total / len(counted.scores) if counted.scores else None
            for metric, counted in self._metrics.items()
        }

    def summary(self) -> dict[str, MetricSummary]:
        return {metric: counted.summary(metric) for metric, counted in self._metrics.items()}


class _MetricTally:
    def __init__(self) -> None:
        self.scores = array("d")
        self.total = 0.0
        self.passed = 0
        self.threshold: float | None = None
        self.not_scored: Counter[str] = Counter()
        self.failed = 0

    def summary(self, metric: str) -> MetricSummary:
        not_scored = dict(sorted(self.not_scored.items(), key=lambda item: (-item[1], item[0])))
        if not self.scores:
            return MetricSummary(metric=metric, not_scored=not_scored, failed=self.failed)
        ordered = sorted(self.scores)
        count = len(ordered)
        # Rounded sums of equal values can be a bit outside of them.
        mean = min(max(math.fsum(ordered) / count, ordered[0]), ordered[-1])
        return MetricSummary(
            metric=metric,
            scored=count,
            passed=self.passed,
            not_scored=not_scored,
            failed=self.failed,
            mean=mean,
            median=(ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
            minimum=ordered[0],
            maximum=ordered[-1],
            standard_deviation=_standard_deviation(ordered, mean),
            threshold=self.threshold,
        )


def _standard_deviation(values: Sequence[float], mean: float) -> float | None:
    """Of a sample. `statistics.stdev` computes with fractions, which takes a second for 100,000 values."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return None
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


class LowestScores:
    """At most `WORST_KEPT` rows of each metric; of rows with equal scores the earlier ones."""

    def __init__(self, metrics: Iterable[str]) -> None:
        # The root of each heap is its best row, which goes first: of equals the latest.
        self._heaps: dict[str, list[tuple[float, int, EvaluatedRow]]] = {metric: [] for metric in metrics}

    def offer(self, evaluated: EvaluatedRow) -> None:
        """Keep the row if it is among the lowest so far."""
        for metric, heap in self._heaps.items():
            outcome = evaluated.outcomes.get(metric)
            if not isinstance(outcome, Score):
                continue
            entry = (-outcome.value, -evaluated.row, evaluated)
            if len(heap) < WORST_KEPT:
                heapq.heappush(heap, entry)
            elif entry[:2] > heap[0][:2]:
                heapq.heapreplace(heap, entry)

    def rows(self) -> tuple[EvaluatedRow, ...]:
        """All of them, in the order of the table, each once."""
        kept = {evaluated.row: evaluated for heap in self._heaps.values() for _, _, evaluated in heap}
        return tuple(kept[row] for row in sorted(kept))


class RunProgress:
    """What a run has done so far: what its progress shows, and in the end its result."""

    def __init__(self, metrics: tuple[str, ...], *, share_done: Callable[[int], float | None]) -> None:
        self.metrics = metrics
        self.rows = 0
        """Records that were evaluated, those of earlier runs included."""
        self.resumed = 0
        """Rows of earlier runs among all."""
        self.bad_rows: list[BadRow] = []
        """The first of them."""
        self.bad_row_count = 0
        self.skipped: Counter[str] = Counter()
        self.usage = Usage()
        self.tally = Tally(metrics)
        self._began = time.monotonic()
        self._lowest = LowestScores(metrics)
        self._share_done = share_done

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
            self.skipped["unreadable"] += 1
            if len(self.bad_rows) < BAD_ROWS_KEPT:
                self.bad_rows.append(done)
            return
        self.rows += 1
        self._lowest.offer(done)
        self.skipped.update([reason for reason in map(_skipped, done.outcomes.values()) if reason][:1])
        for metric, outcome in done.outcomes.items():
            result = ResultRow.from_outcome(outcome, row=done.row, record_id=done.record.record_id, metric=metric)
            self.tally.add(result, outcome.threshold if isinstance(outcome, Score) else None)
            if isinstance(outcome, Score) and outcome.usage is not None:
                self.usage += outcome.usage

    def evaluation(
        self, stream: Callable[[], Iterator[ResultRow]], *, is_complete: bool, source: str | None, columns: str
    ) -> Evaluation:
        return Evaluation(
            metrics=self.metrics,
            rows=self.rows,
            summary=self.tally.summary(),
            worst=self._lowest.rows(),
            bad_rows=tuple(self.bad_rows),
            bad_row_count=self.bad_row_count,
            skipped=dict(self.skipped.most_common()),
            source=source,
            columns=columns,
            resumed=self.resumed,
            usage=self.usage,
            seconds=time.monotonic() - self._began,
            is_complete=is_complete,
            scores=self.tally.scores,
            stream=stream,
        )


def _skipped(outcome: Outcome) -> str | None:
    """Why there is no score, where there should be one."""
    if isinstance(outcome, MetricFailure):
        return outcome.error_type
    return outcome.reason if isinstance(outcome, NotApplicable) and outcome.reason in SKIPPED_REASONS else None
