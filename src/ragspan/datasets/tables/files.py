"""Opens a file as the table that it holds."""

from __future__ import annotations

import gzip
import hashlib
import math
import os
import sys
import tempfile
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast, get_args

from ragspan.datasets.tables.base import Table
from ragspan.datasets.tables.csv_rows import csv_table
from ragspan.datasets.tables.json_rows import json_lines_table, json_table
from ragspan.datasets.tables.parquet_rows import MAX_EXPANSION, parquet_table
from ragspan.datasets.tables.text import TextLines
from ragspan.exceptions import ConfigurationError, TableError

FileFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
STANDARD_INPUT = "-"
_BY_ENDING: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_LINES_ONLY = (".jsonl", ".ndjson")
_EDGE = 1 << 16  # bytes at both ends of a file that tell it apart
_PIECE = 1 << 20  # bytes that are copied at a time
_SMALL = 1 << 28  # bytes that any compressed file may have


def open_file(
    path: str | os.PathLike[str],
    *,
    file_format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
) -> Table:
    """The table in a file.

    Args:
        path: of the file; `-` is standard input. With the ending `.gz` it is decompressed.
        file_format: `csv`, `jsonl` or `parquet`; None goes by the file's ending.
        delimiter: of CSV cells, one character; None finds it out.
        encoding: of text.

    Raises:
        TableError: there is no such file, or it holds no such table.
        ConfigurationError: the format is not known, or pyarrow is not installed.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise ConfigurationError(f"delimiter is {delimiter!r}, but should be a single character")
    name = "standard input" if os.fspath(path) == STANDARD_INPUT else os.fspath(path)
    chosen = _format_of(name, file_format)
    with ExitStack() as opened:
        raw, identity = _opened(path, name)
        opened.callback(raw.close)
        stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if name.lower().endswith(".gz") else raw
        share_read = _share_read(raw, identity)
        identity |= {"format": chosen}
        if chosen == "parquet":
            most = math.inf if stream is raw else max(_SMALL, MAX_EXPANSION * identity.get("size", 0))
            file = stream if stream is raw and raw.seekable() else opened.enter_context(_copied(stream, name, most))
            table = parquet_table(file, name=name, identity=identity, share_read=share_read)
        else:
            identity |= {"encoding": encoding, "delimiter": delimiter}
            lines = TextLines(stream, encoding=encoding, name=name)
            read = _csv if chosen == "csv" else _json
            table = read(lines, delimiter, name=name, identity=identity, share_read=share_read)
        return replace(table, close=opened.pop_all().close)


def _csv(lines: TextLines, delimiter: str | None, *, name: str, **known: Any) -> Table:
    return csv_table(
        lines, name=name, delimiter=delimiter or ("\t" if ".tsv" in Path(name).suffixes else None), **known
    )


def _json(lines: TextLines, _: str | None, *, name: str, **known: Any) -> Table:
    """An array of objects, where the ending allows for one and the first character begins one, or an object a line."""
    if not name.lower().removesuffix(".gz").endswith(_LINES_ONLY) and lines.first_character() == "[":
        return json_table(lines.characters(), name=name, **known)
    return json_lines_table(lines, name=name, **known)


def _format_of(name: str, chosen: str | None) -> FileFormat:
    if chosen is not None:
        if chosen not in get_args(FileFormat):
            raise ConfigurationError(
                f"the format is {chosen!r}, but should be one of {', '.join(get_args(FileFormat))}"
            )
        return cast("FileFormat", chosen)
    ending = Path(name.lower().removesuffix(".gz")).suffix
    if ending not in _BY_ENDING:
        raise ConfigurationError(
            f"the format of {name} is not known from its ending: name it with --format {'|'.join(get_args(FileFormat))};"
            " save a spreadsheet as CSV"
        )
    return _BY_ENDING[ending]


def _opened(path: str | os.PathLike[str], name: str) -> tuple[BinaryIO, dict[str, Any]]:
    """The file, and what tells it apart; nothing does for a stream."""
    if os.fspath(path) == STANDARD_INPUT:
        try:
            return os.fdopen(os.dup(sys.stdin.fileno()), "rb"), {}
        except (AttributeError, OSError):  # a program without one, or with something in its place
            raise TableError("there is no standard input to read from") from None
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - the table closes it
    except OSError as error:
        raise TableError(f"{name} cannot be opened: {error.strerror or error}") from None
    if not file.seekable():
        return file, {}
    size = file.seek(0, os.SEEK_END)
    digest = hashlib.sha256()
    for place in (0, max(0, size - _EDGE)):
        file.seek(place)
        digest.update(file.read(_EDGE))
    file.seek(0)
    return file, {"size": size, "ends": digest.hexdigest()[:16]}


def _share_read(raw: BinaryIO, identity: dict[str, Any]) -> Callable[[], float | None]:
    size = identity.get("size")

    def share() -> float | None:
        return raw.tell() / size if size and not raw.closed else None

    return share


def _copied(stream: BinaryIO, name: str, most: float) -> BinaryIO:
    """A stream in a file that is gone when nobody reads it any more: Parquet is read from its end.

    Raises:
        TableError: it is longer than `most` bytes, or damaged.
    """
    with ExitStack() as opened:
        copy = cast("BinaryIO", opened.enter_context(tempfile.TemporaryFile()))
        try:
            while piece := stream.read(_PIECE):
                copy.write(piece)
                if copy.tell() > most:
                    raise TableError(f"{name} expands to more than {most:,} bytes, {MAX_EXPANSION} times its size")
        except (OSError, EOFError, zlib.error) as error:
            raise TableError(f"{name} cannot be decompressed: {error}") from None
        copy.seek(0)
        opened.pop_all()
    return copy
