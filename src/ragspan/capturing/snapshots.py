"""Copies of payloads as they were when they passed by: the structure is copied, the texts are shared.

The program goes on using its payloads. So their structure is copied, with references to the texts. Iterators are left alone,
and no method of a payload is called that could run the program's code.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import numbers
import uuid
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias

from ragspan.capturing.log import RequestLog

_MAX_DEPTH = 50
_MAX_NODES = 1000
_MAX_NODES_OF_STEP = 10_000
_MAX_FIELDS = 200
_TAIL = 200  # of a long list, the end holds the last messages
_MAX_DOCUMENTS = 20_000  # of one list
_MAX_ITEMS = 2000  # of one list of a step that may hold documents deeper
_MAX_TEXT_OF_STEP = 20_000
_MAX_TYPES = 4096  # programs may make classes as they go
_FEW = 4
_MAX_BITS = 14_000  # of an integer: Python writes none of more than 4,300 digits

Snapshot: TypeAlias = Any
"""str, number, bool, None, an `Opaque`, what an integration makes of its framework's objects, or a list or dict of these."""


class Opaque:
    """Stands for a value that is neither text nor data. `identity` is that of the value: two may be the same one."""

    __slots__ = ("identity",)

    def __init__(self, identity: int = 0) -> None:
        self.identity = identity

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity or ''})"


class Hidden(Opaque):
    """Stands for a value that is no data itself, though documents may lie inside: `inside` is a snapshot."""

    __slots__ = ("inside",)

    def __init__(self, inside: Snapshot) -> None:
        super().__init__()
        self.inside = inside


class ObjectFields(dict[str, Any]):
    """The fields of a model or dataclass: an answer in a form of the program's own, not a state with an answer in it."""


OPAQUE = Opaque()
CUT = Opaque()
"""Stands for what is left out because the payload is too deep or too large."""
LONG_TEXT = Opaque()
"""Stands for a text that is too long to matter where it lies."""

Reader: TypeAlias = Callable[["Copying", Any, int], Snapshot]
"""Makes the snapshot of a value of one kind that lies this deep."""


class Snapshots:
    """Makes snapshots of a framework's payloads.

    Args:
        readers: how to read the framework's own classes and their subclasses; the first that fits.
        hidden: names of dataclasses that hold no data, though documents may lie inside.
    """

    def __init__(self, readers: Mapping[type, Reader], *, hidden: Collection[str] = ()) -> None:
        self._readers = _ReadersByType(readers, hidden)

    def take(self, value: Any, log: RequestLog, *, whole: bool = True) -> Snapshot:
        """A snapshot for a request's log.

        Args:
            value: the payload.
            log: notes the texts in it, and keeps the documents in it alive.
            whole: False where little but the documents matters: then long texts and dull lists are left out.
        """
        if type(value) is str and (whole or len(value) <= _MAX_TEXT_OF_STEP):  # as most are
            log.texts[id(value)] = value
            return value
        return Copying(self._readers, log, whole).copy(value)


class _ReadersByType(dict[type, Reader]):
    """Readers by exact type, found once: `isinstance` with a pydantic class costs more than all the rest here."""

    def __init__(self, readers: Mapping[type, Reader], hidden: Collection[str]) -> None:
        super().__init__()
        self._by_base = [*readers.items(), *_COMMON.items()]
        self._hidden = hidden

    def __missing__(self, kind: type) -> Reader:
        if len(self) >= _MAX_TYPES:
            self.clear()
        other = _read_dataclass if dataclasses.is_dataclass(kind) else _read_other
        if kind.__name__ in self._hidden:
            other = _read_hidden
        base, reader = next((pair for pair in self._by_base if issubclass(kind, pair[0])), (kind, other))
        as_plain = _PLAIN.get(base)
        if as_plain is not None and kind is not base:
            self[kind] = lambda copying, value, depth: reader(copying, as_plain(value), depth)
        else:
            self[kind] = reader
        return self[kind]


class Copying:
    """One payload that is being copied, for readers."""

    __slots__ = ("_left", "_readers", "kept", "texts", "whole")

    def __init__(self, readers: Mapping[type, Reader], log: RequestLog, whole: bool) -> None:  # noqa: FBT001  made at most events
        self._readers = readers
        self._left = _MAX_NODES if whole else _MAX_NODES_OF_STEP
        self.whole = whole
        self.kept = log.kept
        self.texts = log.texts

    def copy(self, value: Any, depth: int = 0) -> Snapshot:
        """The snapshot of a value that lies this deep."""
        kind = type(value)
        if kind is str:
            if not self.whole and len(value) > _MAX_TEXT_OF_STEP:
                return LONG_TEXT
            self.texts[id(value)] = value
            return value
        try:
            return self._readers[kind](self, value, depth)
        except Exception:  # noqa: BLE001  whatever a program's object raises; the rest of the payload stays readable
            return Opaque(id(value))

    def aside(self, value: Any, depth: int) -> Snapshot:
        """The snapshot of a value in which little but the documents matters."""
        whole, self.whole = self.whole, False
        try:
            return self.copy(value, depth)
        finally:
            self.whole = whole

    def fields(self, value: dict[Any, Any], depth: int) -> Snapshot:
        """A dictionary. Fields whose names are no texts are hidden in one without a name."""
        items = list(dict.items(value))
        self._left -= len(items)
        if depth > _MAX_DEPTH or self._left < 0:
            return CUT
        copies: dict[str, Snapshot] = {}
        for key, item in items if len(items) <= _MAX_FIELDS else items[:_MAX_FIELDS]:
            if isinstance(key, str):
                copies[key] = self.copy(item, depth + 1)
            else:
                copies.setdefault("", Hidden([])).inside.append(self.copy(item, depth + 1))
        if len(items) > _MAX_FIELDS:
            copies["…"] = CUT
        return copies

    def state(self, fields: dict[str, Any], depth: int) -> Snapshot:
        """An object by its fields."""
        copies = self.fields(fields, depth)
        return copies if copies is CUT else ObjectFields(copies)

    def items(self, value: Iterable[Any], depth: int) -> Snapshot:
        """A list or the like: much of it where it holds documents, else the end of it, of a step's hardly anything."""
        if depth > _MAX_DEPTH or self._left < 0:
            return CUT
        items = list(value)
        copies = self._copies(items[:_FEW], depth + 1)
        if copies and self._is_document(items[0]):
            return copies + self._copies(items[_FEW:_MAX_DOCUMENTS], depth + 1)
        self._left -= len(copies)
        if len(items) <= _FEW:
            return copies
        if self.whole:
            rest = items[_FEW:] if len(items) <= _TAIL else items[-_TAIL:]
            copies = copies if len(items) <= _TAIL else [CUT]
        else:
            rest = [] if _DULL.issuperset(map(type, copies)) else items[_FEW:_MAX_ITEMS]
        self._left -= len(rest)
        return copies + self._copies(rest, depth + 1)

    def _copies(self, items: Iterable[Any], depth: int) -> list[Snapshot]:
        kept = self.kept
        return [known[1] if (known := kept.get(id(item))) is not None else self.copy(item, depth) for item in items]

    def _is_document(self, item: Any) -> bool:
        """Whether an item that was read is a document, alone or with a score."""
        if issubclass(type(item), (tuple, list)):
            item = next(iter((tuple if issubclass(type(item), tuple) else list).__iter__(item)), None)
        return id(item) in self.kept


_DULL = frozenset({str, int, float, bool, type(None), Opaque})


def _read_dataclass(copying: Copying, value: Any, depth: int) -> Snapshot:
    return copying.state({field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}, depth)


def _read_hidden(copying: Copying, value: Any, depth: int) -> Snapshot:
    return Hidden(_read_dataclass(copying, value, depth) if dataclasses.is_dataclass(value) else {})


def _read_other(_: Copying, value: Any, __: int) -> Snapshot:
    return Opaque(id(value))


_COMMON: Mapping[type, Reader] = {
    enum.Enum: lambda copying, value, depth: copying.copy(value.value, depth + 1),
    str: lambda _, value, __: value,
    bool: lambda _, value, __: value,
    int: lambda _, value, __: value if value.bit_length() < _MAX_BITS else CUT,
    type(None): lambda _, value, __: value,
    dict: Copying.fields,
    list: Copying.items,
    tuple: Copying.items,
    set: Copying.items,
    frozenset: Copying.items,
    deque: Copying.items,
    numbers.Real: lambda _, value, __: float(value),
    dt.date: lambda _, value, __: value.isoformat(),
    dt.time: lambda _, value, __: value.isoformat(),
    uuid.UUID: lambda _, value, __: str(value),
    decimal.Decimal: lambda _, value, __: str(value),
}


def _rebuilt(kind: type) -> Callable[[Any], Any]:
    return lambda value: kind(kind.__iter__(value))  # type: ignore[attr-defined]  # it is a collection


_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    **{kind: _rebuilt(kind) for kind in (list, tuple, set, frozenset, deque)},
}
"""Makes a value plain whose class is the program's own: its items, without the methods of that class."""
