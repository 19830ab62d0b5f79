"""Rows of Parquet files and Arrow tables, in small batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, BinaryIO

from ragspan.datasets.tables.base import Entry, Table, TableRow, sampled
from ragspan.exceptions import ConfigurationError, TableError

_BATCH = 64  # rows
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


def _entries(batches: Iterable[Any]) -> Iterator[Entry]:
    rows = count(1)
    for batch in batches:
        for values in batch.to_pylist():
            yield TableRow(row=next(rows), data=values)
