"""Where rows come from: files, data frames, data sets, and anything that can be iterated. Rows stream.

CSV and JSON are read strictly: what does not fit is a bad row, never a guess. A data frame's library is loaded already where
there is one; none is imported here.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, cast

from ragspan.arguments import with_article
from ragspan.evaluate.cells import kind_of
from ragspan.evaluate.row_file import RUN
from ragspan.evaluate.rows import BadRow
from ragspan.evaluate.tool_data_sets import data_set_of
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.records import RagRecord

STANDARD_INPUT: Final = "-"
MAX_CELL: Final = 1 << 24
"""Characters of a cell's text. Long contexts are far below."""
_MAX_HELD: Final = 1 << 29
"""Characters of a line, and of a JSON array: each is held as a whole, and a small compressed file may have more than fits."""
_SAMPLED: Final = 50  # rows
_BATCH: Final = 8  # rows of Parquet: each may have a cell that takes the most there is
_BUFFER: Final = 1 << 20  # bytes of a column of Parquet that are read at a time, in place of all of it
_DELIMITERS: Final = ",;\t|"
_SEPARATOR_LINE: Final = re.compile(r"""["']?sep=(.)["']?\s*""", re.IGNORECASE)
"""What Excel writes before the header, and reads, where the delimiter is none that its language expects."""

# All readers of a process share this limit, so it is set once. A quote that is never closed ends here.
csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """One row as the table has it."""

    row: int
    """Of the table's data, counted from 1."""
    data: Mapping[str, Any] | RagRecord
    line: int | None = None
    """Where it begins in the file, counted from 1."""


Entry: TypeAlias = "TableRow | BadRow"
_Lines: TypeAlias = Iterator[tuple[int, str]]
"""Lines with their numbers from 1."""


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


def table_of(data: Any) -> Table:
    """The table that the data are.

    Args:
        data: a path, `phoenix:NAME` or `mlflow:NAME` for a data set there, a frame of pandas or polars, a data set of Hugging Face, an Arrow table, or an iterable of
            dictionaries and records.

    Raises:
        TableError: they are not a table.
        ConfigurationError: pyarrow is not installed.
    """
    if isinstance(data, str) and (data_set := data_set_of(data)) is not None:
        return _sampled(_entries(data_set.rows()))
    if isinstance(data, (str, os.PathLike)):
        return _file_table(data)
    if _is_loaded_as(data, "pandas", "DataFrame"):
        columns = _checked_names(data.columns, "the data frame")
        rows = (dict(zip(columns, row, strict=True)) for row in data.itertuples(index=False, name=None))
        return _sampled(_entries(rows), columns=columns, count=len(data))
    if _is_loaded_as(data, "polars", "LazyFrame"):
        data = data.collect()
    if _is_loaded_as(data, "polars", "DataFrame"):
        return _sampled(_entries(data.iter_rows(named=True)), columns=data.columns, count=data.height)
    if _is_loaded_as(data, "pyarrow", "Table"):
        return _arrow_table(data.to_batches(max_chunksize=_BATCH), "the Arrow table", data.column_names, data.num_rows)
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
    return _sampled(_entries(data), columns=named, count=len(data) if isinstance(data, Sized) else None)


def _is_loaded_as(data: object, module: str, name: str) -> bool:
    """Whether it is of this class, which is loaded already if it is."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(data, kind)


def _checked_names(names: Iterable[object], table: str) -> list[str]:
    """The names as texts, which have to be different."""
    columns = list(map(str, names))
    for column, times in Counter(columns).items():
        if times > 1:
            raise TableError(f"{table} has the column {column!r} {times} times")
    return columns


def _entries(rows: Iterable[Any]) -> Iterator[Entry]:
    """Rows that are dictionaries or records, with their numbers; others are bad rows."""
    for row, values in enumerate(rows, start=1):
        if isinstance(values, (Mapping, RagRecord)):
            yield TableRow(row=row, data=values)
        else:
            yield BadRow(row=row, reason=f"it is {kind_of(values)}, but should be a dictionary or a record")


def _sampled(entries: Iterator[Entry], *, columns: Sequence[str] | None = None, count: int | None = None) -> Table:
    """A table with a sample of its first rows; without `columns` it has those of the sample."""
    first = list(islice(entries, _SAMPLED))
    sample = [entry.data for entry in first if isinstance(entry, TableRow) and isinstance(entry.data, Mapping)]
    if columns is None:
        columns = list(dict.fromkeys(str(key) for values in sample for key in values))
    return Table(columns=columns, sample=sample, entries=chain(first, entries), count=count)


# Files ----------------------------------------------------------------------------------------------------------------


def _file_table(path: str | os.PathLike[str]) -> Table:
    """The table in a file; `-` is standard input. Its ending names the format, else its first characters do; `.gz` is decompressed."""
    is_input = os.fspath(path) == STANDARD_INPUT
    name = "standard input" if is_input else os.fspath(path)
    with ExitStack() as opened:
        try:
            source = os.dup(sys.stdin.fileno()) if is_input else path
            raw = opened.enter_context(open(source, "rb"))  # noqa: PTH123 - it may be a descriptor
        except (AttributeError, ValueError, OSError) as error:
            if is_input:  # a program without one, or with something in its place
                raise TableError("there is no standard input to read from") from None
            raise TableError(f"{name} cannot be opened: {getattr(error, 'strerror', None) or error}") from None
        ending = Path(name.lower().removesuffix(".gz")).suffix
        if ending in {".xlsx", ".xls", ".ods"}:
            raise ConfigurationError(f"{name} is a spreadsheet: save it as CSV")
        if ending in {".parquet", ".pq"}:
            table = _parquet_table(raw if raw.seekable() else io.BytesIO(raw.read()), name)
        else:
            size = os.fstat(raw.fileno()).st_size if raw.seekable() else 0
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if name.lower().endswith(".gz") else raw
            buffered = io.BufferedReader(cast("Any", stream))
            lines = _lines(opened.enter_context(_text(buffered, name)), name)
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


def _text(stream: io.BufferedReader, name: str) -> io.TextIOWrapper:
    """The text of a stream: UTF-8, or UTF-16 that says so. A byte order mark is left out; lines end at line feeds only."""
    try:
        begins = stream.peek(2)[:2]
    except (OSError, EOFError, zlib.error) as error:
        raise TableError(f"{name} cannot be decompressed: {error}") from None
    encoding = "utf-16" if begins in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    return io.TextIOWrapper(stream, encoding=encoding, newline="\n")


def _lines(text: io.TextIOWrapper, name: str) -> _Lines:
    """The lines, up to bytes that are not text, damaged compression, or a line too long: a `TableError`."""
    number = 0
    try:
        for number, line in enumerate(iter(partial(text.readline, _MAX_HELD), ""), start=1):
            if len(line) == _MAX_HELD:
                raise TableError(f"{name}: line {number} has {_MAX_HELD:,} characters or more")
            yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(f"{name} cannot be decompressed: {error}") from None
    except UnicodeError as error:
        place = ""
        if isinstance(error, UnicodeDecodeError):
            line_number = number + 1 + error.object[: error.start].count(b"\n")
            place = f" (the byte 0x{error.object[error.start]:02x}, about line {line_number})"
        raise TableError(f"{name} is not UTF-8 text{place}: save it as UTF-8") from None


def _csv_table(lines: _Lines, name: str) -> Table:
    """A table of CSV lines with a header, whose most frequent delimiter counts, or the one that Excel names in a line before it.

    Raises:
        TableError: the header is not CSV, or a column's name is in it twice.
    """
    first, begin = next(lines)
    said = _SEPARATOR_LINE.fullmatch(begin)
    if said:
        first, begin = next(lines, (first, ""))
    unquoted = "".join(begin.split('"')[::2])
    delimiter = said[1] if said else max(_DELIMITERS, key=unquoted.count)  # the comma where there is none
    texts = chain([begin], (line for _, line in lines))
    rows = csv.reader(texts, delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        header = _checked_names(map(str.strip, next(rows, [])), f"{name}: the header")
    except csv.Error as error:
        raise TableError(f"{name}: the header is not CSV ({error}): save it as CSV in UTF-8") from None
    if not any(header):
        raise TableError(f"{name} holds no header")
    return _sampled(_csv_entries(rows, header, first), columns=header)


def _csv_entries(rows: Any, header: list[str], first: int) -> Iterator[Entry]:
    number = 0
    while True:
        line = first + rows.line_num
        try:
            cells, trouble = next(rows), None
        except StopIteration:
            return
        except csv.Error as error:
            cells, trouble = header, f"it is not CSV: {error}"
        if not cells:  # a blank line
            continue
        number += 1
        if len(cells) != len(header):
            trouble = f"it has {len(cells)} cells, but the header has {len(header)}"
        if trouble is not None:
            yield BadRow(row=number, line=line, reason=trouble)
        else:
            yield TableRow(row=number, line=line, data=dict(zip(header, cells, strict=True)))


def _json_table(lines: _Lines, name: str, ending: str) -> Table:
    """An object a line, or an array of objects. The first line of a file of our rows is none.

    Raises:
        TableError: it is not an array of JSON.
    """
    first, begin = next(lines)
    if begin.strip() == "{":  # no object a line begins so
        raise TableError(
            f"{name} is one object of JSON over several lines: write a list of objects, one for each row, or an object a line"
        )
    if begin.startswith(f'{{"{RUN}"'):
        return _sampled(_line_entries(lines))
    if begin.lstrip()[0] != "[" or ending in {".jsonl", ".ndjson"}:
        return _sampled(_line_entries(chain([(first, begin)], lines)))
    text, room = [begin], _MAX_HELD
    for _, line in lines:
        text.append(line)
        if (room := room - len(line)) < 0:
            raise TableError(f"{name} has more than {_MAX_HELD:,} characters: write an object a line, as .jsonl")
    try:
        elements = json.loads("".join(text))
    except (ValueError, RecursionError) as error:
        raise TableError(f"{name} is not JSON: {_json_error(error)}") from None
    entries = (_json_entry(row, value) for row, value in enumerate(elements, start=1))
    return _sampled(entries, count=len(elements))


def _line_entries(lines: _Lines) -> Iterator[Entry]:
    numbered = ((number, line) for number, line in lines if line.strip())
    for row, (number, line) in enumerate(numbered, 1):
        try:
            yield _json_entry(row, json.loads(line), number)
        except (ValueError, RecursionError) as error:  # noqa: PERF203 - each may be the one
            yield BadRow(row=row, line=number, reason=f"it is not JSON: {_json_error(error)}")


def _json_error(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, at {f'line {error.lineno}, ' if error.lineno > 1 else ''}column {error.colno}"
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def _json_entry(row: int, value: Any, line: int | None = None) -> Entry:
    if isinstance(value, dict):
        return TableRow(row=row, line=line, data=value)
    return BadRow(row=row, line=line, reason=f"it is {kind_of(value)}, but should be an object")


def _import_parquet() -> tuple[Any, Any]:
    """pyarrow, and its part for Parquet."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise ConfigurationError('Parquet needs pyarrow: pip install "ragspan[datasets]"') from error
    return pa, parquet


def _parquet_table(file: BinaryIO, name: str) -> Table:
    arrow, parquet = _import_parquet()
    try:
        source = parquet.ParquetFile(file, pre_buffer=False, buffer_size=_BUFFER)
    except (arrow.ArrowException, OSError) as error:
        raise TableError(f"{name} cannot be read as Parquet: {error}") from None
    batches = source.iter_batches(batch_size=_BATCH, use_threads=False)
    return _arrow_table(batches, name, source.schema_arrow.names, source.metadata.num_rows)


def _arrow_table(batches: Iterable[Any], name: str, columns: Iterable[object], count: int) -> Table:
    arrow, _ = _import_parquet()

    def rows() -> Iterator[Any]:
        try:
            for batch in batches:
                yield from batch.to_pylist()
        except (arrow.ArrowException, OSError, ValueError, OverflowError) as error:  # a time in the year 300000, say
            raise TableError(f"{name} cannot be read to its end: {error}") from None

    return _sampled(_entries(rows()), columns=_checked_names(columns, name), count=count)
