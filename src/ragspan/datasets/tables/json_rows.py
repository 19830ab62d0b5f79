"""Rows of JSON: one object a line, or one array of objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from ragspan.datasets.cells import kind_of
from ragspan.datasets.results import BadRow
from ragspan.datasets.tables.base import Entry, Table, TableRow, sampled
from ragspan.datasets.tables.text import MAX_LINE
from ragspan.exceptions import TableError


def json_lines_table(lines: Iterable[str], *, name: str, **known: Any) -> Table:
    """A table with an object on each line; blank lines are nothing.

    Raises:
        TableError: there is no line at all.
    """
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    first = next(numbered, None)
    if first is None:
        raise TableError(f"{name} is empty: a table has an object on each line")
    return sampled(_line_entries(chain([first], numbered)), **known)


def json_table(characters: Iterable[str], *, name: str, **known: Any) -> Table:
    """A table of one array of objects.

    Raises:
        TableError: it is no array; while it is read: it is no JSON from some place on.
    """
    return sampled(_array_entries(_elements(iter(characters), name)), **known)


def _line_entries(lines: Iterable[tuple[int, str]]) -> Iterator[Entry]:
    for row, (number, line) in enumerate(lines, 1):
        value, trouble = _parsed(line)
        yield _entry(row, value, number) if trouble is None else BadRow(row=row, line=number, reason=trouble)


def _parsed(line: str) -> tuple[Any, str | None]:
    """The value of a line, and what is wrong with it."""
    try:
        _require_few_containers(line)
        return _JSON.decode(line), None
    except json.JSONDecodeError as error:
        return None, f"it is no JSON: {error.msg}, at column {error.colno}"
    except RecursionError:
        return None, f"it is JSON {_TOO_NESTED}"


def _array_entries(elements: Iterable[Any]) -> Iterator[Entry]:
    for row, value in enumerate(elements, 1):
        yield _entry(row, value, None)


def _entry(row: int, value: Any, line: int | None) -> Entry:
    if isinstance(value, dict):
        return TableRow(row=row, line=line, data=value)
    return BadRow(row=row, line=line, reason=f"it is {kind_of(value)}, but should be an object")


class _Ahead:
    """Text that is read on when it is not enough."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self._pieces = pieces
        self.text = ""

    def more(self) -> bool:
        """Read as much again as there is, so that long elements are not tried over and over; False at the end."""
        wanted = max(1, len(self.text))
        read: list[str] = []
        while wanted > 0 and (piece := next(self._pieces, None)) is not None:
            read.append(piece)
            wanted -= len(piece)
        self.text += "".join(read)
        return bool(read)

    def next_character(self) -> str:
        """The next one that is no white space, which stays where it is; empty at the end."""
        while True:
            self.text = self.text.lstrip(" \t\r\n")
            if self.text or not self.more():
                return self.text[:1]

    def skip(self, characters: int) -> None:
        self.text = self.text[characters:]


def _elements(pieces: Iterator[str], name: str) -> Iterator[Any]:
    ahead = _Ahead(pieces)
    if ahead.next_character() != "[":
        raise TableError(f"{name} is no array of objects")
    ahead.skip(1)
    row = 0
    is_first = True
    while True:
        following = ahead.next_character()
        if following == "]":
            return
        if not is_first:
            if following != ",":
                raise TableError(f"{name} is no JSON after row {row}: a comma or the end of the array is missing")
            ahead.skip(1)
            ahead.next_character()
        row, is_first = row + 1, False
        yield _element(ahead, f"{name} is no JSON in row {row}")


def _element(ahead: _Ahead, complaint: str) -> Any:
    """The next value, which is known to be whole when something follows it."""
    while True:
        try:
            _require_few_containers(ahead.text)
            value, end = _JSON.raw_decode(ahead.text)
        except RecursionError:
            raise TableError(f"{complaint} that can be read: it is JSON {_TOO_NESTED}") from None
        except ValueError as error:
            if len(ahead.text) > MAX_LINE:
                raise TableError(f"{complaint}, or has more than {MAX_LINE:,} characters there") from None
            if not ahead.more():
                raise TableError(f"{complaint}: {error}") from None
            continue
        if end < len(ahead.text) or not ahead.more():
            ahead.skip(end)
            return value


def _require_few_containers(text: str) -> None:
    """Raise as for too deep a nesting: an empty list takes twenty times the memory that its text takes."""
    if text.count("[") + text.count("{") > _MOST_CONTAINERS:
        raise RecursionError


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < _LONG_NUMBER else digits


_MOST_CONTAINERS = 1_000_000
_TOO_NESTED = f"that is nested too deep, or has more than {_MOST_CONTAINERS:,} lists and objects"
_LONG_NUMBER = 640
"""Digits. Python reads thousands of them only where it is told to, and this many always; what is longer stays text."""
_JSON = json.JSONDecoder(parse_int=_integer)
