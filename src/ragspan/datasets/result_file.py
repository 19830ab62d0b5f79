"""A result file of an earlier run: its lines, and what they add up to. It holds no texts but explanations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from ragspan.datasets.result_formats import format_of, read_results
from ragspan.datasets.results import MetricSummary, ResultRow
from ragspan.datasets.tally import Tally


class ResultFile:
    """The results in a file that `evaluate` wrote.

    Args:
        path: ending with `.csv`, `.jsonl` or `.parquet`.

    Raises:
        ConfigurationError: the ending is none of these, or pyarrow is missing.
        TableError: while it is read: it is no file of results.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._format = format_of(self.path)

    @property
    def metrics(self) -> tuple[str, ...]:
        return self._tally.metrics

    @property
    def summary(self) -> Mapping[str, MetricSummary]:
        """By metric; thresholds are None, for the file does not hold them."""
        return self._tally.summary()

    @cached_property
    def rows(self) -> int:
        """Records in it."""
        return len({result.row for result in self.results()})

    def values(self, metric: str) -> Sequence[float]:
        """All scores of a metric, in the order of the file."""
        return self._tally.scores[metric]

    def results(self) -> Iterator[ResultRow]:
        """Each record and metric."""
        return read_results(self.path, self._format)

    @cached_property
    def _tally(self) -> Tally:
        tally = Tally(())
        for result in self.results():
            tally.add(result)
        return tally
