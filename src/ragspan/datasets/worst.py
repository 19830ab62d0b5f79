"""Keeps the rows with the lowest scores while all rows stream by."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from ragspan.datasets.results import WORST_KEPT, EvaluatedRow
from ragspan.outcomes import Score


class Worst:
    """At most `WORST_KEPT` rows of each metric; of rows with equal scores the earlier ones."""

    def __init__(self, metrics: Iterable[str]) -> None:
        # The root of each heap is its best row, which is the first to go: of equals the latest.
        self._heaps: dict[str, list[tuple[float, int, EvaluatedRow]]] = {metric: [] for metric in metrics}

    def offer(self, evaluated: EvaluatedRow) -> None:
        """Keep the row if it is among the worst so far."""
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
