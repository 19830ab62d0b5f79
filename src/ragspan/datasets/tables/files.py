"""Opens a file as the table that it holds, and reads its text with the exact place where it cannot be read."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import math
import os
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, cast, get_args

from ragspan.datasets.tables.base import MAX_LINE, Table
from ragspan.datasets.tables.csv_rows import csv_table
from ragspan.datasets.tables.json_rows import json_lines_table, json_table
from ragspan.datasets.tables.parquet_rows import MAX_EXPANSION, parquet_table
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
_CHUNK = 1 << 16  # bytes that are decoded at a time
_MOST_BLANK = 64  # pieces at the beginning that are held to see what follows
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


class TextLines:
    """The lines of a stream, each with its end. A byte order mark is left out.

    Args:
        stream: of bytes; it may be compressed with gzip, and reads as what it holds.
        encoding: of the text.
        name: of the file, for messages.

    Raises:
        TableError: there is no such encoding. While lines are read: bytes that are no text in this encoding, a line of
            more than `MAX_LINE` characters, damaged compression.
    """

    def __init__(self, stream: BinaryIO, *, encoding: str, name: str) -> None:
        # What a pipe has already is worth more than a full chunk.
        self._read_some: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
        self._name = name
        self._encoding = encoding
        self._bytes = 0
        self._lines = 0
        self._pieces: Iterator[str] = self._texts()
        plain = encoding.lower().replace("_", "-")
        try:
            self._decoder = codecs.getincrementaldecoder("utf-8-sig" if plain in {"utf-8", "utf8"} else encoding)()
        except LookupError:
            raise TableError(
                f"there is no text encoding {encoding!r}; common ones: utf-8, utf-16, cp1252, latin-1"
            ) from None

    def __iter__(self) -> Iterator[str]:
        parts: list[str] = []
        for text in self._pieces:
            *whole, rest = text.split("\n")
            for line in whole:
                parts.append(line)
                self._lines += 1
                yield "".join(parts) + "\n"
                parts = []
            parts.append(rest)
            if len(rest) == len(text) and sum(map(len, parts)) > MAX_LINE:
                raise TableError(
                    f"{self._name}: line {self._lines + 1} has more than {MAX_LINE:,} characters, which is no line of a table"
                )
        if any(parts):
            yield "".join(parts)

    def characters(self) -> Iterator[str]:
        """The text in pieces, without regard to lines."""
        return self._pieces

    def first_character(self) -> str:
        """The first one that is no white space, which stays where it is; empty if none is near."""
        beginning: list[str] = []
        first = ""
        for piece in islice(self._pieces, _MOST_BLANK):
            beginning.append(piece)
            if first := piece.lstrip()[:1]:
                break
        self._pieces = chain(beginning, self._pieces)
        return first

    def _texts(self) -> Iterator[str]:
        while chunk := self._read():
            yield self._decoded(chunk)
            self._bytes += len(chunk)
        yield self._decoded(b"", is_last=True)

    def _read(self) -> bytes:
        try:
            return self._read_some(_CHUNK)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise TableError(f"{self._name} cannot be decompressed: {error}") from None

    def _decoded(self, chunk: bytes, *, is_last: bool = False) -> str:
        try:
            return self._decoder.decode(chunk, is_last)
        except UnicodeDecodeError as error:
            # What was left of the chunk before stands in front of this one.
            place = self._bytes + error.start - (len(error.object) - len(chunk))
            line = self._lines + 1 + error.object[: error.start].count(b"\n")
            raise TableError(
                f"{self._name}: byte {place + 1} (0x{error.object[error.start]:02x}, about line {line}) is no"
                f" {self._encoding} text: try --encoding {_guess(error.object, self._encoding)}, or whatever it was written in"
            ) from None
        except UnicodeError:  # UTF-16 without a byte order mark, say
            raise TableError(f"{self._name} is no {self._encoding} text: try another --encoding") from None


def _guess(data: bytes, encoding: str) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    return "latin-1" if encoding.lower() in {"cp1252", "windows-1252"} else "cp1252"
