"""Where rows come from: files, data frames, data sets, and anything that can be iterated.

A data frame's library is loaded already where there is one; none is imported here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sized
from typing import Any

from ragspan.arguments import with_article
from ragspan.evaluate.files import open_file
from ragspan.evaluate.table import BATCH, Table, arrow_table, checked_names, entries_of, sampled
from ragspan.exceptions import TableError


def table_of(data: Any, **of_file: Any) -> Table:
    """The table that the data are.

    Args:
        data: a path, a frame of pandas or polars, a data set of Hugging Face, an Arrow table, or an iterable of
            dictionaries and records.
        of_file: how to read a file, as `open_file` has it.

    Raises:
        TableError: they are not a table.
        ConfigurationError: an argument about a file is wrong.
    """
    if isinstance(data, (str, os.PathLike)):
        return open_file(data, **of_file)
    if is_loaded_as(data, "pandas", "DataFrame"):
        columns = checked_names(data.columns, "the data frame")
        rows = (dict(zip(columns, row, strict=True)) for row in data.itertuples(index=False, name=None))
        return sampled(entries_of(rows), columns=columns, count=len(data))
    if is_loaded_as(data, "polars", "LazyFrame"):
        data = data.collect()
    if is_loaded_as(data, "polars", "DataFrame"):
        return sampled(entries_of(data.iter_rows(named=True)), columns=data.columns, count=data.height)
    if is_loaded_as(data, "pyarrow", "Table"):
        columns = checked_names(data.column_names, "the Arrow table")
        return arrow_table(data.to_batches(max_chunksize=BATCH), "the Arrow table", columns, data.num_rows)
    if isinstance(data, Mapping):
        splits = [str(name) for name, part in data.items() if hasattr(part, "column_names")]
        if splits:
            raise TableError(f"this is a collection of data sets: choose one of {', '.join(splits)}")
        raise TableError("a dictionary is not a table: give a list of dictionaries, one for each row, or a data frame")
    if not isinstance(data, Iterable):
        raise TableError(
            f"{with_article(type(data).__name__)} is not a table: give a path, a data frame, or rows as dictionaries or records"
        )
    names = getattr(data, "column_names", None)  # of a data set of Hugging Face
    named = list(names) if isinstance(names, (list, tuple)) else None
    return sampled(entries_of(data), columns=named, count=len(data) if isinstance(data, Sized) else None)


def is_loaded_as(data: object, module: str, name: str) -> bool:
    """Whether it is of this class, which is loaded already if it is."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(data, kind)
