"""Copies of payloads as they were when they passed by: the structure is copied, the texts are shared.

The program goes on using its payloads. So their structure is copied, with references to the texts. `ragspan.plain_data` reads
them, so that no code of the program's runs, and nothing of it is kept but texts.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeAlias

from ragspan.capturing.log import RequestLog
from ragspan.plain_data import class_name, dataclass_fields, derives_from, fields_of, scalar_reader, text_keyed

_MAX_DEPTH = 50
_MAX_NODES = 1000
MAX_NODES_OF_STEP = 10_000
"""A dictionary with more entries is cut in any case."""
MAX_BLOCKS = 10_000
"""Of a message, and calls of tools in it."""
_MAX_FIELDS = 200
_TAIL = 200  # of a long list, the end holds the last messages
_MAX_DOCUMENTS = 20_000  # of one list
_MAX_ITEMS = 2000  # of one list of a step that may hold documents deeper
_MAX_TEXT_OF_STEP = 20_000
_MAX_TYPES = 4096  # programs may make classes as they go
_FEW = 4

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
    """Stands for a value that is not data itself, though documents may lie inside: `inside` is a snapshot."""

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
        in_steps: by the framework's own classes, what stands for such a value where not the whole is wanted.
    """

    def __init__(
        self,
        readers: Mapping[type, Reader],
        *,
        hidden: Collection[str] = (),
        in_steps: Mapping[type, Opaque] = MappingProxyType({}),
    ) -> None:
        self._readers = _ReadersByType(readers, hidden)
        self._in_steps = {id(kind): (kind, sign) for kind, sign in in_steps.items()}

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
        kind = type(value)
        if not whole and (known := self._in_steps.get(id(kind))) is not None:
            log.parts += 1
            return known[1]
        if (scalar := self._readers.scalars.get(id(kind))) is not None:  # a text of a class of its own, say
            log.parts += 1
            return _scalar_in(scalar, value, log)
        copying = Copying(self._readers, log, whole)
        snapshot = copying.copy(value)
        log.parts += copying.parts
        return snapshot


class _ReadersByType(dict[int, tuple[type, Reader]]):
    """Readers by the identity of the exact type, found once; it is kept beside, so that its identity stays its own."""

    def __init__(self, readers: Mapping[type, Reader], hidden: Collection[str]) -> None:
        super().__init__()
        self._by_base = [*readers.items(), *_COMMON.items()]
        self._hidden = hidden
        self.scalars: dict[int, Callable[[Any], Any]] = {}
        """How to read the types that are met and are one text, number or date."""

    def find(self, kind: type) -> tuple[type, Reader]:
        """The reader for a type that was not met before."""
        if len(self) >= _MAX_TYPES:
            self.clear()
            self.scalars.clear()
        entry = self[id(kind)] = kind, self._reader_of(kind)
        return entry

    def _reader_of(self, kind: type) -> Reader:
        declared = dataclass_fields(kind)
        if class_name(kind) in self._hidden:
            return _read_nothing if declared is None else _hiding(_reader_of_dataclass(declared))
        for base, reader in self._by_base:
            if derives_from(kind, base):
                as_plain = None if kind is base else _PLAIN.get(base)
                return reader if as_plain is None else _after(as_plain, reader)
        scalar = scalar_reader(kind)
        if scalar is not None:
            self.scalars[id(kind)] = scalar
            return lambda copying, value, _: _scalar_in(scalar, value, copying)
        return _read_other if declared is None else _reader_of_dataclass(declared)


class Copying:
    """Copies one payload; readers call it for what is inside."""

    __slots__ = ("_left", "_readers", "kept", "parts", "texts", "whole")

    def __init__(self, readers: _ReadersByType, log: RequestLog, whole: bool) -> None:  # noqa: FBT001  made at most events
        self._readers = readers
        self._left = _MAX_NODES if whole else MAX_NODES_OF_STEP
        self.parts = 1
        """How much the containers of the snapshot hold."""
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
            return (self._readers.get(id(kind)) or self._readers.find(kind))[1](self, value, depth)
        except Exception:  # noqa: BLE001  a list that another thread is changing; the rest of the payload stays readable
            return Opaque(id(value))

    def aside(self, value: Any, depth: int) -> Snapshot:
        """The snapshot of a value in which little but the documents matters."""
        whole, self.whole = self.whole, False
        try:
            return self.copy(value, depth)
        finally:
            self.whole = whole

    def fields(self, value: dict[Any, Any], depth: int) -> Snapshot:
        """A dictionary. Fields whose names are not texts are hidden in one without a name."""
        self._left -= dict.__len__(value)
        if depth > _MAX_DEPTH or self._left < 0:
            return CUT
        items = list(dict.items(value))
        self.parts += len(items)
        copies: dict[str, Snapshot] = {}
        texts, longest = self.texts, sys.maxsize if self.whole else _MAX_TEXT_OF_STEP
        for key, item in items if len(items) <= _MAX_FIELDS else items[:_MAX_FIELDS]:
            if type(key) is str:
                if type(item) is str and len(item) <= longest:  # mostly
                    copies[key] = texts[id(item)] = item
                else:
                    copies[key] = self.copy(item, depth + 1)
            elif issubclass(type(key), str):
                copies[str.__str__(key)] = self.copy(item, depth + 1)
            else:
                copies.setdefault("", Hidden([])).inside.append(self.copy(item, depth + 1))
        if len(items) > _MAX_FIELDS:
            copies["…"] = CUT
        return copies

    def state(self, fields: dict[str, Any], depth: int) -> Snapshot:
        """An object by its fields."""
        copies = self.fields(fields, depth)
        return copies if copies is CUT else ObjectFields(copies)

    def items(self, value: Collection[Any], depth: int) -> Snapshot:
        """A list or the like: much of it where it holds documents, else the end of it, of a step's hardly anything."""
        if depth > _MAX_DEPTH or self._left < 0:
            return CUT
        items = list(value) if len(value) <= _MAX_DOCUMENTS else _ends_of(value)
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

    def _copies(self, items: Sequence[Any], depth: int) -> list[Snapshot]:
        kept = self.kept
        self.parts += len(items)
        return [known[1] if (known := kept.get(id(item))) is not None else self.copy(item, depth) for item in items]

    def _is_document(self, item: Any) -> bool:
        """Whether an item that was read is a document, alone or with a score."""
        if issubclass(type(item), (tuple, list)):
            item = next((tuple if issubclass(type(item), tuple) else list).__iter__(item), None)
        return id(item) in self.kept


def _ends_of(value: Collection[Any]) -> list[Any]:
    """The first and the last of very many items: to copy them all takes the request's time."""
    first = list(islice(value, _MAX_DOCUMENTS))
    if type(value) is list or type(value) is tuple:
        return [*first, *value[-_TAIL:]]
    return [*first, *reversed(list(islice(reversed(value), _TAIL)))] if type(value) is deque else first


_DULL = frozenset({str, int, float, bool, type(None), Opaque})


def _reader_of_dataclass(declared: Sequence[str]) -> Reader:
    def read(copying: Copying, value: Any, depth: int) -> Snapshot:
        own = fields_of(value)
        return copying.state({name: own[name] for name in declared if name in own}, depth)

    return read


def _hiding(read: Reader) -> Reader:
    return lambda copying, value, depth: Hidden(read(copying, value, depth))


def _read_nothing(_: Copying, __: Any, ___: int) -> Snapshot:
    return Hidden({})


def _read_other(_: Copying, value: Any, __: int) -> Snapshot:
    return Opaque(id(value))


def _scalar_in(read: Callable[[Any], Any], value: Any, noted: Copying | RequestLog) -> Snapshot:
    try:
        plain = read(value)
    except Exception:  # noqa: BLE001  numbers of other libraries
        return Opaque(id(value))
    if type(plain) is str:
        noted.texts[id(plain)] = plain
    return CUT if plain is None else plain


def _after(as_plain: Callable[[Any], Any], reader: Reader) -> Reader:
    return lambda copying, value, depth: reader(copying, as_plain(value), depth)


_COMMON: Mapping[type, Reader] = {
    type(None): lambda _, value, __: value,
    dict: Copying.fields,
    list: Copying.items,
    tuple: Copying.items,
    set: Copying.items,
    frozenset: Copying.items,
    deque: Copying.items,
}


def _rebuilt(kind: type) -> Callable[[Any], Any]:
    return lambda value: list(kind.__iter__(value))  # type: ignore[attr-defined]  # it is a collection


_PLAIN: Mapping[type, Callable[[Any], Any]] = {
    dict: text_keyed,
    tuple: lambda value: tuple(tuple.__iter__(value)),
    **{kind: _rebuilt(kind) for kind in (list, set, frozenset, deque)},
}
"""Makes a value plain whose class is the program's own: its items, without the methods of that class."""
