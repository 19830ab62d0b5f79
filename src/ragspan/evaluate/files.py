"""Opens a file as the table that it holds, and reads CSV and JSON strictly: what does not fit is a bad row, never a guess."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast, get_args

from ragspan.arguments import one_of, wrong
from ragspan.evaluate.cells import kind_of
from ragspan.evaluate.results import BadRow
from ragspan.evaluate.table import MAX_CELL, Entry, Table, TableRow, checked_names, parquet_table, sampled
from ragspan.exceptions import ConfigurationError, TableError

FileFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
Lines: TypeAlias = Iterator[tuple[int, str]]
"""Lines with their numbers from 1."""
STANDARD_INPUT = "-"
BY_ENDING: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_LINES_ONLY = (".jsonl", ".ndjson")
_MAX_HELD = 1 << 29
"""Characters of a line, and of a JSON array: each is held as a whole, and a small compressed file may have more than fits."""
_DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r"""["']?sep=(.)["']?\s*""", re.IGNORECASE)
"""What Excel writes before the header, and reads, where the delimiter is none that its language expects."""

# All readers of a process share this limit, so it is set once. A quote that is never closed ends here.
csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))


def open_file(
    path: str | os.PathLike[str],
    *,
    file_format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    blanks_count: bool = False,
) -> Table:
    """The table in a file; `-` is standard input. With the ending `.gz` it is decompressed.

    Args:
        path: of the file.
        file_format: by default that of the ending.
        delimiter: of CSV; by default the one that the file names or uses most in its header.
        encoding: of text.
        blanks_count: whether blanks after a delimiter of CSV belong to the cell. People who type a table mean none.

    Raises:
        TableError: there is no such file, or it holds no such table.
        ConfigurationError: the format is not known, or pyarrow is not installed.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise wrong("delimiter", delimiter, "a single character")
    name = "standard input" if os.fspath(path) == STANDARD_INPUT else os.fspath(path)
    chosen = _format_of(name, file_format)
    with ExitStack() as opened:
        raw = opened.enter_context(_opened(path, name))
        if chosen == "parquet":
            table = parquet_table(raw if raw.seekable() else io.BytesIO(raw.read()), name=name)
        else:
            size = os.fstat(raw.fileno()).st_size if raw.seekable() else 0
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if name.lower().endswith(".gz") else raw
            lines = _lines(opened.enter_context(_text(stream, encoding)), name)
            begin = next(((number, line) for number, line in lines if line.strip()), None)
            if begin is None:
                raise TableError(f"{name} is empty")
            lines = chain([begin], lines)
            if chosen == "jsonl":
                table = _json_table(lines, name)
            else:
                table = _csv_table(lines, name, delimiter, skips_blanks=not blanks_count)
            table = replace(table, share_read=lambda: raw.tell() / size if size else None)
        return replace(table, close=opened.pop_all().close)


def _format_of(name: str, chosen: str | None) -> FileFormat:
    formats = get_args(FileFormat)
    if chosen is not None:
        one_of(*formats).check("the format", chosen)
        return cast("FileFormat", chosen)
    ending = Path(name.lower().removesuffix(".gz")).suffix
    if ending not in BY_ENDING:
        raise ConfigurationError(
            f"the format of {name} is not known from its ending: name it with --format {'|'.join(formats)};"
            " save a spreadsheet as CSV"
        )
    return BY_ENDING[ending]


def _opened(path: str | os.PathLike[str], name: str) -> BinaryIO:
    if os.fspath(path) == STANDARD_INPUT:
        try:
            return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        except (AttributeError, OSError):  # a program without one, or with something in its place
            raise TableError("there is no standard input to read from") from None
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise TableError(f"{name} cannot be opened: {error.strerror or error}") from None


def _text(stream: BinaryIO, encoding: str) -> io.TextIOWrapper:
    """The text of a stream. A byte order mark is left out; lines end at line feeds only."""
    with_mark = "utf-8-sig" if encoding.lower() in {"utf-8", "utf8", "utf_8"} else encoding
    try:
        return io.TextIOWrapper(stream, encoding=with_mark, newline="\n")
    except LookupError:
        raise TableError(
            f"there is no text encoding {encoding!r}; common ones: utf-8, utf-16, cp1252, latin-1"
        ) from None


def _lines(text: io.TextIOWrapper, name: str) -> Lines:
    """The lines, up to bytes that are not text in this encoding, damaged compression, or a line too long: a `TableError`."""
    number = 0
    try:
        for number, line in enumerate(iter(partial(text.readline, _MAX_HELD), ""), start=1):
            if len(line) == _MAX_HELD:
                raise TableError(f"{name}: line {number} has {_MAX_HELD:,} characters or more")
            yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TableError(f"{name} cannot be decompressed: {error}") from None
    except UnicodeDecodeError as error:
        data, encoding = error.object, text.encoding.removesuffix("-sig")
        line_number = number + 1 + data[: error.start].count(b"\n")
        others = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
        guess = others.get(data[:2], "latin-1" if encoding.lower() in {"cp1252", "windows-1252"} else "cp1252")
        raise TableError(
            f"{name}: the byte 0x{data[error.start]:02x}, about line {line_number}, is not {encoding} text: try"
            f" --encoding {guess}, or whatever it was written in"
        ) from None
    except UnicodeError:  # UTF-16 without a byte order mark, say
        raise TableError(f"{name} is not {text.encoding} text: try another --encoding") from None


# CSV ------------------------------------------------------------------------------------------------------------------


def _csv_table(lines: Lines, name: str, delimiter: str | None, *, skips_blanks: bool) -> Table:
    """A table of CSV lines with a header.

    Raises:
        TableError: the header is not CSV, or a column's name is in it twice.
    """
    (first, begin), chosen = _header_and_delimiter(lines, name)
    rows = csv.reader(
        chain([begin], (line for _, line in lines)),
        delimiter=delimiter or chosen,
        strict=True,
        skipinitialspace=skips_blanks,
    )
    try:
        header = checked_names(map(str.strip, next(rows)), f"{name}: the header")
    except csv.Error as error:
        raise TableError(f"{name}: the header is not CSV: {_why_no_csv(begin, error)}") from None

    def entries() -> Iterator[Entry]:
        number, cells = 0, header
        while True:
            line = first + rows.line_num
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                trouble: str | None = f"it is not CSV: {error}"
            else:
                if not cells:  # a blank line
                    continue
                trouble = _trouble(header, cells)
            number += 1
            if trouble is not None:
                yield BadRow(row=number, line=line, reason=trouble)
            else:
                yield TableRow(row=number, line=line, data=dict(zip(header, cells, strict=True)))

    return sampled(entries(), columns=header)


def _why_no_csv(header: str, error: csv.Error) -> str:
    if "\0" in header:
        return "it has a zero byte beside each letter, as UTF-16 without a mark does: try --encoding utf-16-le"
    if "\r" in header.rstrip("\r\n"):
        return "its lines end with carriage returns alone: save it with line feeds"
    return str(error)


def _header_and_delimiter(lines: Lines, name: str) -> tuple[tuple[int, str], str]:
    """The header's line with its number, and the delimiter that a first line names, or the header uses most."""
    first, begin = next(lines)
    said = _SEPARATOR_LINE.fullmatch(begin)
    if said:
        first, begin = next(lines, (first, ""))
        if not begin:
            raise TableError(f"{name} holds no header below its line {said[0].strip()!r}")
        return (first, begin), said[1]
    unquoted = "".join(begin.split('"')[::2])
    if ".tsv" in Path(name).suffixes and "\t" in unquoted:
        return (first, begin), "\t"
    return (first, begin), max(_DELIMITERS, key=unquoted.count)  # the comma where there is none


def _trouble(header: Sequence[str], cells: Sequence[str]) -> str | None:
    if len(cells) != len(header):
        return f"it has {len(cells)} cells, but the header has {len(header)}"
    return "it holds a NUL byte" if any("\0" in cell for cell in cells) else None


# JSON -----------------------------------------------------------------------------------------------------------------


def _json_table(lines: Lines, name: str) -> Table:
    """An array of objects, where the ending allows for one and the first character begins one, or an object a line.

    Raises:
        TableError: it is not an array of JSON.
    """
    first, begin = next(lines)
    if begin.strip() == "{":  # no object a line begins so
        raise TableError(
            f"{name} is one object of JSON over several lines: write a list of objects, one for each row, or an object a line"
        )
    if begin.lstrip()[0] != "[" or name.lower().removesuffix(".gz").endswith(_LINES_ONLY):
        return sampled(_line_entries(chain([(first, begin)], lines)))
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
    return sampled(entries, count=len(elements))


def _line_entries(lines: Lines) -> Iterator[Entry]:
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
