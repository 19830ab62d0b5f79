"""Rows of Parquet files and Arrow tables, in small batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, BinaryIO

from ragspan.datasets.results import BadRow
from ragspan.datasets.tables.base import Entry, Table, TableRow, sampled
from ragspan.exceptions import ConfigurationError, TableError

MAX_EXPANSION = 200
"""How many times its size compressed data may have. Texts have twenty times, bombs a thousand and more."""
_SMALL = 1 << 26  # bytes that a column may expand to in any case
_REFERENCE = 8  # bytes of a list's entry, though it be nothing
_BATCH = 8  # rows: each may have a cell that takes the most there is
_BUFFER = 1 << 20  # bytes of a column that are read at a time, in place of all of it


def parquet_table(file: BinaryIO, *, name: str, **known: Any) -> Table:
    """A table in a Parquet file, of which a batch is in memory at a time.

    Raises:
        TableError: it is no Parquet file, or has two columns of the same name.
        ConfigurationError: pyarrow is not installed.
    """
    arrow, parquet = import_parquet()
    try:
        source = parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER)
    except (arrow.ArrowException, OSError) as error:
        raise TableError(f"{name} cannot be read as Parquet: {error}") from None
    _require_no_bomb(source.metadata, name)
    columns = checked_names(source.schema_arrow.names, name)
    batches = source.iter_batches(batch_size=_BATCH, use_threads=False)
    return sampled(
        _entries(_readable(batches, name, arrow.ArrowException)),
        columns=columns,
        count=source.metadata.num_rows,
        **known,
    )


def arrow_table(data: Any) -> Table:
    """A table that Arrow has in memory."""
    columns = checked_names(data.column_names, "the Arrow table")
    return sampled(_entries(data.to_batches(max_chunksize=_BATCH)), columns=columns, count=data.num_rows)


def import_parquet() -> tuple[Any, Any]:
    """pyarrow, and its part for Parquet.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigurationError('Parquet needs pyarrow: pip install "ragspan[datasets]"') from error
    return pa, parquet


def checked_names(names: Iterable[object], table: str) -> list[str]:
    """Names of columns as text.

    Raises:
        TableError: two of them are equal.
    """
    columns = list(map(str, names))
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise TableError(f"{table} has the column {twice!r} {columns.count(twice)} times")
    return columns


def _readable(batches: Iterator[Any], name: str, error_of_arrow: type[Exception]) -> Iterator[Any]:
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return
        except (error_of_arrow, OSError) as error:
            raise TableError(f"{name} cannot be read on: {error}") from None
        yield batch


def _require_no_bomb(metadata: Any, name: str) -> None:
    """Raise unless the file's columns have about the size in memory that they have in the file."""
    first = 1
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            size = column.total_uncompressed_size + _REFERENCE * (column.num_values - group.num_rows)
            if size > max(_SMALL, MAX_EXPANSION * column.total_compressed_size):
                raise TableError(
                    f"{name}: rows {first} to {first + group.num_rows - 1}: the column {column.path_in_schema} expands"
                    f" from {column.total_compressed_size:,} to {size:,} bytes, which is more than a table needs"
                )
        first += group.num_rows


def _entries(batches: Iterable[Any]) -> Iterator[Entry]:
    rows = count(1)
    for batch in batches:
        yield from _of_batch(batch, rows)


def _of_batch(batch: Any, rows: Iterator[int]) -> Iterable[Entry]:
    try:
        return [TableRow(row=next(rows), data=values) for values in batch.to_pylist()]
    except _NOT_IN_PYTHON:
        return [_entry(next(rows), batch.slice(place, 1)) for place in range(batch.num_rows)]


def _entry(row: int, batch: Any) -> Entry:
    values = {}
    for name, cell in zip(batch.schema.names, batch.columns, strict=True):
        try:
            (values[name],) = cell.to_pylist()
        except _NOT_IN_PYTHON as error:  # noqa: PERF203 - each may be the one
            return BadRow(row=row, reason=f"the column {name} has what Python cannot hold: {type(error).__name__}")
    return TableRow(row=row, data=values)


_NOT_IN_PYTHON = (ValueError, OverflowError)
"""Of a time in the year 300000, say, or a text that is no UTF-8."""
