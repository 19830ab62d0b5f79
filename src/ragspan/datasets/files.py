"""Opens a file as the table that it holds."""

from __future__ import annotations

import gzip
import math
import os
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast, get_args

from ragspan.arguments import one_of, wrong
from ragspan.datasets.tables import MAX_EXPANSION, Table, parquet_table
from ragspan.datasets.text import DAMAGED, TextReader, csv_table, json_lines_table, json_table
from ragspan.exceptions import ConfigurationError, TableError

FileFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
STANDARD_INPUT = "-"
BY_ENDING: dict[str, FileFormat] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_LINES_ONLY = (".jsonl", ".ndjson")
_PIECE = 1 << 16  # characters or bytes that are read at a time
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
        file_format: `csv`, `jsonl` or `parquet`; None takes it from the file's ending.
        delimiter: of CSV cells, one character; None finds it out.
        encoding: of text.

    Raises:
        TableError: there is no such file, or it holds no such table.
        ConfigurationError: the format is not known, or pyarrow is not installed.
    """
    if delimiter is not None and len(delimiter) != 1:
        raise wrong("delimiter", delimiter, "a single character")
    name = "standard input" if os.fspath(path) == STANDARD_INPUT else os.fspath(path)
    chosen = _format_of(name, file_format)
    with ExitStack() as opened:
        raw = opened.enter_context(_opened(path, name))
        size = os.fstat(raw.fileno()).st_size if raw.seekable() else 0
        stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if name.lower().endswith(".gz") else raw

        def share_read() -> float | None:
            return raw.tell() / size if size and not raw.closed else None

        if chosen == "parquet":
            most = math.inf if stream is raw else max(_SMALL, MAX_EXPANSION * size)
            file = stream if stream is raw and raw.seekable() else opened.enter_context(_copied(stream, name, most))
            table = parquet_table(file, name=name, share_read=share_read)
        else:
            text = TextReader(stream, encoding=encoding, name=name)
            opened.callback(text.close)
            table = (
                _json(text, name=name, share_read=share_read)
                if chosen == "jsonl"
                else _csv(text, delimiter, name=name, share_read=share_read)
            )
        return replace(table, close=opened.pop_all().close)


def _csv(text: TextReader, delimiter: str | None, *, name: str, **known: Any) -> Table:
    by_ending = "\t" if ".tsv" in Path(name).suffixes else None
    return csv_table(text.lines(), name=name, delimiter=delimiter or by_ending, **known)


def _json(text: TextReader, *, name: str, **known: Any) -> Table:
    """An array of objects, where the ending allows for one and the first character begins one, or an object a line."""
    if name.lower().removesuffix(".gz").endswith(_LINES_ONLY):
        return json_lines_table(text.lines(), name=name, **known)
    pieces = text.pieces()
    first = next((piece for piece in pieces if piece.strip()), "")
    if first.lstrip()[:1] == "[":
        return json_table(chain([first], pieces), name=name, **known)
    return json_lines_table(text.lines(first), name=name, **known)


def _format_of(name: str, chosen: str | None) -> FileFormat:
    formats = get_args(FileFormat)
    if chosen is not None:
        one_of(*formats).check("the format", chosen)
        return cast("FileFormat", chosen)
    ending = Path(name.lower().removesuffix(".gz")).suffix
    if ending not in BY_ENDING:
        raise ConfigurationError(
            f"the format of {name} is not known from its ending: name it with --format {'|'.join(formats)};"
            " save a spreadsheet as CSV"
        )
    return BY_ENDING[ending]


def _opened(path: str | os.PathLike[str], name: str) -> BinaryIO:
    if os.fspath(path) == STANDARD_INPUT:
        try:
            return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
        except (AttributeError, OSError):  # a program without one, or with something in its place
            raise TableError("there is no standard input to read from") from None
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise TableError(f"{name} cannot be opened: {error.strerror or error}") from None


def _copied(stream: BinaryIO, name: str, most: float) -> BinaryIO:
    """A temporary file with the stream's bytes, `most` of them at most: Parquet is read from its end."""
    with ExitStack() as opened:
        copy = cast("BinaryIO", opened.enter_context(tempfile.TemporaryFile()))
        try:
            while piece := stream.read(_PIECE):
                copy.write(piece)
                if copy.tell() > most:
                    raise TableError(f"{name} expands to more than {most:,} bytes, {MAX_EXPANSION} times its size")
        except DAMAGED as error:
            raise TableError(f"{name} cannot be decompressed: {error}") from None
        copy.seek(0)
        opened.pop_all()
    return copy
