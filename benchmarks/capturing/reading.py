"""Finds texts in what a library has for a question or an answer: a text, data, or data written as text."""

from __future__ import annotations

import ast
import contextlib
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

_MAX_DEPTH = 12
_DATA_BEGINS = ('"', "{", "[", "'", "(")


class Readable:
    """A value in which texts are looked for, read once."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def holds(self, wanted: str | None) -> bool:
        """Whether this text stands in it, whatever the white space; a structured answer as data; None is no text."""
        if not wanted:
            return not self.has_text
        data = _data(wanted)
        if isinstance(data, (dict, list)):
            return any(data == part for part in self._parts)
        return any(words(wanted) in text for text in self._texts)

    @property
    def has_text(self) -> bool:
        return any(self._texts)

    @cached_property
    def _parts(self) -> list[Any]:
        return list(_parts(self._value))

    @cached_property
    def _texts(self) -> list[str]:
        return [words(str(part)) for part in self._parts if isinstance(part, (str, int, float))]


def words(text: str) -> str:
    """The text with single spaces for white space."""
    return " ".join(text.split())


def _parts(value: Any, depth: int = 0) -> Iterator[Any]:
    """The value and all that stands in it, also where it is data written as text."""
    if depth > _MAX_DEPTH or value is None:
        return
    data = _data(value) if isinstance(value, str) else value
    yield value
    if data is not value and not isinstance(data, str):
        yield data
    inner = data.values() if isinstance(data, Mapping) else data if isinstance(data, (list, tuple)) else ()
    for item in inner:
        yield from _parts(item, depth + 1)


def _data(text: str) -> Any:
    """What a text stands for that is written as JSON or as Python data; else the text."""
    if text.lstrip()[:1] not in _DATA_BEGINS:
        return text
    for read in (json.loads, ast.literal_eval):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return read(text)
    return text
