"""Tables as they are compared: their rows by name, and their cells as values with units."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ragspan.judges.overlap.english import english
from ragspan.text.keys import is_content, is_number
from ragspan.text.languages import ENGLISH, Language
from ragspan.text.lazy import Lazy
from ragspan.text.tables import Table

_MOST_ROWS = 40
"""Rows that one claim may name."""
LONGEST_TEXT = 5
"""Words of a value that is not a number and is compared."""
_LONGEST_NAME = 8
_DIGITS = 6
_EXACT, _CONVERTED = 1e-9, 0.001
CURRENCIES = {"$": "$", "€": "€", "£": "£", "usd": "$", "eur": "€", "gbp": "£", "dollar": "$", "euro": "€"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """A cell, or a number of a claim."""

    keys: tuple[str, ...]
    number: float | None
    raw: str = ""
    unit: str = ""
    """What it measures; empty for a bare number."""

    def is_as(self, other: Value) -> bool:
        """Whether both say the same."""
        if self.number is None or other.number is None:
            return self.keys == other.keys
        if self.unit and other.unit and self.unit != other.unit:
            return False
        return (self.raw == other.raw != "") or math.isclose(
            self.number, other.number, rel_tol=_CONVERTED if self.unit else _EXACT
        )

    def may_stand_for(self, other: Value) -> bool:
        """Whether one could stand in the place of the other."""
        if any(map(is_number, self.keys)) != any(map(is_number, other.keys)) or self._is_time() != other._is_time():
            return False
        return self.unit == other.unit or not (self.unit and other.unit)

    def _is_time(self) -> bool:
        return any(":" in key for key in self.keys)


_NO_VALUE = Value(keys=(), number=None)


class Rows:
    """A table as it is compared, under one of the columns that name its rows."""

    def __init__(self, table: Table, naming: int, language: Language = ENGLISH) -> None:
        self.table = table
        self.naming = naming
        """The column by whose values claims name the rows."""
        self.is_record = not any(table.columns)
        """Its rows are the keys of one record, each with its value."""
        self._language = language
        self._names: dict[tuple[str, ...], int] = {}
        self._by_row = [tuple(language.keys(cells[naming])) for cells in table.rows]
        for row, name in enumerate(self._by_row):
            if any(map(is_content, name)) or (name and table.rows[row][naming].isupper()):
                self._names.setdefault(name, row)
        self._firsts = frozenset(name[0] for name in self._names)
        self.columns = [frozenset(filter(is_content, language.keys(name))) for name in table.columns]
        common = frozenset.intersection(*self.columns) if len(self.columns) > 1 else frozenset()
        self.columns = [words - common - _measuring() or words - common for words in self.columns]

    @Lazy
    def heads(self) -> frozenset[str]:
        """The words of its columns' names."""
        return frozenset().union(*self.columns)

    @Lazy
    def values(self) -> list[list[Value]]:
        """Of each row, those of its cells."""
        units = [_unit_of_column(self._language.keys(name)) for name in self.table.columns]
        if self.is_record:
            return [
                [_NO_VALUE, self._value(cell, unit_in(self.keys_of(row)))]
                for row, (_, cell) in enumerate(self.table.rows)
            ]
        return [list(map(self._value, cells, units)) for cells in self.table.rows]

    def _value(self, cell: str, unit: tuple[str, float]) -> Value:
        return value_of(self._language.keys(cell), unit)

    @Lazy
    def texts(self) -> dict[tuple[str, ...], set[int]]:
        """Short values that are not numbers, with the columns that have them; none of a column with one such value."""
        found: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
        for column in range(len(self.columns)) if not self.is_record else ():
            texts = {row[column].keys for row in self.values if row[column].number is None}
            for keys in texts if column != self.naming and len(texts) > 1 else ():
                if len(keys) <= LONGEST_TEXT and any(map(is_content, keys)):
                    found[keys].add(column)
        return found

    @Lazy
    def _numbers(self) -> dict[float, set[int]]:
        found: defaultdict[float, set[int]] = defaultdict(set)
        for row in self.values:
            for column, value in enumerate(row):
                if value.number is not None and column != self.naming:
                    found[round(value.number, _DIGITS)].add(column)
        return found

    def columns_with(self, value: Value) -> list[int]:
        """The columns that have this value in any row."""
        if value.number is None:
            return sorted(self.texts.get(value.keys, ()))
        return sorted(self._numbers.get(round(value.number, _DIGITS), ()))

    def named(self, words: Sequence[str], keys: Sequence[str]) -> list[tuple[int, int, int]]:
        """Where a claim names rows, and which, in order; of names that begin at one place the longest."""
        if self.is_record:
            return self._named_by_words(keys)
        found: list[tuple[int, int, int]] = []
        end = 0
        for at, key in enumerate(keys):
            if key not in self._firsts:
                continue
            row = next((row for name in _beginning(keys, at) if (row := self._names.get(name)) is not None), None)
            if at < end or row is None:
                continue
            name = self.keys_of(row)
            if not any(map(is_content, name)) and not words[at].isupper():  # "UPS" is a name, "up" is none
                continue
            end = at + len(name)
            found.append((at, end, row))
        return found[:_MOST_ROWS]

    def _named_by_words(self, keys: Sequence[str]) -> list[tuple[int, int, int]]:
        """The keys of a record that a claim has in any order, but for those that others of its keys contain."""
        said = frozenset(keys)
        fitting: dict[int, frozenset[str]] = {}
        for name, row in self._names.items():
            words = frozenset(one for one in name if one not in english().units) or frozenset(name)
            if words <= said:
                fitting[row] = words
        places = ((min(keys.index(word) for word in words), row, words) for row, words in fitting.items())
        clear = [(at, row) for at, row, words in places if not any(words < other for other in fitting.values())]
        return [(at, at + 1, row) for at, row in sorted(clear)[:_MOST_ROWS]]

    def keys_of(self, row: int) -> tuple[str, ...]:
        """Those of its name."""
        return self._by_row[row]

    def shown(self, row: int, column: int) -> str:
        """A fact as an explanation gives it."""
        cells = self.table.rows[row]
        name = self.table.columns[column]
        return f"{cells[self.naming]}: {f'{name} {cells[column]}'.strip()}"


def _beginning(keys: Sequence[str], at: int) -> Iterator[tuple[str, ...]]:
    """What begins at a place of a claim and may be a name, the longest first."""
    return (tuple(keys[at:end]) for end in range(min(len(keys), at + _LONGEST_NAME), at, -1))


def rows_of(tables: Sequence[Table], language: Language) -> list[list[Rows]]:
    """For each table, how its rows may be named."""
    return [
        [Rows(table, naming, language) for naming in table.naming]
        if len(table.rows) > 1
        else [Rows(table.by_column(), 0, language)]
        for table in tables
    ]


def value_of(keys: Sequence[str], head: tuple[str, float]) -> Value:
    """A cell as a number with its unit, which may stand in the name of its column; else as words."""
    numbers = [key for key in keys if is_number(key)]
    others = [key for key in keys if not is_number(key) and key not in CURRENCIES]
    kind, size = unit_in(keys)
    scale = math.prod(english().scales[key] for key in others if key in english().scales)
    others = [key for key in others if key not in english().scales]
    if len(numbers) != 1 or len([key for key in others if is_content(key)]) > 1 + (not kind):
        return Value(keys=tuple(keys), number=None)
    try:
        number = float(numbers[0])
    except ValueError:  # a version, a time
        return Value(keys=tuple(keys), number=math.nan, raw=numbers[0])
    if scale == 1 and (not kind or kind == head[0]):  # the column's scale
        kind, size = head
    return Value(keys=tuple(keys), number=number * size * scale, raw=numbers[0] if scale * size == 1 else "", unit=kind)


def _unit_of_column(keys: Sequence[str]) -> tuple[str, float]:
    """What "Revenue (million EUR)" says of the values below."""
    kind, size = unit_in(keys)
    return kind, size * math.prod(english().scales.get(key, 1.0) for key in keys)


@cache
def _measuring() -> frozenset[str]:
    """Words of a column's name that say how its values are measured."""
    return frozenset(english().units) | CURRENCIES.keys() | english().scales.keys()


def unit_in(keys: Sequence[str]) -> tuple[str, float]:
    for key in keys:
        if key in CURRENCIES:
            return CURRENCIES[key], 1.0
        if key in english().units:
            return english().units[key]
    return "", 1.0
