"""Tables in texts: Markdown, HTML, values between commas, semicolons or tabs, and records of JSON, all as rows of facts.

A row with its names of columns says as much as a sentence: "Plan: Basic, Price: $5". Reading takes time in proportion to the text.
"""

from __future__ import annotations

import csv
import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

from ragspan.text.lazy import Lazy

Place: TypeAlias = tuple[int, int]

MAX_CELLS = 2_000
"""Cells of one table that are read."""
_MOST_TABLES = 40
"""Tables of one text; what stands after them is read as prose."""
_FEWEST_LINES = 3
_LONGEST_CELL, _LONGEST_HEAD = 400, 60
_MOST_COLUMNS = 60
_MOST_NAMING = 3
_MOST_KINDS = 16
"""Kinds of records of one text that are kept separate at a time."""
_DEPTH = 3
"""Keys of JSON that name a column at most."""
_SEPARATORS = "\t;,"
_RULE = re.compile(r"[ \t]{0,8}\|?[ \t]{0,8}:?-{2,200}:?[ \t]{0,8}(?:\|[-:| \t]{0,800})?$")
_BARS = re.compile(r"(?<!\\)\|")
_TABLE = re.compile(r"<(/?)table\b[^<>]{0,300}>", re.IGNORECASE)
_ROW = re.compile(r"<tr\b[^<>]{0,300}>", re.IGNORECASE)
_CELL = re.compile(r"<t[dh]\b[^<>]{0,300}>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]{0,300}>", re.IGNORECASE)
_FENCED = re.compile(r"^[ \t]{0,8}(?:```|~~~)[^\n]{0,80}$", re.MULTILINE)
_EMPHASIS = re.compile(r"\*\*|__|`")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.-]")


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows that have a value in each of the columns."""

    columns: tuple[str, ...]
    """Their names; empty where a table has none."""
    rows: tuple[tuple[str, ...], ...]
    """As many values each as there are columns; empty where a row has none."""
    places: tuple[Place, ...]
    """Where each row stands, in characters of the text: for JSON all of it."""

    @Lazy
    def naming(self) -> tuple[int, ...]:
        """The columns that may name the rows, because their values are all different: those of words before those of numbers."""
        found = []
        for column in range(len(self.columns)):
            values = [row[column].lower() for row in self.rows]
            if all(values) and len(set(values)) == len(values):
                found.append(column)
        found.sort(key=lambda column: not all(any(map(str.isalpha, row[column])) for row in self.rows))
        return tuple(found[:_MOST_NAMING])

    def statement(self, row: int, between: str = ", ") -> str:
        """A row as a sentence: "Plan Basic, Price $5"."""
        cells = zip(self.columns, self.rows[row], strict=True)
        return between.join(f"{name} {value}".strip() for name, value in cells if value)

    def by_column(self) -> Table:
        """The columns of its first row as rows: a name with its value each."""
        rows = [one for one in zip(self.columns, self.rows[0], strict=True) if all(one)]
        return Table(columns=("", ""), rows=tuple(rows), places=self.places[:1] * len(rows))


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """The part of a text that a table is."""

    start: int
    end: int
    table: Table


def tables_in(text: str) -> list[Block]:
    """The tables of a text, in its order."""
    if text.lstrip()[:1] in {"{", "["} and (found := _json_blocks(text, 0, len(text))):
        return found
    blocks = _html_blocks(text) if "<t" in text or "<T" in text else []
    if "\n" in text:
        blocks += _fenced_json(text) if "```" in text or "~~~" in text else []
        taken = bytearray(len(text))
        for block in blocks:
            taken[block.start : block.end] = b"\1" * (block.end - block.start)
        blocks += [block for block in _line_blocks(text) if not any(taken[block.start : block.end])]
    return sorted(blocks, key=lambda block: block.start)[:_MOST_TABLES]


def without_tables(text: str, blocks: Sequence[Block]) -> Iterator[tuple[str, Block | None]]:
    """What stands before each table, with the table; and what stands after the last."""
    at = 0
    for block in blocks:
        if block.start >= at:
            yield text[at : block.start], block
            at = block.end
    yield text[at:], None


def _table(rows: Sequence[Sequence[str]], places: Sequence[Place], start: int, end: int) -> Block | None:
    """A table of a row of names and at least one of values."""
    head = rows[0]
    width = min(len(head), _MOST_COLUMNS)
    most = 1 + MAX_CELLS // max(1, width)
    body = [
        tuple(value[:_LONGEST_CELL] for value in (*row[:width], *[""] * (width - len(row)))) for row in rows[1:most]
    ]
    if width < 2 or not body:  # noqa: PLR2004  a list is not a table
        return None
    table = Table(
        columns=tuple(name[:_LONGEST_HEAD] for name in head[:width]), rows=tuple(body), places=tuple(places[1:most])
    )
    return Block(start=start, end=end, table=table)


# Lines


def _line_blocks(text: str) -> Iterator[Block]:
    run: list[tuple[int, str]] = []
    separator, count = "", 0
    at = 0
    for line in [*text.splitlines(keepends=True), ""]:
        now, cells = _separator_of(line.rstrip("\r\n"))
        if now and now == separator and (now == "|" or cells == count):
            run.append((at, line.rstrip("\r\n")))
        else:
            if (block := _block_of(run, separator)) is not None:
                yield block
            separator, count = now, cells
            run = [(at, line.rstrip("\r\n"))] if now else []
        at += len(line)


def _separator_of(line: str) -> tuple[str, int]:
    """What separates the values of a line, and how many values that makes; empty where it is not a row."""
    bare = line.strip()
    if "|" in bare.strip("|") or (bare[:1] == "|" and bare[-1:] == "|"):
        return "|", 0
    if not bare or bare[-1] in ".!?:" or bare[:1] in "-*#>":
        return "", 0
    for sign in _SEPARATORS:
        if sign in bare:
            return sign, len(_values(bare, sign)) if '"' in bare else bare.count(sign) + 1
    return "", 0


def _block_of(run: Sequence[tuple[int, str]], separator: str) -> Block | None:
    if len(run) < 2:  # noqa: PLR2004  a row needs names of columns
        return None
    start, end = run[0][0], run[-1][0] + len(run[-1][1])
    ruled = separator == "|" and _RULE.match(run[1][1].strip()) is not None
    lines = [(at, line) for at, line in run if separator != "|" or not _RULE.match(line.strip())]
    rows = [_values(line.strip(), separator) for _, line in lines]
    if not rows or (not ruled and (len(rows) < _FEWEST_LINES or not _names_columns(rows, separator))):
        return None
    return _table(rows, [(at, at + len(line)) for at, line in lines], start, end)


def _values(line: str, separator: str) -> list[str]:
    if separator == "|":
        inner = line.removeprefix("|").removesuffix("|")
        return [_EMPHASIS.sub("", cell).strip() for cell in _BARS.split(inner)]
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True))]
    except (csv.Error, StopIteration):
        return []


def _names_columns(rows: Sequence[Sequence[str]], separator: str) -> bool:
    """Whether the first of some lines names the columns of the others, and they are not prose with commas."""
    head = rows[0]
    if len(set(head)) < len(head) or not all(head) or any(len(name.split()) > 4 for name in head):  # noqa: PLR2004
        return False
    if separator == "," and not any(
        all(_is_figure(value) for value in column) for column in zip(*rows[1:], strict=False)
    ):
        return False
    return not any(map(_is_figure, head))


def _is_figure(value: str) -> bool:
    return value.lstrip("$€£-+ ")[:1].isdigit()


# HTML


def _html_blocks(text: str) -> list[Block]:
    marks = list(_TABLE.finditer(text))
    opening = [mark for mark in marks if not mark[1]][: _MOST_TABLES + 1]
    found = []
    for at, mark in enumerate(opening[:_MOST_TABLES]):
        limit = opening[at + 1].start() if at + 1 < len(opening) else len(text)
        end = next((one.end() for one in marks if one[1] and mark.end() <= one.start() < limit), limit)
        starts = [row.start() for row in _ROW.finditer(text, mark.end(), end)]
        places = list(pairwise([*starts, end]))
        rows = [[_plain(cell) for cell in _CELL.split(text[first:last])[1:]] for first, last in places]
        if rows and (block := _table(rows, places, mark.start(), end)) is not None:
            found.append(block)
    return found


def _plain(cell: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", cell)).split())


# JSON


def _fenced_json(text: str) -> list[Block]:
    fences = [line.span() for line in _FENCED.finditer(text)]
    between = [(start, end) for (_, start), (end, _) in zip(fences[::2], fences[1::2], strict=False)]
    return [block for start, end in between for block in _json_blocks(text, start, end)]


def _json_blocks(text: str, start: int, end: int) -> list[Block]:
    """A table for all records with much the same keys."""
    bare = text[start:end].strip()
    if bare[:1] not in {"{", "["}:
        return []
    alike: list[tuple[set[str], list[dict[str, str]]]] = []
    for record in records_of(parsed(bare)):
        for known, some in alike[-_MOST_KINDS:]:
            if 2 * len(known & record.keys()) > len(known | record.keys()):
                known.update(record)
                some.append(record)
                break
        else:
            alike.append((set(record), [record]))
    return [Block(start=start, end=end, table=_of_records(some, (start, end))) for _, some in alike]


def _of_records(records: Sequence[dict[str, str]], place: Place) -> Table:
    columns = tuple(dict.fromkeys(name for record in records for name in record))[:_MOST_COLUMNS]
    filled = [tuple(record.get(name, "") for name in columns) for record in records[: 1 + MAX_CELLS // len(columns)]]
    return Table(columns=columns, rows=tuple(filled), places=(place,) * len(filled))


def parsed(text: str) -> Any:
    """The value of JSON, or of one value a line; None for other texts. Numbers stay as they are written."""
    try:
        return json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        lines = text.splitlines()
        if len(lines) == 1 or not all(line.lstrip()[:1] in {"{", ""} for line in lines):
            return None
    values = [parsed(line) for line in lines if line.strip()]
    return None if None in values else values


def records_of(value: Any) -> list[dict[str, str]]:
    """The records of JSON, each with the words of its keys: objects in lists, and objects under names of their own.

    An object inside a record belongs to it: its keys are further words of the column. An object that holds objects alone names
    them by its keys.
    """
    found: list[dict[str, str]] = []
    stack: list[tuple[Any, str]] = [(value, "")]
    while stack and len(found) < MAX_CELLS:
        item, name = stack.pop()
        if isinstance(item, list):
            stack.extend((one, "") for one in reversed(item) if isinstance(one, dict | list))
        elif isinstance(item, dict):
            if len(item) > 1 and all(isinstance(one, dict) for one in item.values()):
                stack.extend((one, str(key)) for key, one in reversed(item.items()))
                continue
            record = {"": name} if name else {}
            lists: list[tuple[Any, str]] = []
            _fill(record, item, (), lists)
            if record:
                found.append(record)
            stack.extend(reversed(lists))
    return found


def _fill(record: dict[str, str], item: dict[str, Any], path: tuple[str, ...], lists: list[tuple[Any, str]]) -> None:
    for key, one in item.items():
        names = (*path, _CAMEL.sub(" ", str(key)[:_LONGEST_HEAD]))[-_DEPTH:]
        if isinstance(one, dict):
            if len(path) < _DEPTH and not all(isinstance(inner, dict) for inner in one.values()):
                _fill(record, one, names, lists)
            else:
                lists.append((one, ""))
        elif isinstance(one, list):
            scalars = [_written(inner) for inner in one if not isinstance(inner, dict | list)]
            lists.append((one, ""))
            if scalars:
                record[" ".join(names)] = ", ".join(scalars)[:_LONGEST_CELL]
        elif one is not None:
            record[" ".join(names)] = _written(one)[:_LONGEST_CELL]


def _written(leaf: Any) -> str:
    return {True: "yes", False: "no", None: ""}.get(leaf, "") if leaf is None or isinstance(leaf, bool) else str(leaf)
