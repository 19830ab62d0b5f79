"""Rows of CSV and of JSON, read strictly: what does not fit is a bad row, never a guess."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, BinaryIO

from ragspan.datasets.cells import kind_of
from ragspan.datasets.results import BadRow
from ragspan.datasets.tables import MAX_CELL, MAX_LINE, Entry, Table, TableRow, checked_names, sampled
from ragspan.exceptions import TableError

_DELIMITERS = ",;\t|"
_LONG_NUMBER = 640  # digits: Python reads thousands of them only where it is told to; what is longer stays text
_PIECE = 1 << 16  # characters that are read at a time
DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)

# All readers of a process share this limit, so it is set once; the limit of a row is `_CsvLines`' own.
csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))


class TextReader:
    """Text of a stream. A byte order mark is left out; lines end at line feeds only.

    Args:
        stream: of bytes.
        encoding: of the text.
        name: of the file, for messages.

    Raises:
        TableError: there is no such encoding. While text is read: bytes that are no text in this encoding, a line of more
            than `MAX_LINE` characters, damaged compression.
    """

    def __init__(self, stream: BinaryIO, *, encoding: str, name: str) -> None:
        self._stream, self._encoding, self._name = stream, encoding, name
        self._lines = 0
        plain = encoding.lower().replace("_", "-")
        try:
            with_mark = "utf-8-sig" if plain in {"utf-8", "utf8"} else encoding
            self._text = io.TextIOWrapper(stream, encoding=with_mark, newline="\n")
        except LookupError:
            raise TableError(
                f"there is no text encoding {encoding!r}; common ones: utf-8, utf-16, cp1252, latin-1"
            ) from None
        self.close = self._text.close

    def lines(self, first: str = "") -> Iterator[str]:
        """The lines, each with its end; `first` is text that was read before."""
        *whole, rest = first.split("\n")
        for line in whole:
            self._lines += 1
            yield f"{line}\n"
        while line := rest + self._read(self._text.readline, MAX_LINE + 1):
            rest = ""
            if len(line) > MAX_LINE:
                raise TableError(
                    f"{self._name}: line {self._lines + 1} has more than {MAX_LINE:,} characters, which is no line of a table"
                )
            self._lines += 1
            yield line

    def pieces(self) -> Iterator[str]:
        """The text in pieces that may end anywhere."""
        while piece := self._read(self._text.read, _PIECE):
            yield piece

    def _read(self, read: Callable[[int], str], size: int) -> str:
        try:
            return read(size)
        except DAMAGED as error:
            raise TableError(f"{self._name} cannot be decompressed: {error}") from None
        except UnicodeDecodeError as error:
            raise TableError(self._told(error)) from None
        except UnicodeError:  # UTF-16 without a byte order mark, say
            raise TableError(f"{self._name} is no {self._encoding} text: try another --encoding") from None

    def _told(self, error: UnicodeDecodeError) -> str:
        data, line = error.object, self._lines + 1 + error.object[: error.start].count(b"\n")
        place = f"the byte 0x{data[error.start]:02x}"
        with suppress(OSError):  # of a pipe nobody knows how much was read
            place = f"byte {self._stream.tell() - len(data) + error.start + 1} (0x{data[error.start]:02x})"
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            guess = "utf-16"
        else:
            guess = "latin-1" if self._encoding.lower() in {"cp1252", "windows-1252"} else "cp1252"
        return (
            f"{self._name}: {place}, about line {line}, is no {self._encoding} text: try --encoding {guess}, or whatever it"
            " was written in"
        )


# CSV ------------------------------------------------------------------------------------------------------------------


def csv_table(lines: Iterable[str], *, name: str, delimiter: str | None, **known: Any) -> Table:
    """A table of CSV lines with a header. Without a delimiter it is the most frequent one of the header.

    Raises:
        TableError: there is no header, or a column's name is in it twice.
    """
    numbered = enumerate(lines)
    blank, header_line = next(((number, line) for number, line in numbered if line.strip()), (0, ""))
    if not header_line:
        raise TableError(f"{name} is empty: a table begins with the names of its columns")
    delimiter = delimiter or most_frequent_delimiter(header_line)
    source = _CsvLines(chain([header_line], (line for _, line in numbered)), count=blank)
    rows = csv.reader(source, delimiter=delimiter, strict=True)
    try:
        header = checked_names(next(rows), f"{name}: the header")
    except csv.Error as error:
        raise TableError(f"{name}: the header is no CSV: {error}") from None
    return sampled(_csv_entries(rows, header, source, delimiter), columns=header, **known)


def most_frequent_delimiter(header: str) -> str:
    """Of a header, outside of quotes; the comma where there is none."""
    unquoted = "".join(header.split('"')[::2])
    return max(_DELIMITERS, key=unquoted.count)


class _LongRowError(csv.Error):
    """A row has more characters than a row may have."""


class _CsvLines:
    """Counts the lines that are read, and keeps those of the row that is being read."""

    def __init__(self, lines: Iterable[str], count: int) -> None:
        self._lines = iter(lines)
        self.count = count
        self.begin_row()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.count += 1
        self.row.append(line)
        self._room -= len(line)
        if self._room < 0:
            raise _LongRowError(f"it has more than {MAX_CELL:,} characters")
        return line

    def begin_row(self) -> None:
        self.row: list[str] = []
        self._room = MAX_CELL


def _csv_entries(
    rows: Iterator[list[str]], header: Sequence[str], source: _CsvLines, delimiter: str
) -> Iterator[Entry]:
    number = 0
    while True:
        line = source.count + 1
        source.begin_row()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            number += 1
            yield BadRow(row=number, line=line, reason=_csv_error(error, source.row, header, delimiter))
            continue
        if not cells:
            continue  # a blank line
        number += 1
        if len(cells) != len(header):
            told = f"it has {len(cells)} cells, but the header has {len(header)}"
            yield BadRow(row=number, line=line, reason=told)
        elif any("\0" in cell for cell in cells):
            yield BadRow(row=number, line=line, reason="it holds a NUL byte")
        else:
            yield TableRow(row=number, line=line, data=dict(zip(header, cells, strict=True)))


def _csv_error(error: csv.Error, lines: Iterable[str], header: Sequence[str], delimiter: str) -> str:
    if not isinstance(error, _LongRowError):
        return f"it is no CSV: {error}"
    try:  # if a quote is not closed, it is in the last column that can be read
        (cells,) = csv.reader(["".join(lines)[: MAX_CELL - 1]], delimiter=delimiter)
    except csv.Error:
        return str(error)
    return f"{error}, the last of them in the column {header[min(len(cells), len(header)) - 1]!r}"


# JSON -----------------------------------------------------------------------------------------------------------------


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < _LONG_NUMBER else digits


_JSON = json.JSONDecoder(parse_int=_integer)


def json_lines_table(lines: Iterable[str], *, name: str, **known: Any) -> Table:
    """A table with an object on each line; blank lines do not count."""
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        raise TableError(f"{name} is empty: a table has an object on each line")
    return sampled(_line_entries(chain([first], numbered)), **known)


def json_table(pieces: Iterable[str], *, name: str, **known: Any) -> Table:
    """A table of one array of objects. An error in the JSON is a `TableError` while it is read."""
    elements = enumerate(_elements(iter(pieces), name), start=1)
    return sampled((_json_entry(row, value) for row, value in elements), **known)


def _line_entries(lines: Iterable[tuple[int, str]]) -> Iterator[Entry]:
    for row, (number, line) in enumerate(lines, 1):
        try:
            yield _json_entry(row, _JSON.decode(line), number)
        except json.JSONDecodeError as error:  # noqa: PERF203 - each may be the one
            yield BadRow(row=row, line=number, reason=f"it is no JSON: {error.msg}, at column {error.colno}")
        except RecursionError:
            yield BadRow(row=row, line=number, reason="it is JSON that is nested too deep")


def _json_entry(row: int, value: Any, line: int | None = None) -> Entry:
    if isinstance(value, dict):
        return TableRow(row=row, line=line, data=value)
    return BadRow(row=row, line=line, reason=f"it is {kind_of(value)}, but should be an object")


def _elements(pieces: Iterator[str], name: str) -> Iterator[Any]:
    """The elements of an array that begins with its bracket. A value is complete when something follows it."""
    text, row, is_first = next(pieces).lstrip()[1:], 0, True
    while True:
        text = text.lstrip() or _read_on(pieces, 0).lstrip()
        if text[:1] == "]" and is_first:
            return
        row += 1
        value, text = _element(text, pieces, f"{name} is no JSON in row {row}")
        yield value
        text, is_first = text.lstrip(), False
        if text[:1] not in {",", "]"}:
            raise TableError(f"{name} is no JSON after row {row}: a comma or the end of the array is missing")
        if text[0] == "]":
            return
        text = text[1:]


def _element(text: str, pieces: Iterator[str], complaint: str) -> tuple[Any, str]:
    """The next value, and the text after it, which begins with what follows."""
    while True:
        trouble: str | None = None
        try:
            value, end = _JSON.raw_decode(text)
        except RecursionError:
            raise TableError(f"{complaint} that can be read: it is nested too deep") from None
        except ValueError as error:
            if len(text) > MAX_LINE:
                raise TableError(f"{complaint}, or has more than {MAX_LINE:,} characters there") from None
            trouble = f"{complaint}: {error}"
        else:
            if text[end:].strip():
                return value, text[end:]
        following = _read_on(pieces, len(text))
        if not following:
            if trouble is None:
                return value, ""
            raise TableError(trouble)
        text = (text + following).lstrip()


def _read_on(pieces: Iterator[str], wanted: int) -> str:
    """More than `wanted` characters, which doubles the text, so that long elements are not tried too often; blank at the end."""
    read = ""
    for piece in pieces:
        read += piece
        if len(read) > wanted and read.strip():
            break
    return read
