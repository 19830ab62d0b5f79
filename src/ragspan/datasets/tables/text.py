"""The lines of a text file, with the exact place where they cannot be read."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import BinaryIO

from ragspan.exceptions import TableError

_CHUNK = 1 << 16  # bytes
MAX_LINE = 1 << 25  # characters: what is longer is no line of a table, and has to be held as a whole
_MOST_BLANK = 64  # pieces at the beginning that are held to see what follows


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
