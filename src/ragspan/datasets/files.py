"""Opens a file as the table that it holds, and reads CSV and JSON strictly: what does not fit is a bad row, never a guess."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast, get_args

from ragspan.arguments import one_of, wrong
from ragspan.datasets.cells import kind_of
from ragspan.datasets.results import BadRow
from ragspan.datasets.tables import MAX_CELL, Entry, Table, TableRow, checked_names, parquet_table, sampled
from ragspan.exceptions import ConfigurationError, TableError

FileFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
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
_MAX_LINE = 1 << 25
"""Characters of a line of text: what is longer is no line of a table, and has to be held as a whole."""
_MAX_ARRAY = 1 << 29
"""Characters of a JSON array, which is read as a whole."""
_DELIMITERS = ",;\t|"
_PIECE = 1 << 13  # characters that are read at a time

# All readers of a process share this limit, so it is set once. A quote that is never closed ends here.
csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))


def open_file(
    path: str | os.PathLike[str],
    *,
    file_format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Table:
    """The table in a file; `-` is standard input. With the ending `.gz` it is decompressed.

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
        size = os.fstat(raw.fileno()).st_size if raw.seekable() else 0
        is_compressed = name.lower().endswith(".gz")

        def share_read() -> float | None:
            return raw.tell() / size if size and not raw.closed else None

        if chosen == "parquet":
            if is_compressed:
                raise TableError(f"{name}: decompress the file first; Parquet compresses its columns by itself")
            file = raw if raw.seekable() else opened.enter_context(_copied(raw))
            table = parquet_table(file, name=name, share_read=share_read)
        else:
            stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if is_compressed else raw
            text = TextReader(stream, encoding=encoding, name=name)
            opened.callback(text.close)
            if chosen == "jsonl":
                table = _json_table(text, name, share_read=share_read)
            else:
                by_ending = "\t" if ".tsv" in Path(name).suffixes else None
                table = csv_table(text.lines(), name=name, delimiter=delimiter or by_ending, share_read=share_read)
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


def _copied(stream: BinaryIO) -> BinaryIO:
    """A temporary file with the stream's bytes: Parquet is read from its end."""
    copy = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - the caller closes it
    shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy


class TextReader:
    """Text of a stream. A byte order mark is left out; lines end at line feeds only.

    Raises:
        TableError: there is no such encoding. While text is read: bytes that are no text in this encoding, a line of more
            than `_MAX_LINE` characters, damaged compression.
    """

    def __init__(self, stream: BinaryIO, *, encoding: str, name: str) -> None:
        self._encoding, self._name = encoding, name
        self.lines_read = 0
        """Line feeds so far."""
        with_mark = "utf-8-sig" if encoding.lower() in {"utf-8", "utf8", "utf_8"} else encoding
        try:
            self._text = io.TextIOWrapper(stream, encoding=with_mark, newline="\n")
        except LookupError:
            raise TableError(
                f"there is no text encoding {encoding!r}; common ones: utf-8, utf-16, cp1252, latin-1"
            ) from None
        self.close = self._text.close

    def first_character(self) -> str:
        """The first one that is not blank; empty where there is none."""
        while (character := self._read(self._text.read, 1)).isspace():
            pass
        return character

    def lines(self, begin: str = "") -> Iterator[str]:
        """The lines, each with its end; `begin` is read already, of the first one."""
        while line := begin + self._read(self._text.readline, _MAX_LINE + 1):
            if len(line) > _MAX_LINE:
                raise TableError(
                    f"{self._name}: line {self.lines_read + 1} has more than {_MAX_LINE:,} characters, which is no line of a table"
                )
            begin = ""
            yield line

    def rest(self, most: int) -> str:
        """All that is left, or a `TableError` if it is more than so many characters."""
        pieces, room = [], most
        while piece := self._read(self._text.read, _PIECE):
            pieces.append(piece)
            room -= len(piece)
            if room < 0:
                raise TableError(f"{self._name} has more than {most:,} characters: write an object a line, as .jsonl")
        return "".join(pieces)

    def _read(self, read: Callable[[int], str], size: int) -> str:
        try:
            text = read(size)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise TableError(f"{self._name} cannot be decompressed: {error}") from None
        except UnicodeDecodeError as error:
            raise TableError(self._told(error)) from None
        except UnicodeError:  # UTF-16 without a byte order mark, say
            raise TableError(f"{self._name} is no {self._encoding} text: try another --encoding") from None
        self.lines_read += text.count("\n")
        return text

    def _told(self, error: UnicodeDecodeError) -> str:
        data, line = error.object, self.lines_read + 1 + error.object[: error.start].count(b"\n")
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            guess = "utf-16"
        else:
            guess = "latin-1" if self._encoding.lower() in {"cp1252", "windows-1252"} else "cp1252"
        return (
            f"{self._name}: the byte 0x{data[error.start]:02x}, about line {line}, is no {self._encoding} text: try"
            f" --encoding {guess}, or whatever it was written in"
        )


# CSV ------------------------------------------------------------------------------------------------------------------


def csv_table(lines: Iterable[str], *, name: str, delimiter: str | None, **known: Any) -> Table:
    """A table of CSV lines with a header. Without a delimiter it is the most frequent one of the header.

    Raises:
        TableError: there is no header, or a column's name is in it twice.
    """
    numbered = enumerate(lines)
    blank, first = next(((number, line) for number, line in numbered if line.strip()), (0, ""))
    if not first:
        raise TableError(f"{name} is empty: a table begins with the names of its columns")
    unquoted = "".join(first.split('"')[::2])
    delimiter = delimiter or max(_DELIMITERS, key=unquoted.count)  # the comma where there is none
    rows = csv.reader(chain([first], (line for _, line in numbered)), delimiter=delimiter, strict=True)
    try:
        header = checked_names(next(rows), f"{name}: the header")
    except csv.Error as error:
        raise TableError(f"{name}: the header is no CSV: {error}") from None

    def entries() -> Iterator[Entry]:
        number, cells = 0, header
        while True:
            line = blank + rows.line_num + 1
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error as error:
                trouble: str | None = f"it is no CSV: {error}"
            else:
                if not cells:  # a blank line
                    continue
                trouble = _trouble(header, cells)
            number += 1
            if trouble is not None:
                yield BadRow(row=number, line=line, reason=trouble)
            else:
                yield TableRow(row=number, line=line, data=dict(zip(header, cells, strict=True)))

    return sampled(entries(), columns=header, **known)


def _trouble(header: Sequence[str], cells: Sequence[str]) -> str | None:
    if len(cells) != len(header):
        return f"it has {len(cells)} cells, but the header has {len(header)}"
    return "it holds a NUL byte" if any("\0" in cell for cell in cells) else None


# JSON -----------------------------------------------------------------------------------------------------------------


def _json_table(text: TextReader, name: str, **known: Any) -> Table:
    """An array of objects, where the ending allows for one and the first character begins one, or an object a line.

    Raises:
        TableError: it is empty, or no array of JSON.
    """
    first = text.first_character()
    if not first:
        raise TableError(f"{name} is empty: a table has an object on each line")
    if first != "[" or name.lower().removesuffix(".gz").endswith(_LINES_ONLY):
        return sampled(_line_entries(text.lines(first), first_line=text.lines_read + 1), **known)
    try:
        elements = json.loads(first + text.rest(_MAX_ARRAY))
    except (ValueError, RecursionError) as error:
        raise TableError(f"{name} is no JSON: {_json_error(error)}") from None
    entries = (_json_entry(row, value) for row, value in enumerate(elements, start=1))
    return sampled(entries, count=len(elements), **known)


def _line_entries(lines: Iterable[str], first_line: int) -> Iterator[Entry]:
    numbered = ((number, line) for number, line in enumerate(lines, first_line) if line.strip())
    for row, (number, line) in enumerate(numbered, 1):
        try:
            yield _json_entry(row, json.loads(line), number)
        except (ValueError, RecursionError) as error:  # noqa: PERF203 - each may be the one
            yield BadRow(row=row, line=number, reason=f"it is no JSON: {_json_error(error)}")


def _json_error(error: ValueError | RecursionError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, at {f'line {error.lineno}, ' if error.lineno > 1 else ''}column {error.colno}"
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def _json_entry(row: int, value: Any, line: int | None = None) -> Entry:
    if isinstance(value, dict):
        return TableRow(row=row, line=line, data=value)
    return BadRow(row=row, line=line, reason=f"it is {kind_of(value)}, but should be an object")
