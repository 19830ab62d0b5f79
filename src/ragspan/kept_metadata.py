"""What a record keeps of the metadata of a document or a request; as `ragspan.plain_data` reads it, without running any code."""

from __future__ import annotations

import datetime as dt
import decimal
import sys
import uuid
from itertools import islice
from typing import Any, Final

from ragspan.plain_data import items_of, number_of, text_of

MAX_METADATA: Final = 20_000
"""Characters of longer texts that are kept of one document's or request's metadata; prompts may show them."""
SHORT: Final = 200
"""Characters of a text in metadata that is kept in any case."""
SMALL: Final = 100
"""Characters of an entry, its name and its text, that counts for a queue's bytes as any other part does."""
MAX_ENTRIES: Final = 200
"""Of metadata, and of each list or dictionary inside."""
_MAX_SEEN = 10_000  # entries without a name that can be kept included
_MAX_NESTED = 5
_MOST, _LEAST = 1 << 62, -(1 << 62)  # of an integer that is kept without a look at its size
_ABSENT: Final = object()


def small_entries(metadata: Any) -> dict[str, Any] | None:
    """A copy of metadata of which a record keeps everything, and which takes up little, as most does; None for all others."""
    if type(metadata) is not dict or len(metadata) > MAX_ENTRIES:
        return None
    kept = metadata.copy()
    size = 0
    for name, value in kept.items():
        if type(name) is not str:
            return None
        kind = type(value)
        if kind is str:
            size += len(name) + len(value)
        elif kind is int:
            if not _LEAST < value < _MOST:
                return None
            size += len(name)
        elif kind is float or kind is bool or value is None:
            size += len(name)
        else:
            return None
    if size <= SMALL or (size <= SMALL * len(kept) and (size <= SHORT or max(map(len, kept)) <= SHORT)):
        return kept
    return None


def kept_entries(metadata: Any, *, nested: bool = False, texts: dict[int, str] | None = None) -> dict[str, Any]:
    """What a record keeps of the metadata of a document or a request: texts, numbers and truth values by their names.

    A text of up to `SHORT` characters is kept, longer ones share `MAX_METADATA`: one that has more is cut there. Nothing of the
    program's own stays alive by it.

    Args:
        metadata: a dictionary; anything else has no entries.
        nested: lists and dictionaries of such values are kept as well, and dates, decimals and UUIDs.
        texts: gets the kept texts by their identity, but for those that take up little.
    """
    kept = small_entries(metadata)
    if kept is not None:
        return kept
    if not issubclass(type(metadata), dict):
        return {}
    kept = _Keeping(nested).entries(metadata, 0)
    if texts is not None:
        _count(kept, texts)
    return kept


def _count(kept: Any, texts: dict[int, str]) -> None:
    if type(kept) is str:
        texts[id(kept)] = kept
    elif type(kept) is dict or type(kept) is list:
        for item in kept.values() if type(kept) is dict else kept:
            _count(item, texts)


_PLAIN = (bool, float, type(None))
_EXACT = (dt.date, decimal.Decimal, uuid.UUID)


class _Keeping:
    """One metadata that is being reduced."""

    __slots__ = ("_left", "_nested", "_room")

    def __init__(self, nested: bool) -> None:  # noqa: FBT001  made for each document
        self._left = MAX_ENTRIES
        self._room = MAX_METADATA
        self._nested = nested

    def entries(self, metadata: dict[Any, Any], depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        entries = metadata.items() if type(metadata) is dict else dict.items(metadata)
        for key, value in list(islice(entries, _MAX_SEEN)):
            name = key if type(key) is str else text_of(key)
            if name is None or len(name) > SHORT:
                continue
            if self._left <= 0:
                break
            self._left -= 1
            kind = type(value)
            if kind is str and len(value) <= SHORT:
                kept[name] = value
            else:
                found = value if value is None or kind is float or kind is bool else self._other(value, depth)
                if found is not _ABSENT:
                    kept[name] = found
        return kept

    def _other(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if self._nested and depth < _MAX_NESTED:
            if issubclass(kind, dict):
                return self.entries(value, depth + 1)
            if issubclass(kind, (list, tuple)):
                return self._items(items_of(value) or [], depth + 1)
            if any(kind is one for one in _EXACT):
                return value if sys.getsizeof(value) <= SHORT else _ABSENT  # a decimal may have any number of digits
        if issubclass(kind, str):
            return self._text(str.__str__(value))
        if not issubclass(kind, (int, float)):
            return _ABSENT
        number = number_of(value)
        return _ABSENT if number is None else number

    def _items(self, values: list[Any], depth: int) -> list[Any]:
        kept = []
        for value in values[: max(0, self._left)]:
            self._left -= 1
            found = value if any(type(value) is one for one in _PLAIN) else self._other(value, depth)
            if found is not _ABSENT:
                kept.append(found)
        return kept

    def _text(self, text: str) -> Any:
        if len(text) <= SHORT:
            return text
        if not self._room:
            return _ABSENT
        kept = text if len(text) <= self._room else text[: self._room]
        self._room -= len(kept)
        return kept
