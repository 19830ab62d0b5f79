"""How much memory captures, records and messages take while they wait, for the bounds of queues."""

from __future__ import annotations

import sys
from dataclasses import fields, is_dataclass
from typing import Any

from ragspan.plain_data import bases_of, own_of, text_of

PART_BYTES = 64
"""Of a number, of a short text, or of an entry of a dictionary or list with what it takes there."""
EVENT_PARTS = 4
"""An event of a log, its time and its keys, as parts."""


def size_of(value: Any) -> int:
    """Bytes of memory of plain data: of a record, say, with all that it holds. A text that is there twice counts once."""
    return _size_of(value, set())


def _size_of(value: Any, known: set[int]) -> int:
    kind = type(value)
    if kind is str or kind is bytes:
        if id(value) in known:
            return 0
        known.add(id(value))
        return sys.getsizeof(value)
    if kind is dict:
        return PART_BYTES + sum(
            PART_BYTES + _size_of(key, known) + _size_of(item, known) for key, item in value.items()
        )
    if kind is tuple or kind is list:
        return sum([_size_of(item, known) for item in value], PART_BYTES) if value else 0
    names = _names_in(kind)
    if not names:
        return 0 if value is None or kind is bool else PART_BYTES
    if id(value) in known:  # a context is in a search and in the prompt
        return 0
    known.add(id(value))
    return sum([_size_of(getattr(value, name), known) for name in names], PART_BYTES)


_names: dict[int, tuple[type, tuple[str, ...]]] = {}  # by the class's identity: a metaclass may have a hash of its own
_MAX_CLASSES = 1000


def _names_in(kind: type) -> tuple[str, ...]:
    """The fields of the record's own dataclasses; objects of other classes are not entered."""
    entry = _names.get(id(kind))
    if entry is None:
        if len(_names) >= _MAX_CLASSES:
            _names.clear()
        own = next((base for base in bases_of(kind) if text_of(own_of(base, "__module__")) in _OWN), None)
        entry = _names[id(kind)] = kind, tuple(field.name for field in fields(own)) if is_dataclass(own) else ()
    return entry[1]


_OWN = ("ragspan.records.contexts", "ragspan.records.record", "ragspan.records.steps", "ragspan.messages")
