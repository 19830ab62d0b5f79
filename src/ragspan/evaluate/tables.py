"""Where rows come from: files, data frames, data sets, and anything that can be iterated. Rows stream.

CSV and JSON are read strictly: what does not fit is a bad row, never a guess. A data frame's library is loaded already where
there is one; none is imported here.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from ragspan.arguments import with_article
from ragspan.evaluate.cells import kind_of
from ragspan.evaluate.rows import RUN
from ragspan.evaluate.tool_data_sets import data_set_of
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.records import RagRecord

STANDARD_INPUT: Final = "-"
_SAMPLED: Final = 50  # rows
_BATCH: Final = 64  # rows of Parquet

# Of all readers of the process. Long contexts are far below, and a quote that is never closed ends here.
csv.field_size_limit(max(csv.field_size_limit(), 1 << 24))


_Lines: TypeAlias = Iterator[tuple[int, str]]
"""Lines with their numbers from 1."""


class TableRow(NamedTuple):
    """One row as the table has it."""

    row: int
    """Of the table's data, counted from 1."""
    line: int | None
    """Where it begins in the file, counted from 1; None where the data have no lines."""
    data: Mapping[str, Any] | RagRecord | str
    """A text says why the row cannot be read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table that is read once, from its first row to its last."""

    columns: Sequence[str]
    """The table's, or where each row has its own, those of the first rows."""
    sample: Sequence[Mapping[str, Any]]
    """Some of the first rows that could be read."""
    entries: Iterator[TableRow]
    """All rows, those of the sample included."""
    count: int | None = None
    """Of rows, where it is known beforehand."""
    share_read: Callable[[], float | None] = lambda: None
    """Of a file, from 0 to 1; None where it is not known."""
    close: Callable[[], None] = lambda: None


def table_of(data: Any) -> Table:
    """The table that the data are: what `evaluate` takes.

    Raises:
        TableError: they are not a table.
        ConfigurationError: pyarrow is not installed.
    """
    if isinstance(data, str) and (data_set := data_set_of(data)) is not None:
        return _table(data_set.rows())
    if isinstance(data, (str, os.PathLike)):
        return _file_table(data)
    if hasattr(data, "itertuples"):  # a frame of pandas
        columns = _different(data.columns, "the data frame")
        rows = (dict(zip(columns, row, strict=True)) for row in data.itertuples(index=False, name=None))
        return _table(rows, columns, len(data))
    if hasattr(data, "iter_rows"):  # one of polars
        return _table(data.iter_rows(named=True), data.columns, data.height)
    if isinstance(data, Mapping) or not isinstance(data, Iterable):
        kind = with_article(type(data).__name__)
        raise TableError(f"{kind} is not a table: give a path, a data frame, or rows as dictionaries or records")
    names = getattr(data, "column_names", None)  # of a data set of Hugging Face
    named = list(names) if isinstance(names, (list, tuple)) else None
    return _table(data, named, len(data) if isinstance(data, Sized) else None)


def _different(names: Iterable[object], table: str) -> list[str]:
    """The names as texts, which have to be different."""
    columns = list(map(str, names))
    for column in columns:
        if columns.count(column) > 1:
            raise TableError(f"{table} has the column {column!r} {columns.count(column)} times")
    return columns


def _table(rows: Iterable[Any], columns: Sequence[str] | None = None, count: int | None = None) -> Table:
    """A table of rows that are dictionaries or records, or such a one, or why there is none, with its line."""

    def entries() -> Iterator[TableRow]:
        for row, values in enumerate(rows, start=1):
            line, data = values if isinstance(values, tuple) else (None, values)
            if not isinstance(data, (Mapping, RagRecord)) and line is None:
                data = f"it is {kind_of(data)}, but should be a dictionary or a record"
            yield TableRow(row, line, data)

    numbered = entries()
    first = list(islice(numbered, _SAMPLED))
    sample = [entry.data for entry in first if isinstance(entry.data, Mapping)]
    if columns is None:
        columns = list(dict.fromkeys(str(key) for values in sample for key in values))
    return Table(columns=columns, sample=sample, entries=chain(first, numbered), count=count)


# Files ----------------------------------------------------------------------------------------------------------------


def _file_table(path: str | os.PathLike[str]) -> Table:
    """The table in a file; `-` is standard input. Its ending names the format, else its first character does."""
    is_input = os.fspath(path) == STANDARD_INPUT
    name = "standard input" if is_input else os.fspath(path)
    ending = Path(name.lower()).suffix
    with ExitStack() as opened:
        try:
            raw = opened.enter_context(open(os.dup(sys.stdin.fileno()) if is_input else path, "rb"))  # noqa: PTH123 - it may be a descriptor
        except (AttributeError, ValueError, OSError) as error:
            raise TableError(f"{name} cannot be opened: {getattr(error, 'strerror', None) or error}") from None
        if ending in {".parquet", ".pq"}:
            table = _parquet_table(raw, name)
        else:
            size = os.fstat(raw.fileno()).st_size if raw.seekable() else 0
            # A byte order mark is left out, and lines end at line feeds only.
            text = opened.enter_context(io.TextIOWrapper(raw, encoding="utf-8-sig", newline="\n"))
            lines = _lines(text, name)
            begin = next(((number, line) for number, line in lines if line.strip()), None)
            if begin is None:
                raise TableError(f"{name} is empty")
            lines = chain([begin], lines)
            is_json = ending in {".jsonl", ".ndjson", ".json"} or (
                ending not in {".csv", ".tsv"} and begin[1].lstrip()[:1] in {"{", "["}
            )
            table = _json_table(lines, name, ending) if is_json else _csv_table(lines, name)
            table = replace(table, share_read=lambda: raw.tell() / size if size else None)
        return replace(table, close=opened.pop_all().close)


def _lines(text: io.TextIOWrapper, name: str) -> _Lines:
    number = 0
    try:
        for line in text:
            number += 1
            yield number, line
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        at = number + 1 + error.object[: error.start].count(b"\n")
        byte = f"the byte 0x{error.object[error.start]:02x}, about line {at}"
        raise TableError(f"{name} is not UTF-8 text ({byte}): unpack it, or save it as UTF-8") from None


def _csv_table(lines: _Lines, name: str) -> Table:
    """A table of CSV lines with a header, whose most frequent delimiter counts."""
    first, begin = next(lines)
    delimiter = max(",;\t|", key="".join(begin.split('"')[::2]).count)  # the comma where there is none
    texts = chain([begin], (line for _, line in lines))
    cells = csv.reader(texts, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        header = _different(map(str.strip, next(cells, [])), f"{name}: the header")
    except csv.Error as error:
        raise TableError(f"{name}: the header is not CSV ({error}): save it as CSV in UTF-8") from None

    def rows() -> Iterator[tuple[int, Any]]:
        while True:
            line = first + cells.line_num
            try:
                values = next(cells)
            except StopIteration:
                return
            except csv.Error as error:
                yield line, f"it is not CSV: {error}"
                continue
            if len(values) == len(header):
                yield line, dict(zip(header, values, strict=True))
            elif values:  # else it is a blank line
                yield line, f"it has {len(values)} cells, but the header has {len(header)}"

    return _table(rows(), header)


def _json_table(lines: _Lines, name: str, ending: str) -> Table:
    """An object a line, or an array of objects. The first line of a file of our rows is none."""
    number, begin = next(lines)
    if begin.lstrip()[0] == "[" and ending not in {".jsonl", ".ndjson"}:
        elements, trouble = _parsed("".join([begin, *(line for _, line in lines)]))
        if trouble:
            raise TableError(f"{name} {trouble}")
        return _table(elements, count=len(elements))

    def rows() -> Iterator[tuple[int, Any]]:
        for at, line in lines if begin.startswith(f'{{"{RUN}"') else chain([(number, begin)], lines):
            if line.strip():
                value, trouble = _parsed(line.rstrip())
                is_row = isinstance(value, dict)
                why = trouble and f"it {trouble}"
                yield at, value if is_row else why or f"it is {kind_of(value)}, but should be an object"

    return _table(rows())


def _parsed(text: str) -> tuple[Any, str | None]:
    """What the JSON text holds, or why it is none."""
    try:
        return json.loads(text), None
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, " if error.lineno > 1 else ""
        return None, f"is not JSON: {error.msg}, at {at}column {error.colno}"
    except (ValueError, RecursionError):
        return None, "is not JSON: nested too deep, or with a number of thousands of digits"


def _parquet_table(file: Any, name: str) -> Table:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigurationError('Parquet needs pyarrow: pip install "ragspan[datasets]"') from error
    try:
        source = parquet.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{name} cannot be read as Parquet: {error}") from None

    def rows() -> Iterator[Any]:
        try:
            for batch in source.iter_batches(batch_size=_BATCH, use_threads=False):
                yield from batch.to_pylist()
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # a time in the year 300000, say
            raise TableError(f"{name} cannot be read to its end: {error}") from None

    columns = _different(source.schema_arrow.names, name)
    return _table(rows(), columns, source.metadata.num_rows)
