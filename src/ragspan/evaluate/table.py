"""A table that is read once, row by row, and tables of Arrow and Parquet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, BinaryIO, TypeAlias

from ragspan.evaluate.cells import kind_of
from ragspan.evaluate.results import BadRow
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.records import RagRecord

MAX_CELL = 1 << 24
"""Characters of a cell's text. Long contexts are far below."""
_SAMPLED = 50  # rows
BATCH = 8  # rows of Parquet: each may have a cell that takes the most there is
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


def checked_names(names: Iterable[object], table: str) -> list[str]:
    """The names as texts, which have to be different."""
    columns = list(map(str, names))
    for column, times in Counter(columns).items():
        if times > 1:
            raise TableError(f"{table} has the column {column!r} {times} times")
    return columns


def entries_of(rows: Iterable[Any]) -> Iterator[Entry]:
    """Rows that are dictionaries or records, with their numbers; others are bad rows."""
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
    batches = source.iter_batches(batch_size=BATCH, use_threads=False)
    return arrow_table(batches, name, columns, source.metadata.num_rows)


def arrow_table(batches: Iterable[Any], name: str, columns: Sequence[str], count: int) -> Table:
    """A table of Arrow batches."""
    arrow, _ = import_parquet()

    def rows() -> Iterator[Any]:
        try:
            for batch in batches:
                yield from batch.to_pylist()
        except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:  # a time in the year 300000, say
            raise TableError(f"{name} cannot be read to its end: {error}") from None

    return sampled(entries_of(rows()), columns=columns, count=count)
