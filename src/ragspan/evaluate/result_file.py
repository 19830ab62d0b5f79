"""Result files in three formats, written and read as streams.

Spreadsheets take a cell that begins with one of a few characters for a formula. With another delimiter than the comma, or
with quotes that a program does not understand, a cell may begin in the middle of a text. Texts in the results quote
documents that anybody may have written. So CSV files have an apostrophe wherever a formula would begin, as OWASP
recommends against CSV injection; reading removes it. The other formats hold texts as they are.
"""

from __future__ import annotations

import contextlib
import csv
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, cast, get_args

import msgspec

from ragspan.evaluate.files import FileFormat, open_file
from ragspan.evaluate.results import RESULT_COLUMNS, BadRow, ResultRow, cells_of, column_types
from ragspan.evaluate.table import Entry, import_parquet
from ragspan.exceptions import ConfigurationError, TableError

_FORMATS = get_args(FileFormat)
_BATCH = 4096  # rows of a Parquet file that are written at a time
# A sign of a formula, also in full width, behind blanks and quotes, which programs remove. Apostrophes count, too: a text
# that has one there gets a second.
_SIGN = r"""(?:[^\S\t\r\n]|['"])*[=+\-@\uff1d\uff0b\uff0d\uff20]"""
_FIRST = rf"""(?:{_SIGN}|['"]*[\t\r\n])"""
_FORMULA = re.compile(rf"\A(?={_FIRST})|(?<=[,;|\t\r\n])(?={_SIGN})")
_GUARD = re.compile(rf"\A'(?={_FIRST})|(?<=[,;|\t\r\n])'(?={_SIGN})")


class ResultFile:
    """The results in a file that `evaluate` wrote.

    Args:
        path: ending with `.csv`, `.jsonl` or `.parquet`.

    Raises:
        ConfigurationError: the ending is none of these, or pyarrow is missing.
        TableError: while it is read: it is not a file of results.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._format = format_of(self.path)

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(result.metric for result in self.results()))

    def results(self) -> Iterator[ResultRow]:
        """Each record and metric."""
        if self.path.exists() and not self.path.stat().st_size:  # JSONL without a row
            return
        try:
            with contextlib.closing(open_file(self.path, blanks_count=True)) as table:
                yield from map(self._result, table.entries)
        except (ValueError, TypeError) as error:
            raise TableError(f"{self.path} is not a file of results: {error}") from None

    def _result(self, entry: Entry) -> ResultRow:
        if isinstance(entry, BadRow):
            raise TypeError(str(entry))
        if self._format != "csv":
            return msgspec.convert(entry.data, ResultRow)
        cells = {name: with_formula(cell) for name, cell in cast("dict[str, str]", entry.data).items() if cell}
        return msgspec.convert(cells, ResultRow, strict=False)  # numbers are texts there


def format_of(path: Path) -> FileFormat:
    """The format that belongs to a result file's ending.

    Raises:
        ConfigurationError: none does, or the format needs pyarrow, which is not installed.
    """
    chosen = path.suffix.lower().removeprefix(".")
    if chosen not in _FORMATS:
        raise ConfigurationError(f"results are written as {', '.join(_FORMATS)}, none of which {path.name!r} ends with")
    if chosen == "parquet":
        import_parquet()
    return cast("FileFormat", chosen)


def write_results(path: Path, chosen: FileFormat, results: Iterable[ResultRow]) -> None:
    """Write a result file from its first row to its last."""
    write = {"csv": _write_csv, "jsonl": _write_jsonl, "parquet": _write_parquet}[chosen]
    write(path, (tuple(map(_encodable, cells_of(result))) for result in results))


def without_formula(text: str) -> str:
    """A text of which no spreadsheet takes a part for a formula."""
    return _FORMULA.sub("'", text)


def with_formula(text: str) -> str:
    """The text that `without_formula` was given."""
    return _GUARD.sub("", text)


def _encodable(value: Any) -> Any:
    """Half of a surrogate pair and NUL become a question mark: not every file can hold them."""
    return value.replace("\0", "?").encode("utf-8", "replace").decode() if isinstance(value, str) else value


def _write_csv(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\r\n")  # as RFC 4180 has it; with another, a lone \r goes unquoted
        writer.writerow(RESULT_COLUMNS)
        writer.writerows([without_formula(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def _write_jsonl(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    with path.open("wb") as file:
        file.writelines(msgspec.json.encode(dict(zip(RESULT_COLUMNS, row, strict=True))) + b"\n" for row in rows)


def _write_parquet(path: Path, rows: Iterable[Sequence[Any]]) -> None:
    arrow, parquet = import_parquet()
    schema = arrow.schema(list(column_types(arrow.int64(), arrow.float64(), arrow.string()).items()))
    rows = iter(rows)
    with parquet.ParquetWriter(path, schema) as writer:
        while batch := list(islice(rows, _BATCH)):
            columns = dict(zip(schema.names, zip(*batch, strict=True), strict=True))
            writer.write_table(arrow.Table.from_pydict(columns, schema=schema))
