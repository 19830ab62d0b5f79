"""Where rows come from: files, data frames, data sets, and anything that can be iterated.

A data frame's library is loaded already where there is one; none is imported here.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, BinaryIO, TypeAlias

from ragspan.datasets.cells import kind_of
from ragspan.datasets.results import BadRow
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.records import RagRecord

MAX_CELL = 1 << 24
"""Characters of a cell's text. Long contexts are far below."""
_SAMPLED = 50  # rows
_BATCH = 8  # rows of Parquet: each may have a cell that takes the most there is
_BUFFER = 1 << 20  # bytes of a column of Parquet that are read at a time, in place of all of it


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """One row as the table has it."""

    row: int
    """Of the table's data, counted from 1."""
    data: Mapping[str, Any] | RagRecord
    line: int | None = None
    """Where it begins in the file, counted from 1."""


Entry: TypeAlias = "TableRow | BadRow"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table that is read once, from its first row to its last."""

    columns: Sequence[str]
    """The table's, or where each row has its own, those of the first rows."""
    sample: Sequence[Mapping[str, Any]]
    """Some of the first rows that could be read."""
    entries: Iterator[Entry]
    """All rows, those of the sample included."""
    count: int | None = None
    """Of rows, where it is known beforehand."""
    share_read: Callable[[], float | None] = lambda: None
    """Of a file, from 0 to 1; None where it is not known."""
    close: Callable[[], None] = lambda: None

    def share_done(self, done: int, limit: int | None) -> float | None:
        """Of the rows where their number is known, else of the file's bytes; from 0 to 1."""
        known = [total for total in (self.count, limit) if total is not None]
        return self.share_read() if not known else min(1.0, done / max(1, min(known)))


def table_of(data: Any, **of_file: Any) -> Table:
    """The table that the data are.

    Args:
        data: a path, a frame of pandas or polars, a data set of Hugging Face, an Arrow table, or an iterable of
            dictionaries and records.
        of_file: how to read a file, as `open_file` has it.

    Raises:
        TableError: they are no table.
        ConfigurationError: an argument about a file is wrong.
    """
    if isinstance(data, (str, os.PathLike)):
        from ragspan.datasets.files import open_file

        return open_file(data, **of_file)
    if _is_a(data, "pandas", "DataFrame"):
        columns = checked_names(data.columns, "the data frame")
        rows = (dict(zip(columns, row, strict=True)) for row in data.itertuples(index=False, name=None))
        return sampled(_entries(rows), columns=columns, count=len(data))
    if _is_a(data, "polars", "LazyFrame"):
        data = data.collect()
    if _is_a(data, "polars", "DataFrame"):
        return sampled(_entries(data.iter_rows(named=True)), columns=data.columns, count=data.height)
    if _is_a(data, "pyarrow", "Table"):
        columns = checked_names(data.column_names, "the Arrow table")
        return _arrow_table(data.to_batches(max_chunksize=_BATCH), "the Arrow table", columns, data.num_rows)
    if isinstance(data, Mapping):
        splits = [str(name) for name, part in data.items() if hasattr(part, "column_names")]
        if splits:
            raise TableError(f"this is a collection of data sets: choose one of {', '.join(splits)}")
        raise TableError("a dictionary is not a table: give a list of dictionaries, one for each row, or a data frame")
    if not isinstance(data, Iterable):
        raise TableError(
            f"a {type(data).__name__} is not a table: give a path, a data frame, or rows as dictionaries or records"
        )
    names = getattr(data, "column_names", None)  # of a data set of Hugging Face
    named = list(names) if isinstance(names, (list, tuple)) else None
    return sampled(_entries(data), columns=named, count=len(data) if isinstance(data, Sized) else None)


def _is_a(data: object, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(data, kind)


def checked_names(names: Iterable[object], table: str) -> list[str]:
    """The names as texts, which have to be different."""
    columns = list(map(str, names))
    for column, times in Counter(columns).items():
        if times > 1:
            raise TableError(f"{table} has the column {column!r} {times} times")
    return columns


def _entries(rows: Iterable[Any]) -> Iterator[Entry]:
    for row, values in enumerate(rows, start=1):
        if isinstance(values, (Mapping, RagRecord)):
            yield TableRow(row=row, data=values)
        else:
            yield BadRow(row=row, reason=f"it is {kind_of(values)}, but should be a dictionary or a record")


def sampled(entries: Iterator[Entry], *, columns: Sequence[str] | None = None, **known: Any) -> Table:
    """A table with a sample of its first rows; without `columns` it has those of the sample."""
    first = list(islice(entries, _SAMPLED))
    sample = [entry.data for entry in first if isinstance(entry, TableRow) and isinstance(entry.data, Mapping)]
    if columns is None:
        columns = list(dict.fromkeys(str(key) for values in sample for key in values))
    return Table(columns=columns, sample=sample, entries=chain(first, entries), **known)


# Parquet and Arrow ----------------------------------------------------------------------------------------------------


def import_parquet() -> tuple[Any, Any]:
    """pyarrow, and its part for Parquet."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigurationError('Parquet needs pyarrow: pip install "ragspan[datasets]"') from error
    return pa, parquet


def parquet_table(file: BinaryIO, *, name: str) -> Table:
    """A table in a Parquet file, read in batches."""
    arrow, parquet = import_parquet()
    try:
        source = parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER)
    except (arrow.ArrowException, OSError) as error:
        raise TableError(f"{name} cannot be read as Parquet: {error}") from None
    columns = checked_names(source.schema_arrow.names, name)
    batches = source.iter_batches(batch_size=_BATCH, use_threads=False)
    return _arrow_table(batches, name, columns, source.metadata.num_rows)


def _arrow_table(batches: Iterable[Any], name: str, columns: Sequence[str], count: int) -> Table:
    arrow, _ = import_parquet()

    def rows() -> Iterator[Any]:
        try:
            for batch in batches:
                yield from batch.to_pylist()
        except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:  # a time in the year 300000, say
            raise TableError(f"{name} cannot be read to its end: {error}") from None

    return sampled(_entries(rows()), columns=columns, count=count)
