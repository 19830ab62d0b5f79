"""Rows of CSV text, read strictly: what does not fit is a bad row, never a guess."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ragspan.datasets.results import BadRow
from ragspan.datasets.tables.base import MAX_CELL, Entry, Table, TableRow, sampled
from ragspan.exceptions import TableError

_DELIMITERS = ",;\t|"

# All readers of a process share this limit, so it is set once; the limit of a row is `_Lines`' own.
csv.field_size_limit(max(csv.field_size_limit(), MAX_CELL))


def csv_table(lines: Iterable[str], *, name: str, delimiter: str | None, **known: Any) -> Table:
    """A table of CSV text with a header.

    Args:
        lines: with their ends.
        name: of the file, for messages.
        known: of the table, as `Table` has it.
        delimiter: None takes the one of comma, semicolon, tab and bar that is most frequent in the header.

    Raises:
        TableError: there is no header, or a column's name stands in it twice.
    """
    source = _Lines(lines)
    header_line = next((line for line in source if line.strip()), None)
    if header_line is None:
        raise TableError(f"{name} is empty: a table begins with the names of its columns")
    delimiter = delimiter or most_frequent_delimiter(header_line)
    source.push_back(header_line)
    rows = csv.reader(source, delimiter=delimiter, strict=True)
    try:
        header = next(rows)
    except csv.Error as error:
        raise TableError(f"{name}: the header is no CSV: {error}") from None
    twice = [column for column, times in Counter(header).items() if times > 1]
    if twice:
        raise TableError(f"{name}: the header has the column {twice[0]!r} {Counter(header)[twice[0]]} times")
    return sampled(_entries(rows, header, source, delimiter), columns=header, **known)


def most_frequent_delimiter(header: str) -> str:
    """Of a header, outside of quotes; the comma where there is none."""
    unquoted = "".join(header.split('"')[::2])
    return max(_DELIMITERS, key=unquoted.count)


class _LongRowError(csv.Error):
    """A row has more characters than a row may have."""

    def __init__(self) -> None:
        super().__init__(f"it has more than {MAX_CELL:,} characters")


class _Lines:
    """Lines, how many of them were read, and those of the row that is being read."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.count = 0
        self.row: list[str] = []
        self._room = MAX_CELL

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.count += 1
        self.row.append(line)
        self._room -= len(line)
        if self._room < 0:
            raise _LongRowError
        return line

    def begin_row(self) -> None:
        self.row.clear()
        self._room = MAX_CELL

    def push_back(self, line: str) -> None:
        self._lines = chain([line], self._lines)
        self.count -= 1
        self.begin_row()


def _entries(rows: Iterator[list[str]], header: Sequence[str], source: _Lines, delimiter: str) -> Iterator[Entry]:
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
            yield BadRow(row=number, line=line, reason=_told(error, source.row, header, delimiter))
            continue
        if not cells:
            continue  # a blank line
        number += 1
        trouble = _trouble(cells, header)
        if trouble is not None:
            yield BadRow(row=number, line=line, reason=trouble)
        else:
            yield TableRow(row=number, line=line, data=dict(zip(header, cells, strict=True)))


def _told(error: csv.Error, lines: Iterable[str], header: Sequence[str], delimiter: str) -> str:
    if not isinstance(error, _LongRowError):
        return f"it is no CSV: {error}"
    try:  # where a quote is not closed, the last column is the one that has it
        (cells,) = csv.reader(["".join(lines)[: MAX_CELL - 1]], delimiter=delimiter)
    except csv.Error:
        return str(error)
    return f"{error}, the last of them in the column {header[min(len(cells), len(header)) - 1]!r}"


def _trouble(cells: Sequence[str], header: Sequence[str]) -> str | None:
    if len(cells) != len(header):
        return f"it has {len(cells)} cells, but the header has {len(header)}"
    if any("\0" in cell for cell in cells):
        return "it holds a NUL byte"
    return None
