"""Where rows come from: files, data frames, data sets, and anything that can be iterated. Rows stream.

CSV and JSON are read strictly: what does not fit is a bad row, never a guess.
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
from typing import Any, Final

from ragspan.arguments import with_article
from ragspan.evaluate.rows import RUN
from ragspan.evaluate.sources import data_set_of, stored_rows
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.records import RagRecord

STANDARD_INPUT: Final = "-"
_SAMPLED: Final = 50  # rows
_BATCH: Final = 64  # rows of Parquet
_JSON: Final = {".jsonl", ".ndjson", ".json"}

# Of all readers of the process. Long contexts are far below, and a quote that is never closed ends here.
csv.field_size_limit(max(csv.field_size_limit(), 1 << 24))


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table that is read once, from its first row to its last."""

    columns: Sequence[str]
    """The table's, or where each row has its own, those of the first rows."""
    sample: Sequence[Mapping[str, Any]]
    """Some of the first rows that could be read."""
    rows: Iterator[Mapping[str, Any] | RagRecord | str]
    """All rows, those of the sample included. A text says why a row cannot be read."""
    share_read: Callable[[int], float] | None = None
    """How much of it has been read after so many rows, from 0 to 1; None where that is not known."""
    close: Callable[[], None] = lambda: None


def table_of(data: Any) -> Table:
    """The table that the data are, or a `TableError`."""
    if isinstance(data, str) and (data_set := data_set_of(data)) is not None:
        return _table(stored_rows(*data_set))
    if isinstance(data, (str, os.PathLike)):
        return _file_table(data)
    if hasattr(data, "itertuples"):  # a frame of pandas
        columns = list(map(str, data.columns))
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


def _table(rows: Iterable[Any], columns: Sequence[str] | None = None, count: int | None = None) -> Table:
    """A table of rows that are dictionaries or records; an error in place of a row says why it cannot be read."""

    def readable() -> Iterator[Mapping[str, Any] | RagRecord | str]:
        for data in rows:
            if isinstance(data, (Mapping, RagRecord)):
                yield data
            else:
                kind = f"is {with_article(type(data).__name__)}, but should be a dictionary or a record"
                yield f"it {data if isinstance(data, TableError) else kind}"

    rest = readable()
    first = list(islice(rest, _SAMPLED))
    sample = [data for data in first if isinstance(data, Mapping)]
    if columns is None:
        columns = list(dict.fromkeys(str(key) for values in sample for key in values))
    if len(set(columns)) < len(columns):
        raise TableError(f"the table has two columns of one name: {', '.join(columns)}")
    share_read = (lambda row: row / count) if count else None
    return Table(columns=columns, sample=sample, rows=chain(first, rest), share_read=share_read)


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
            return replace(_parquet_table(raw, name), close=opened.pop_all().close)
        size = os.fstat(raw.fileno()).st_size if raw.seekable() else 0
        # A byte order mark is left out, and lines end at line feeds only.
        text = opened.enter_context(io.TextIOWrapper(raw, encoding="utf-8-sig", newline="\n"))

        def decoded() -> Iterator[str]:
            try:
                yield from text
            except UnicodeDecodeError:
                raise TableError(f"{name} is not UTF-8 text: unpack it, or save it as UTF-8") from None
            except OSError as error:
                raise TableError(f"{name} cannot be read: {error.strerror or error}") from None

        lines = decoded()
        begin = next((line for line in lines if line.strip()), None)
        if begin is None:
            raise TableError(f"{name} is empty")
        is_json = ending not in {".csv", ".tsv"} and (ending in _JSON or begin.lstrip()[:1] in {"{", "["})
        table = (_json_table if is_json else _csv_table)(chain([begin], lines), name)
        by_bytes = (lambda _: raw.tell() / size) if size else None
        return replace(table, share_read=table.share_read or by_bytes, close=opened.pop_all().close)


def _csv_table(lines: Iterator[str], name: str) -> Table:
    """A table of CSV lines with a header, whose most frequent delimiter counts."""
    begin = next(lines)
    delimiter = max(",;\t|", key="".join(begin.split('"')[::2]).count)  # the comma where there is none
    cells = csv.reader(chain([begin], lines), delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        header = list(map(str.strip, next(cells, [])))
    except csv.Error as error:
        raise TableError(f"{name}: the header is not CSV ({error}): save it as CSV in UTF-8") from None

    def rows() -> Iterator[Any]:
        while True:
            try:
                values = next(cells)
            except StopIteration:
                return
            except csv.Error as error:
                yield TableError(f"is not CSV: {error}")
                continue
            if len(values) == len(header):
                yield dict(zip(header, values, strict=True))
            elif values:  # else it is a blank line
                yield TableError(f"has {len(values)} cells, but the header has {len(header)}")

    return _table(rows(), header)


def _json_table(lines: Iterator[str], name: str) -> Table:
    """An object a line, or an array of objects. The first line of a file of our rows is none."""
    begin = next(lines)
    if begin.lstrip()[0] == "[":
        elements = _parsed("".join([begin, *lines]))
        if isinstance(elements, TableError):
            raise TableError(f"{name} {elements}")
        return _table(elements, count=len(elements))
    if begin.strip() == "{":
        raise TableError(f"{name} is a JSON object of several lines: write one object a line, or an array of them")
    rest = lines if begin.startswith(f'{{"{RUN}"') else chain([begin], lines)
    return _table(_parsed(line.rstrip()) for line in rest if line.strip())


def _parsed(text: str) -> Any:
    """What the JSON text holds, or an error that says why it is none."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if "\n" in text else ""
        return TableError(f"is not JSON: {error.msg}, at {line}column {error.colno}")
    except (ValueError, RecursionError):
        return TableError("is not JSON: nested too deep, or with a number of thousands of digits")


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

    return _table(rows(), source.schema_arrow.names, source.metadata.num_rows)
