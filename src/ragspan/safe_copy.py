"""Copies what the program's objects hold: none of its code runs, and nothing of it stays alive but texts. All copies are bounded.

Read are texts, numbers, dates, dictionaries, lists and the like, and the attributes in an object's dictionary or slots. All else is
opaque. Of a subclass of a builtin the base's own methods are called: no `getattr`, `==`, `len`, `str` or iteration of the program's.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import sys
import types
import uuid
import zoneinfo
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

bases_of: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
"""The class and all of its bases."""
class_name: Final[Callable[[type], str]] = type.__dict__["__name__"].__get__
"""The name of a class, which nobody has overridden."""
_CLASS_DICT: Final[Callable[[type], Mapping[str, Any]]] = type.__dict__["__dict__"].__get__
_DESCRIPTORS: Final = frozenset({types.GetSetDescriptorType, types.MemberDescriptorType})
_MAX_BITS: Final = 1024  # of an integer: it is no larger than a float may be
_ABSENT: Final = object()
_TEXT: Final = frozenset({str})
_T = TypeVar("_T")


# Classes and objects


def by_class(call: Callable[[type], _T]) -> Callable[[type], _T]:
    """Remember what this function says of a class."""
    remembering: Any = lru_cache(4096)(call)  # programs may make classes as they go
    return remembering  # type: ignore[no-any-return]


def in_class(kind: type, name: str) -> Any:
    """What the class itself, or the nearest of its bases, has under this name, unbound; None if there is nothing."""
    return next((own[name] for base in bases_of(kind) if name in (own := _CLASS_DICT(base))), None)


@by_class
def dataclass_fields(kind: type) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None for any other class."""
    declared = in_class(kind, "__dataclass_fields__")
    return tuple(declared) if type(declared) is dict else None


@by_class
def _slots(kind: type) -> Mapping[str, Callable[[Any], Any]]:
    members = [pair for base in reversed(bases_of(kind)) for pair in _CLASS_DICT(base).items()]
    return {name: one.__get__ for name, one in members if type(one) is types.MemberDescriptorType}


@by_class
def _reader_of(kind: type) -> Callable[[Any], Any]:
    """Reads the dictionary of an object of this class, with what is in slots, but for those such as `__pydantic_extra__`."""
    found = in_class(kind, "__dict__")
    dictionary: Callable[[Any], Any] = found.__get__ if type(found) in _DESCRIPTORS else lambda _: {}
    names = [name for name in _slots(kind) if not name.startswith("__")]
    if not names:
        return dictionary
    return lambda value: {**{name: in_slot(value, name) for name in names}, **dictionary(value)}


def fields_of(value: Any) -> dict[str, Any]:
    """The attributes that an object keeps in its dictionary or in slots, not to be changed. Properties are not asked."""
    fields: Any = _reader_of(type(value))(value)
    return fields if type(fields) is dict else {}


@by_class
def has_plain_dict(kind: type) -> bool:
    """Whether all that `fields_of` finds in objects of this class is in their `__dict__`, which may be asked for: no code runs.

    Where many of them are read, that takes half of the time.
    """
    is_all = type(_reader_of(kind)) is types.MethodWrapperType
    return is_all and in_class(kind, "__getattribute__") is object.__getattribute__


def replace_field(value: Any, name: str, new: Any) -> bool:
    """Replace an attribute where the object keeps it, in its dictionary; False if it is not there."""
    own = fields_of(value)
    if type(_reader_of(type(value))) is not types.MethodWrapperType or name not in own:
        return False
    own[name] = new
    return True


def in_slot(value: Any, name: str) -> Any:
    """What an object keeps in this slot; None if it has no such slot, or nothing in it."""
    try:
        return _slots(type(value))[name](value)
    except (AttributeError, KeyError):
        return None


# Dictionaries and lists


def text_keyed(value: Any) -> dict[str, Any]:
    """The entries of a dictionary whose keys are texts; of anything else none. Keys of own classes may compare as they like."""
    if value is None or (type(value) is dict and _TEXT.issuperset(map(type, value))):
        return value or {}
    items = list(dict.items(value)) if is_dict(value) else ()
    return {key if type(key) is str else str.__str__(key): item for key, item in items if issubclass(type(key), str)}


def is_dict(value: Any) -> bool:
    return issubclass(type(value), dict)


def is_list(value: Any) -> bool:
    """Whether it is a list or a tuple."""
    return issubclass(type(value), (list, tuple))


def dict_in(value: Any) -> dict[Any, Any] | None:
    """The dictionary that this is, or a copy of the one that it is a read-only view of; None for anything else."""
    if type(value) is MappingProxyType:
        return dict(value)
    return value if issubclass(type(value), dict) else None


_LISTS: Final[tuple[type, ...]] = (list, tuple, deque, set, frozenset)


def items_of(value: Any, most: int = sys.maxsize) -> list[Any] | None:
    """The items of a list, tuple, set or deque, by its base class's own method; None for anything else."""
    kind = type(value)
    if kind is list or kind is tuple:
        return list(value)
    if value is None:
        return None
    base = next((base for base in _LISTS if issubclass(kind, base)), None)
    return None if base is None else list(islice(base.__iter__(value), most))  # type: ignore[attr-defined]  # a collection


def given_items(value: Any, most: int = sys.maxsize) -> list[Any] | None:
    """At most `most` items of what the program hands over to be iterated; None for a text, a dictionary, or what cannot be."""
    if isinstance(value, (str, bytes, dict)):
        return None
    try:
        return list(islice(value, most))
    except TypeError:
        return None


# Texts and numbers


def text_of(value: Any) -> str | None:
    """The text that this is, without a class of the program's own; None for anything else."""
    if type(value) is str:
        return value
    return str.__str__(value) if issubclass(type(value), str) else None


def texts_among(items: Iterable[Any]) -> tuple[str, ...]:
    """Those of these that are texts."""
    return tuple(text for text in map(text_of, items) if text is not None)


def number_of(value: Any) -> int | float | None:
    """The number that this is, as Python's own; None for anything else, also for truth values."""
    found = value if type(value) is float else plain_scalar(value)
    return found if type(found) is float or type(found) is int else None


def plain_scalar(value: Any) -> str | int | float | bool | None:
    """A text, number or truth value as Python's own, a date or identifier as text; None for anything else."""
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is float:
        return value  # type: ignore[no-any-return]
    try:
        read = _scalar_reader(kind)
        return None if read is None else read(value)
    except Exception:  # noqa: BLE001  numbers of other libraries
        return None


_ZONES: Final = frozenset({type(None), dt.timezone, zoneinfo.ZoneInfo})
_SCALARS: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (enum.Enum, lambda value: plain_scalar(fields_of(value).get("_value_"))),
    (str, str.__str__),
    (int, lambda value: number if (number := int.__int__(value)).bit_length() < _MAX_BITS else None),
    (float, float.__float__),
    # A zone of the program's own would answer by its own methods.
    (dt.datetime, lambda value: dt.datetime.isoformat(value) if type(value.tzinfo) in _ZONES else None),
    (dt.date, dt.date.isoformat),
    (uuid.UUID, uuid.UUID.__str__),
    (decimal.Decimal, decimal.Decimal.__str__),
)


@by_class
def _scalar_reader(kind: type) -> Callable[[Any], Any] | None:
    """How to make plain what is one text, number or date; None for other classes."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None and issubclass(kind, (numpy.integer, numpy.floating, numpy.bool_)):
        return float
    return next((read for base, read in _SCALARS if issubclass(kind, base)), None)


# Metadata


MAX_ENTRIES: Final = 200
"""Of metadata, with all lists and dictionaries inside."""
_SHORT: Final = 200  # characters of a text that is kept in any case
_MAX_METADATA: Final = 20_000  # characters of longer texts that are kept of one document's or request's metadata
_SMALL: Final = 100  # characters of an entry, name and value, that counts for a queue's bytes as three other parts do
_BITS: Final = 62  # of an integer that takes up little: without them 0 or -1 is left
_MAX_NESTED: Final = 5


def small_copy(metadata: Any) -> dict[str, Any] | None:
    """A copy of metadata of which a record keeps everything, and which takes up little, as most does; None for all others."""
    if type(metadata) is not dict or len(metadata) > MAX_ENTRIES:
        return None
    copy = metadata.copy()
    for name, value in copy.items():
        kind = type(value)
        if type(name) is not str or len(name) > _SMALL:
            return None
        if kind is str:
            if len(name) + len(value) > _SMALL:
                return None
        elif not ((kind is int and value >> _BITS in (0, -1)) or kind is float or kind is bool or value is None):
            return None
    return copy


def kept_entries(metadata: Any, *, nested: bool = False, texts: dict[int, str] | None = None) -> dict[str, Any]:
    """What a record keeps of the metadata of a document or a request: texts, numbers and truth values by their names.

    A text of up to 200 characters is kept, longer ones share 20,000: one that has more is cut there.

    Args:
        metadata: a dictionary; anything else has no entries.
        nested: lists and dictionaries of such values are kept as well.
        texts: gets the kept texts by their identity, but for those that take up little.
    """
    copy = small_copy(metadata)
    if copy is not None:
        return copy
    if not is_dict(metadata):
        return {}
    left, room, deepest = MAX_ENTRIES, _MAX_METADATA, _MAX_NESTED if nested else 0

    def kept_of(value: Any, depth: int) -> Any:
        nonlocal left, room
        if depth <= deepest and is_dict(value):
            entries = list(islice(dict.items(value), left))
            left -= len(entries)
            kept = [(name, kept_of(item, depth + 1)) for key, item in entries if (name := text_of(key)) is not None]
            return {name: one for name, one in kept if len(name) <= _SHORT and one is not _ABSENT}
        if depth <= deepest and is_list(value):
            items = (items_of(value) or [])[:left]
            left -= len(items)
            return [one for item in items if (one := kept_of(item, depth + 1)) is not _ABSENT]
        found = plain_scalar(value)
        if type(found) is str:
            if len(found) > _SHORT:
                found = found[:room]
                room -= len(found)
            if texts is not None:
                texts[id(found)] = found
        return _ABSENT if found is None and value is not None else found

    entries: dict[str, Any] = kept_of(metadata, 0)
    return entries


# Snapshots

MAX_NODES_OF_STEP: Final = 10_000
"""A dictionary with more entries is cut in any case."""
MAX_BLOCKS: Final = 10_000
"""Of a message, and calls of tools in it."""
_MAX_DEPTH: Final = 50
_MAX_NODES: Final = 1000
_MAX_FIELDS: Final = 200
_TAIL: Final = 200  # of a long list, the end holds the last messages
_MAX_DOCUMENTS: Final = 20_000  # of one list
_MAX_ITEMS: Final = 2000  # of one list of a step that may hold documents deeper
_MAX_TEXT_OF_STEP: Final = 20_000
_FEW: Final = 4

Snapshot: TypeAlias = Any
"""str, number, bool, None, an `Opaque`, what an integration makes of its framework's objects, or a list or dict of these."""


class Opaque:
    """Stands for a value that is neither text nor data. `identity` is that of the value: two may be the same one."""

    __slots__ = ("identity",)

    def __init__(self, identity: int = 0) -> None:
        self.identity = identity


class Hidden(Opaque):
    """Stands for a value that is not data itself, though documents may lie inside: `inside` is a snapshot."""

    __slots__ = ("inside",)

    def __init__(self, inside: Snapshot) -> None:
        super().__init__()
        self.inside = inside


class ObjectFields(dict[str, Any]):
    """The fields of a model or dataclass: an answer in a form of the program's own, not a state with an answer in it."""


OPAQUE = Opaque()
"""Also stands for a text that is too long to matter where it lies."""
CUT = Opaque()
"""Stands for what is left out because the payload is too deep or too large."""
Reader: TypeAlias = Callable[["Copying", Any, int], Snapshot]
"""Makes the snapshot of a value of one kind that lies this deep."""


class Snapshots:
    """Makes snapshots of a framework's payloads: the structure is copied, the texts are shared.

    Args:
        readers: how to read the framework's own classes and their subclasses; the first that fits.
        hidden: names of dataclasses that hold no data, though documents may lie inside.
        in_steps: by the framework's own classes, what stands for such a value where not the whole is wanted.
        marks: names of fields that a dictionary of the framework's own has, such as a message.
    """

    def __init__(
        self,
        readers: Mapping[type, Reader],
        *,
        hidden: Collection[str] = (),
        in_steps: Mapping[type, Opaque] = MappingProxyType({}),
        marks: Collection[str] = (),
    ) -> None:
        self._marks = frozenset(marks)
        self._by_base = [*readers.items(), *_COMMON.items()]
        self._hidden = hidden
        self.reader_of = by_class(self._find)
        self._in_steps = in_steps

    def take(self, value: Any, log: Any, *, whole: bool = True) -> Snapshot:
        """A snapshot for a request's log.

        Args:
            value: the payload.
            log: a request's, which notes the texts in it, and keeps the documents in it alive.
            whole: False where little but the documents matters: then long texts and dull lists are left out.
        """
        kind = type(value)
        if kind is str or issubclass(kind, str):  # as most are
            text = value if kind is str else str.__str__(value)
            if whole or len(text) <= _MAX_TEXT_OF_STEP:
                log.texts[id(text)] = text
                return text
            return OPAQUE
        if kind is dict and 0 < len(value) <= _MAX_FIELDS:
            fields, texts, marks = value.copy(), log.texts, self._marks
            for name, text in fields.items():
                if type(name) is not str or type(text) is not str or name in marks:
                    break
                if whole or len(text) <= _MAX_TEXT_OF_STEP:
                    texts[id(text)] = text
                else:
                    fields[name] = OPAQUE
            else:  # texts alone
                log.parts += 1 + len(fields)
                return fields
        elif kind is list and (items := value[:_MAX_DOCUMENTS]) and id(items[0]) in (kept := log.kept):
            copies = [known[1] for item in items if (known := kept.get(id(item))) is not None]
            if len(copies) == len(items):  # documents that were read before
                log.parts += 1 + len(copies)
                return copies
        elif not whole and (known := self._in_steps.get(kind)) is not None:
            log.parts += 1
            return known
        copying = Copying(self, log, whole)
        snapshot = copying.copy(value)
        log.parts += copying.parts
        return snapshot

    def _find(self, kind: type) -> Reader:
        bases, is_dataclass = bases_of(kind), dataclass_fields(kind) is not None
        reader = next((read for base, read in self._by_base if any(base is one for one in bases)), None)
        if is_dataclass and class_name(kind) in self._hidden:
            reader = lambda copying, value, depth: Hidden(copying.state(fields_of(value), depth))  # noqa: E731
        elif reader is None and _scalar_reader(kind) is not None:
            reader = _read_scalar
        elif reader is None and is_dataclass:
            reader = lambda copying, value, depth: copying.state(fields_of(value), depth)  # noqa: E731
        return reader or (lambda _, value, __: Opaque(id(value)))


class Copying:
    """Copies one payload; readers call it for what is inside."""

    __slots__ = ("_left", "_reader_of", "kept", "parts", "texts", "whole")

    def __init__(self, snapshots: Snapshots, log: Any, whole: bool) -> None:  # noqa: FBT001  made at most events
        self._reader_of = snapshots.reader_of
        self._left = _MAX_NODES if whole else MAX_NODES_OF_STEP
        self.parts = 1  # how much the containers of the snapshot hold
        self.whole = whole
        self.kept = log.kept
        self.texts = log.texts

    def copy(self, value: Any, depth: int = 0) -> Snapshot:
        """The snapshot of a value that lies this deep."""
        kind = type(value)
        if kind is str:
            if not self.whole and len(value) > _MAX_TEXT_OF_STEP:
                return OPAQUE
            self.texts[id(value)] = value
            return value
        try:
            return self._reader_of(kind)(self, value, depth)
        except Exception:  # noqa: BLE001  a list that another thread is changing; the rest of the payload stays readable
            return Opaque(id(value))

    def copy_hidden(self, value: Any, depth: int) -> Snapshot:
        """The snapshot of a value in which little but the documents matters."""
        whole, self.whole = self.whole, False
        try:
            return self.copy(value, depth)
        finally:
            self.whole = whole

    def fields(self, value: dict[Any, Any], depth: int) -> Snapshot:
        """A dictionary."""
        self._left -= dict.__len__(value)
        if depth > _MAX_DEPTH or self._left < 0:
            return CUT
        items = list(dict.items(value))
        self.parts += len(items)
        copies: dict[str, Snapshot] = {}
        texts, longest = self.texts, sys.maxsize if self.whole else _MAX_TEXT_OF_STEP
        for key, item in items if len(items) <= _MAX_FIELDS else items[:_MAX_FIELDS]:
            name = key if type(key) is str else str(plain_scalar(key))
            if type(item) is str and len(item) <= longest:  # mostly
                copies[name] = texts[id(item)] = item
            else:
                copies[name] = self.copy(item, depth + 1)
        if len(items) > _MAX_FIELDS:
            copies["…"] = CUT
        return copies

    def state(self, fields: dict[str, Any], depth: int) -> Snapshot:
        """An object by its fields."""
        copies = self.fields(fields, depth)
        return copies if copies is CUT else ObjectFields(copies)

    def items(self, value: Any, depth: int) -> Snapshot:
        """A list or the like: much of it where it holds documents, else the end of it, of a step's hardly anything."""
        if depth > _MAX_DEPTH or self._left < 0:
            return CUT
        items = value if type(value) is list or type(value) is tuple else items_of(value, _MAX_DOCUMENTS) or []
        copies = self._copies(items[:_FEW], depth + 1)
        if copies:
            first = items[0]
            if id((items_of(first) or [None])[0] if is_list(first) else first) in self.kept:  # a document, with a score
                return copies + self._copies(items[_FEW:_MAX_DOCUMENTS], depth + 1)
        rest = items[_FEW:_MAX_ITEMS]
        if rest and not self.whole and _WITHOUT_DOCUMENTS.issuperset(map(type, copies)):
            rest = []
        elif self.whole and len(items) > _TAIL:
            copies, rest = [CUT], items[-_TAIL:]
        self._left -= len(copies) + len(rest)
        if not rest:
            return copies
        return copies + self._copies(rest, depth + 1)

    def _copies(self, items: Sequence[Any], depth: int) -> list[Snapshot]:
        kept = self.kept
        self.parts += len(items)
        return [known[1] if (known := kept.get(id(item))) is not None else self.copy(item, depth) for item in items]


_WITHOUT_DOCUMENTS: Final = frozenset({str, int, float, bool, type(None), Opaque})


def _read_scalar(copying: Copying, value: Any, depth: int) -> Snapshot:
    plain = plain_scalar(value)
    return CUT if plain is None else copying.copy(plain, depth) if type(plain) is str else plain


_COMMON: Final[Mapping[type, Reader]] = {
    type(None): lambda _, value, __: value,
    dict: Copying.fields,
    **dict.fromkeys(_LISTS, Copying.items),
}


# Sizes

PART_BYTES: Final = 64
"""Of a number, of a short text, or of an entry of a dictionary or list with what it takes there."""


def size_of(value: Any) -> int:
    """Bytes of memory of plain data: of a record, say, with all that it holds. What is there twice counts once."""
    left, counted, size = [value], set[int](), 0
    for one in left:  # it grows on the way
        kind = type(one)
        if kind is tuple or kind is list:
            size += PART_BYTES if one else 0
            left += one
        elif kind is dict:
            size += PART_BYTES + 2 * PART_BYTES * len(one)
            left += chain.from_iterable(one.items())
        elif (names := () if kind is str else dataclass_fields(kind)) is None:
            size += 0 if one is None or kind is bool else PART_BYTES
        elif id(one) not in counted:  # a context is in a search and in the prompt
            counted.add(id(one))
            size += sys.getsizeof(one)
            left += [part for name in names if (part := getattr(one, name)) is not None]
    return size
