"""Rows of CSV text, read strictly: what does not fit is a bad row, never a guess."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from ragspan.datasets.results import BadRow
from ragspan.datasets.tables.base import Entry, Table, TableRow, sampled
from ragspan.exceptions import TableError

MAX_FIELD = 1 << 24
"""Characters of a field. Long passages are far below; a quote that is never closed would take in the rest of the file."""
_DELIMITERS = ",;\t|"


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
    source = _Counted(lines)
    header_line = next((line for line in source if line.strip()), None)
    if header_line is None:
        raise TableError(f"{name} is empty: a table begins with the names of its columns")
    delimiter = delimiter or most_frequent_delimiter(header_line)
    source.push_back(header_line)
    with _long_fields():
        rows = csv.reader(source, delimiter=delimiter, strict=True)
        try:
            header = next(rows)
        except csv.Error as error:
            raise TableError(f"{name}: the header is no CSV: {error}") from None
    twice = [column for column, times in Counter(header).items() if times > 1]
    if twice:
        raise TableError(f"{name}: the header has the column {twice[0]!r} {Counter(header)[twice[0]]} times")
    return sampled(_entries(rows, header, source), columns=header, **known)


def most_frequent_delimiter(header: str) -> str:
    """Of a header, outside of quotes; the comma where there is none."""
    unquoted = "".join(header.split('"')[::2])
    return max(_DELIMITERS, key=unquoted.count)


class _Counted:
    """Lines, and how many of them were read."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self.count = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.count += 1
        return line

    def push_back(self, line: str) -> None:
        self._lines = chain([line], self._lines)
        self.count -= 1


class _long_fields:  # noqa: N801 - used as a statement
    """Lets fields be as long as `MAX_FIELD`. The limit is the csv module's own, which all readers of a process share."""

    def __enter__(self) -> None:
        self._before = csv.field_size_limit(max(csv.field_size_limit(), MAX_FIELD))

    def __exit__(self, *_: object) -> None:
        csv.field_size_limit(self._before)


def _entries(rows: Iterator[list[str]], header: Sequence[str], source: _Counted) -> Iterator[Entry]:
    number = 0
    while True:
        line = source.count + 1
        try:
            with _long_fields():
                cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            number += 1
            yield BadRow(row=number, line=line, reason=f"it is no CSV: {error}")
            continue
        if not cells:
            continue  # a blank line
        number += 1
        trouble = _trouble(cells, header)
        if trouble is not None:
            yield BadRow(row=number, line=line, reason=trouble)
        else:
            yield TableRow(row=number, line=line, data=dict(zip(header, cells, strict=True)))


def _trouble(cells: Sequence[str], header: Sequence[str]) -> str | None:
    if len(cells) != len(header):
        return f"it has {len(cells)} cells, but the header has {len(header)}"
    if any("\0" in cell for cell in cells):
        return "it holds a NUL byte"
    return None
