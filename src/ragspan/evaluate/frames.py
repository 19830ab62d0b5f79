"""Results as data frames: wide, beside the columns of the table, or long, a line for each record and metric."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ragspan.evaluate.opening import is_loaded_as, table_of
from ragspan.evaluate.results import RESULT_COLUMNS, ResultRow, cells_of, column_types
from ragspan.evaluate.table import TableRow


@dataclass(frozen=True, kw_only=True, slots=True)
class Frames:
    """Makes data frames of a table and its results."""

    results: Callable[[], Iterator[ResultRow]]
    """All results, in the order of the table and of the metrics."""
    metrics: Sequence[str]
    data: Any
    """The table, where it can be read again; else None."""
    of_file: Mapping[str, Any]
    """How it is read, if it is a file."""
    limit: int | None
    """The rows that were to be evaluated; None is all."""
    has_share: bool
    """Whether a judge was asked about a share of the rows."""

    def long_pandas(self) -> Any:
        """A line for each record and metric, with pandas' nullable types."""
        pandas = importlib.import_module("pandas")
        frame = pandas.DataFrame(list(map(cells_of, self.results())), columns=list(RESULT_COLUMNS), dtype=object)
        return frame.astype(column_types("Int64", "Float64", "string"))

    def long_polars(self) -> Any:
        """A line for each record and metric, in polars."""
        polars = importlib.import_module("polars")
        schema = column_types(polars.Int64, polars.Float64, polars.String)
        return polars.DataFrame(list(map(cells_of, self.results())), schema=schema, orient="row")

    def wide_pandas(self) -> Any:
        """The table with the columns of the scores beside its own, and its own index."""
        pandas = importlib.import_module("pandas")
        if is_loaded_as(self.data, "pandas", "DataFrame"):
            frame, results = self.data.iloc[: self.limit].copy(), self._by_row()
            numbers = list(range(1, len(frame) + 1))
        else:
            rows = dict(self._rows())
            results, numbers = self._by_row(), list(rows)
            frame = pandas.DataFrame(list(rows.values()), index=pandas.RangeIndex(len(rows)))
        for name, cells, is_text in self._columns(results, numbers, set(map(str, frame.columns))):
            frame[name] = pandas.array(cells, dtype="string" if is_text else "Float64")
        return frame

    def wide_polars(self) -> Any:
        """The table with the columns of the scores beside its own."""
        polars = importlib.import_module("polars")
        data, results = self.data, self._by_row()
        if is_loaded_as(data, "polars", "DataFrame"):
            frame = data if self.limit is None else data.head(self.limit)
            numbers = list(range(1, frame.height + 1))
        else:
            rows = dict(self._rows())
            numbers = list(rows)
            frame = polars.DataFrame(list(rows.values()), strict=False, infer_schema_length=None)
        columns = self._columns(results, numbers, set(frame.columns))
        return frame.with_columns(
            polars.Series(name, cells, dtype=polars.String if is_text else polars.Float64)
            for name, cells, is_text in columns
        )

    def _rows(self) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The rows of the table with their numbers; where it can be read only once, their numbers and ids are all there is."""
        if self.data is None:
            seen = {result.row: {"row": result.row, "record_id": result.record_id} for result in self.results()}
            yield from seen.items()
            return
        with contextlib.closing(table_of(self.data, **self.of_file)) as table:
            for entry in islice(table.entries, self.limit):
                data = entry.data if isinstance(entry, TableRow) else {}
                if not isinstance(data, Mapping):
                    contexts = None if data.contexts is None else [context.text for context in data.contexts]
                    data = {
                        "record_id": data.record_id,
                        "question": data.question,
                        "contexts": contexts,
                        "response": data.response,
                    }
                yield entry.row, data

    def _by_row(self) -> dict[int, dict[str, ResultRow]]:
        found: dict[int, dict[str, ResultRow]] = {}
        for result in self.results():
            found.setdefault(result.row, {})[result.metric] = result
        return found

    def _columns(
        self, results: Mapping[int, Mapping[str, ResultRow]], rows: list[int], taken: set[str]
    ) -> Iterator[tuple[str, list[Any], bool]]:
        """Three columns a metric, and whether each holds text: the score, its label, and why it is so or why there is none.

        A fourth says who gave the score, where a judge was asked about a share of the rows.
        """
        for metric in self.metrics:
            found = [results.get(row, {}).get(metric) for row in rows]
            name = metric if metric not in taken else f"ragspan_{metric}"
            yield name, [one and one.score for one in found], False
            yield f"{name}_label", [one and one.label for one in found], True
            yield f"{name}_reason", [one and _reason(one) for one in found], True
            if self.has_share:
                yield f"{name}_judge", [one and one.judge for one in found], True


def _reason(result: ResultRow) -> str | None:
    if result.outcome == "score":
        return result.explanation
    return ": ".join(filter(None, [result.reason, result.detail]))
