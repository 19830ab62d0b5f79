"""Rows of JSON: one object a line, or one array of objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from ragspan.datasets.cells import kind_of
from ragspan.datasets.results import BadRow
from ragspan.datasets.tables.base import MAX_LINE, Entry, Table, TableRow, sampled
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


def _elements(pieces: Iterator[str], name: str) -> Iterator[Any]:
    """The elements of an array. A value is whole when something follows it."""
    text, row = _next_character("", pieces), 0
    if text[:1] != "[":
        raise TableError(f"{name} is no array of objects")
    text = _next_character(text[1:], pieces)
    while text[:1] != "]":
        row += 1
        value, text = _element(text, pieces, f"{name} is no JSON in row {row}")
        yield value
        text = _next_character(text, pieces)
        if text[:1] not in {",", "]"}:
            raise TableError(f"{name} is no JSON after row {row}: a comma or the end of the array is missing")
        if text[:1] == ",":
            text = _next_character(text[1:], pieces)
            if text[:1] == "]":
                raise TableError(f"{name} is no JSON in row {row + 1}: nothing follows a comma")


def _element(text: str, pieces: Iterator[str], complaint: str) -> tuple[Any, str]:
    """The next value, and the text after it."""
    while True:
        try:
            _require_few_containers(text)
            value, end = _JSON.raw_decode(text)
        except RecursionError:
            raise TableError(f"{complaint} that can be read: it is JSON {_TOO_NESTED}") from None
        except ValueError as error:
            if len(text) > MAX_LINE:
                raise TableError(f"{complaint}, or has more than {MAX_LINE:,} characters there") from None
            if not (following := _more(pieces, len(text))):
                raise TableError(f"{complaint}: {error}") from None
        else:
            if end < len(text) or not (following := _more(pieces, len(text))):
                return value, text[end:]
        text += following


def _next_character(text: str, pieces: Iterator[str]) -> str:
    """The text from its next character on that is no white space; empty at the end."""
    while not (text := text.lstrip(" \t\r\n")):
        piece = next(pieces, None)
        if piece is None:
            break
        text = piece
    return text


def _more(pieces: Iterator[str], wanted: int) -> str:
    """About as much again as there is, so that long elements are not tried over and over; empty at the end."""
    read: list[str] = []
    wanted = max(1, wanted)
    while wanted > 0 and (piece := next(pieces, None)) is not None:
        read.append(piece)
        wanted -= len(piece)
    return "".join(read)


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
