"""What all tables have in common: rows that stream, and what is known of them beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, TypeAlias

from ragspan.datasets.results import BadRow
from ragspan.records import RagRecord

MAX_CELL = 1 << 24
"""Characters of a cell's text, and of a row of CSV. Long contexts are far below."""
MAX_LINE = 1 << 25
"""Characters of a line of text: what is longer is no line of a table, and has to be held as a whole."""
_SAMPLED = 50  # rows


@dataclass(frozen=True, kw_only=True, slots=True)
class TableRow:
    """One row as the table has it."""

    row: int
    """Of the table's data, counted from 1."""
    data: Mapping[str, Any] | RagRecord
    line: int | None = None
    """Where it begins in the file, counted from 1."""


Entry: TypeAlias = "TableRow | BadRow"


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
    identity: Mapping[str, Any] = field(default_factory=dict)
    """Tells whether a file is the one that was read before."""
    share_read: Callable[[], float | None] = lambda: None
    """Of a file, from 0 to 1; None where it is not known."""
    close: Callable[[], None] = lambda: None


def sampled(entries: Iterable[Entry], *, columns: Sequence[str] | None = None, **known: Any) -> Table:
    """A table with a look at its first rows; where they bring columns of their own, these are the table's."""
    rows = iter(entries)
    first: list[Entry] = []
    room = MAX_CELL
    for entry in islice(rows, _SAMPLED):
        first.append(entry)
        room -= _characters(entry)
        if room < 0:
            break
    sample = [entry.data for entry in first if isinstance(entry, TableRow) and isinstance(entry.data, Mapping)]
    if columns is None:
        columns = list(dict.fromkeys(str(key) for values in sample for key in values))
    return Table(columns=columns, sample=sample, entries=chain(_given_out(first), rows), **known)


def _characters(entry: Entry) -> int:
    """Of its cells, and of the lists in them."""
    values = entry.data.values() if isinstance(entry, TableRow) and isinstance(entry.data, Mapping) else ()
    parts = (part for cell in values for part in (cell if isinstance(cell, list) else [cell]))
    return sum(len(part) for part in parts if isinstance(part, str))


def _given_out(entries: list[Entry]) -> Iterator[Entry]:
    """Each in turn, and kept no longer than that."""
    entries.reverse()
    while entries:
        yield entries.pop()
