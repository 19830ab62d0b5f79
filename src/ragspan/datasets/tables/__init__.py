"""Where rows come from: files of three formats, data frames, data sets, and anything that can be iterated.

Data frames are known by their own modules, where these are loaded already; none is imported here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sized
from itertools import count
from typing import Any

from ragspan.datasets.cells import kind_of
from ragspan.datasets.results import BadRow
from ragspan.datasets.tables.base import Entry, Table, TableRow, sampled
from ragspan.datasets.tables.files import STANDARD_INPUT, FileFormat, open_file
from ragspan.datasets.tables.parquet_rows import arrow_table, checked_names
from ragspan.exceptions import TableError
from ragspan.records import RagRecord

__all__ = ["STANDARD_INPUT", "FileFormat", "Table", "TableRow", "open_file", "table_of"]


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
        return open_file(data, **of_file)
    if _is_a(data, "pandas", "DataFrame"):
        return _pandas_table(data)
    if _is_a(data, "polars", "LazyFrame"):
        data = data.collect()
    if _is_a(data, "polars", "DataFrame"):
        rows = data.iter_rows(named=True)
        return sampled(_entries(rows), columns=checked_names(data.columns, "the data frame"), count=data.height)
    if _is_a(data, "pyarrow", "Table"):
        return arrow_table(data)
    if isinstance(data, Mapping):
        raise TableError(_of_mapping(data))
    if not isinstance(data, Iterable):
        raise TableError(
            f"a {type(data).__name__} is no table: give a path, a data frame, or rows as dictionaries or records"
        )
    names = getattr(data, "column_names", None)  # of a data set of Hugging Face
    columns = list(names) if isinstance(names, (list, tuple)) else None
    return sampled(_entries(data), columns=columns, count=len(data) if isinstance(data, Sized) else None)


def _is_a(data: object, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(data, kind)


def _pandas_table(frame: Any) -> Table:
    columns = checked_names(frame.columns, "the data frame")
    cells = zip(*(frame.iloc[:, place] for place in range(len(columns))), strict=True)
    rows = (dict(zip(columns, row, strict=True)) for row in cells)
    return sampled(_entries(rows), columns=columns, count=len(frame))


def _entries(rows: Iterable[Any]) -> Iterator[Entry]:
    numbers = count(1)
    for values in rows:
        row = next(numbers)
        if isinstance(values, (Mapping, RagRecord)):
            yield TableRow(row=row, data=values)
        else:
            yield BadRow(row=row, reason=f"it is {kind_of(values)}, but should be a dictionary or a record")


def _of_mapping(data: Mapping[Any, Any]) -> str:
    splits = [str(name) for name, part in data.items() if hasattr(part, "column_names")]
    if splits:
        return f"this is a collection of data sets: choose one of {', '.join(splits)}"
    return "a dictionary is no table: give a list of dictionaries, one for each row, or a data frame"
