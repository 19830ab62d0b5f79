"""Copies what the program's objects hold, without running any of its code and without keeping anything of it alive but texts.

Read are texts, numbers, dates, dictionaries, lists and the like, and the attributes that an object keeps in its dictionary or in
plain slots. All else is opaque. What is asked of an object is its exact type, and of a subclass of a builtin the base's own
methods are called: no `getattr`, `isinstance`, `==`, `hash`, `len`, `str` or iteration of the program's. All copies are bounded.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import itertools
import sys
import types
import uuid
import zoneinfo
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

_T = TypeVar("_T")
bases_of: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
"""The class and all of its bases."""
class_name: Final[Callable[[type], str]] = type.__dict__["__name__"].__get__
"""The name of a class, which nobody has overridden."""
_CLASS_DICT: Final[Callable[[type], Mapping[str, Any]]] = type.__dict__["__dict__"].__get__
_FLAGS: Final[Callable[[type], int]] = type.__dict__["__flags__"].__get__
_MADE_IN_PYTHON: Final = 1 << 9  # the flag of such classes
_MAX_CLASSES: Final = 4096  # programs may make classes as they go
_MAX_BITS: Final = 1024  # of an integer: it is no larger than a float may be
_ABSENT: Final = object()
_NO_FIELDS: Final[dict[str, Any]] = {}
_TEXT: Final = frozenset({str})


# Classes


def own_of(kind: type, name: str) -> Any:
    """What the class itself has under this name, unbound; None if it has nothing of its own."""
    return _CLASS_DICT(kind).get(name)


def in_class(kind: type, name: str) -> Any:
    """What the class itself, or the nearest of its bases, has under this name, unbound; None if there is nothing."""
    return next((own[name] for base in bases_of(kind) if name in (own := _CLASS_DICT(base))), None)


def dataclass_fields(kind: type) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None for any other class."""
    declared = in_class(kind, "__dataclass_fields__")
    return tuple(declared) if type(declared) is dict else None


def remember(table: dict[int, _T], kind: type, known: _T) -> _T:
    """Note what is known of a class in a table by the identities of classes, which holds the class itself too."""
    if len(table) >= _MAX_CLASSES:
        table.clear()
    table[id(kind)] = known
    return known


# Objects


class _Layout(NamedTuple):
    read: Callable[[Any], Any]  # the dictionary of an object, with what is in its slots
    dictionary: Callable[[Any], Any] | None
    slots: Mapping[str, Callable[[Any], Any]]  # also those with names such as `__pydantic_extra__`
    is_plain: bool
    kind: type  # keeps the class alive, so that its identity stays its own


_layouts: dict[int, _Layout] = {}  # by the class's identity: a metaclass may have a hash of its own


def fields_of(value: Any) -> dict[str, Any]:
    """The attributes that an object keeps in its dictionary or in plain slots, not to be changed. Properties are not asked."""
    try:
        fields: Any = _layouts[id(type(value))][0](value)
    except KeyError:
        fields = _look_up(type(value))[0](value)
    if type(fields) is dict:
        return fields
    return text_keyed(fields) if issubclass(type(fields), dict) else _NO_FIELDS  # that of a class is another kind


def _look_up(kind: type) -> _Layout:
    found: dict[str, Any] = {}
    for base in reversed(bases_of(kind)):
        found.update(_CLASS_DICT(base))
    entry: Any = found.get("__dict__")
    dictionary = entry.__get__ if type(entry) in {types.GetSetDescriptorType, types.MemberDescriptorType} else None
    members = {name: one for name, one in found.items() if type(one) is types.MemberDescriptorType}
    slots = {name: one.__get__ for name, one in members.items() if _FLAGS(one.__objclass__) & _MADE_IN_PYTHON}
    plain = [(name, held) for name, held in slots.items() if not name.startswith("__")]
    is_plain = (
        not plain
        and type(entry) is types.GetSetDescriptorType
        and found.get("__getattribute__") is object.__getattribute__
    )

    def read_slots(value: Any) -> dict[str, Any]:
        fields = {name: held for name, in_slot in plain if (held := _held(in_slot, value)) is not _ABSENT}
        return fields if dictionary is None else fields | text_keyed(dictionary(value))

    read: Callable[[Any], Any] = read_slots if plain else dictionary or (lambda _: _NO_FIELDS)
    return remember(_layouts, kind, _Layout(read, dictionary, slots, is_plain, kind))


def has_plain_dict(kind: type) -> bool:
    """Whether all that `fields_of` finds in objects of this class is in their `__dict__`, which may be asked for: no code runs.

    Where many of them are read, that takes half of the time. It is a dictionary, if not always a plain one.
    """
    return (_layouts.get(id(kind)) or _look_up(kind)).is_plain


def replace_field(value: Any, name: str, new: Any) -> bool:
    """Replace an attribute where the object keeps it, in its dictionary; False if it is not there."""
    dictionary = (_layouts.get(id(type(value))) or _look_up(type(value))).dictionary
    own = None if dictionary is None else dictionary(value)
    if own is None or name not in text_keyed(own):
        return False
    dict.__setitem__(own, name, new)
    return True


def in_slot(value: Any, name: str) -> Any:
    """What an object keeps in this slot; None if it has no such slot, or nothing in it."""
    read = (_layouts.get(id(type(value))) or _look_up(type(value))).slots.get(name)
    held = None if read is None else _held(read, value)
    return None if held is _ABSENT else held


def _held(read: Callable[[Any], Any], value: Any) -> Any:
    try:
        return read(value)
    except AttributeError:  # it was not set
        return _ABSENT


# Dictionaries and lists


def text_keyed(mapping: dict[Any, Any]) -> dict[str, Any]:
    """The entries of a dictionary whose keys are texts. Keys of the program's own classes may compare as they like."""
    if type(mapping) is dict and _TEXT.issuperset(map(type, mapping)):
        return mapping
    items = list(dict.items(mapping))
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
_ONE_SHOT: Final[tuple[type, ...]] = (
    types.GeneratorType,
    map,
    filter,
    zip,
    type(iter([])),
    type(iter(())),
    type({}.keys()),
    type({}.values()),
)


def items_of(value: Any) -> list[Any] | None:
    """The items of a list, tuple, set or deque, by its base class's own method; None for anything else."""
    kind = type(value)
    if kind is list or kind is tuple:
        return list(value)
    if value is None:
        return None
    base = next((base for base in _LISTS if issubclass(kind, base)), None)
    return None if base is None else list(base.__iter__(value))  # type: ignore[attr-defined]  # it is a collection


def given_items(value: Any, most: int = sys.maxsize) -> list[Any] | None:
    """At most `most` items of what the program hands over, a generator included; None for what `items_of` cannot read."""
    if any(type(value) is kind for kind in _ONE_SHOT):
        return list(islice(value, most))
    items = items_of(value)
    return None if items is None else items[:most]


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
    if kind is int:
        return value if value.bit_length() < _MAX_BITS else None
    try:
        read = _scalar_reader(kind)
        return None if read is None else read(value)
    except Exception:  # noqa: BLE001  numbers of other libraries
        return None


def _read_datetime(value: dt.datetime) -> str | None:
    """A zone of the program's own would answer by its own methods."""
    known = any(type(value.tzinfo) is kind for kind in (type(None), dt.timezone, zoneinfo.ZoneInfo))
    return dt.datetime.isoformat(value) if known else None


_SCALARS: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (enum.Enum, lambda value: plain_scalar(fields_of(value).get("_value_"))),
    (str, str.__str__),
    (int, lambda value: plain_scalar(int.__int__(value))),
    (float, float.__float__),
    (dt.datetime, _read_datetime),
    (dt.date, dt.date.isoformat),
    (uuid.UUID, uuid.UUID.__str__),
    (decimal.Decimal, decimal.Decimal.__str__),
)
_scalars: dict[int, tuple[Callable[[Any], Any] | None, type]] = {}  # by the class's identity, as above


def _scalar_reader(kind: type) -> Callable[[Any], Any] | None:
    """How to make plain what is one text, number or date; None for other classes."""
    known = _scalars.get(id(kind))
    if known is not None:
        return known[0]
    read = next((read for base, read in _SCALARS if issubclass(kind, base)), None)
    numpy: Any = sys.modules.get("numpy")
    if read is None and numpy is not None and issubclass(kind, (numpy.integer, numpy.floating, numpy.bool_)):
        read = float
    return remember(_scalars, kind, (read, kind))[0]


# Metadata


MAX_ENTRIES: Final = 200
"""Of metadata, and of each list or dictionary inside."""
_SHORT: Final = 200  # characters of a text that is kept in any case
_MAX_METADATA: Final = 20_000  # characters of longer texts that are kept of one document's or request's metadata
_SMALL: Final = (
    200  # bytes of an entry, its name and its value, that counts for a queue's bytes as three other parts do
)
_DICT: Final = frozenset({id(dict)})
_SMALL_KINDS: Final = frozenset(map(id, (str, int, float, bool, type(None))))
_KEPT_AS_THEY_ARE: Final = (dt.date, decimal.Decimal, uuid.UUID)
_MAX_SEEN: Final = 10_000  # entries without a name that can be kept included
_MAX_NESTED: Final = 5
_chain = itertools.chain.from_iterable


def small_copies(several: Sequence[Any]) -> list[dict[str, Any]] | None:
    """Copies of metadata of which a record keeps everything, and which take up little, as most do; None if one is another.

    In loops of C: documents are read on the request path.
    """
    if not _DICT.issuperset(map(id, map(type, several))) or sum(map(len, several)) > MAX_ENTRIES * len(several):
        return None
    copies = list(map(dict.copy, several))
    names, values = list(_chain(copies)), list(_chain(map(dict.values, copies)))
    if not (_SMALL_KINDS.issuperset(map(id, map(type, values))) and _TEXT.issuperset(map(type, names))):
        return None
    return copies if len("".join(names)) + sum(map(sys.getsizeof, values)) <= _SMALL * len(names) else None


def small_entries(metadata: Any) -> dict[str, Any] | None:
    """As `small_copies`, of one."""
    copies = small_copies((metadata,))
    return None if copies is None else copies[0]


def kept_entries(  # noqa: C901
    metadata: Any, *, nested: bool = False, texts: dict[int, str] | None = None
) -> dict[str, Any]:
    """What a record keeps of the metadata of a document or a request: texts, numbers and truth values by their names.

    A text of up to 200 characters is kept, longer ones share 20,000: one that has more is cut there.

    Args:
        metadata: a dictionary; anything else has no entries.
        nested: lists and dictionaries of such values are kept as well, and dates, decimals and UUIDs.
        texts: gets the kept texts by their identity, but for those that take up little.
    """
    kept = small_entries(metadata)
    if kept is not None or not issubclass(type(metadata), dict):
        return kept or {}
    known = {} if texts is None else texts
    left, room = MAX_ENTRIES, _MAX_METADATA

    def kept_of(value: Any, depth: int) -> Any:
        nonlocal left, room
        kind = type(value)
        if depth <= _MAX_NESTED and (nested or not depth):
            if issubclass(kind, dict):
                taken = {}
                for key, item in list(islice(dict.items(value), _MAX_SEEN)):
                    name = text_of(key)
                    if name is not None and len(name) <= _SHORT and left > 0:
                        left -= 1
                        if (found := kept_of(item, depth + 1)) is not _ABSENT:
                            taken[name] = found
                return taken
            if issubclass(kind, (list, tuple)):
                items = (items_of(value) or [])[: max(0, left)]
                left -= len(items)
                return [one for item in items if (one := kept_of(item, depth + 1)) is not _ABSENT]
        if value is None or kind is bool or (nested and any(kind is one for one in _KEPT_AS_THEY_ARE)):
            return value
        text = text_of(value)
        if text is None:
            number = number_of(value) if issubclass(kind, (int, float)) else None
            return _ABSENT if number is None else number
        if len(text) > _SHORT:
            text = text[:room]
            room -= len(text)
        known[id(text)] = text
        return text

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
CUT = Opaque()
"""Stands for what is left out because the payload is too deep or too large."""
LONG_TEXT = Opaque()
"""Stands for a text that is too long to matter where it lies."""


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
        self.known: dict[int, tuple[Reader, type]] = {}
        """The readers of the exact types that were met, by identity; the type is kept, so that this stays its own."""
        self._in_steps = {id(kind): (kind, sign) for kind, sign in in_steps.items()}

    def take(self, value: Any, log: Any, *, whole: bool = True) -> Snapshot:
        """A snapshot for a request's log.

        Args:
            value: the payload.
            log: a request's, which notes the texts in it, and keeps the documents in it alive.
            whole: False where little but the documents matters: then long texts and dull lists are left out.
        """
        if type(value) is str and (whole or len(value) <= _MAX_TEXT_OF_STEP):  # as most are
            log.texts[id(value)] = value
            return value
        if type(value) is dict and 0 < len(value) <= _MAX_FIELDS:
            fields = value.copy()
            texts = fields.values()
            if (
                _TEXT.issuperset(map(type, texts))
                and _TEXT.issuperset(map(type, fields))
                and self._marks.isdisjoint(fields)
                and (whole or max(map(len, texts)) <= _MAX_TEXT_OF_STEP)
            ):
                log.texts.update(zip(map(id, texts), texts))  # noqa: B905  as many
                log.parts += 1 + len(fields)
                return fields
        elif not whole and (known := self._in_steps.get(id(type(value)))) is not None:
            log.parts += 1
            return known[1]
        copying = Copying(self, log, whole)
        snapshot = copying.copy(value)
        log.parts += copying.parts
        return snapshot

    def find(self, kind: type) -> tuple[Reader, type]:
        """The reader for a type that was not met before."""
        declared = dataclass_fields(kind)
        reader = None if declared is None else _reader_of_dataclass(declared)
        if class_name(kind) in self._hidden and reader is not None:
            inner = reader
            reader = lambda copying, value, depth: Hidden(inner(copying, value, depth))  # noqa: E731
        else:
            bases = bases_of(kind)
            by_base = (read for base, read in self._by_base if any(each is base for each in bases))
            scalar = None if _scalar_reader(kind) is None else _read_scalar
            reader = next(by_base, None) or scalar or reader or (lambda _, value, __: Opaque(id(value)))
        return remember(self.known, kind, (reader, kind))


class Copying:
    """Copies one payload; readers call it for what is inside."""

    __slots__ = ("_known", "_left", "_snapshots", "kept", "parts", "texts", "whole")

    def __init__(self, snapshots: Snapshots, log: Any, whole: bool) -> None:  # noqa: FBT001  made at most events
        self._snapshots = snapshots
        self._known = snapshots.known
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
            return (self._known.get(id(kind)) or self._snapshots.find(kind))[0](self, value, depth)
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
        if type(value) is not list and type(value) is not tuple:
            base = next(base for base in _LISTS if issubclass(type(value), base))
            value = list(islice(base.__iter__(value), _MAX_DOCUMENTS + 1))  # type: ignore[attr-defined]  # a collection
        # To copy very many takes the request's time.
        items = list(value) if len(value) <= _MAX_DOCUMENTS else [*value[:_MAX_DOCUMENTS], *value[-_TAIL:]]
        copies = self._copies(items[:_FEW], depth + 1)
        if copies:
            first = items[0]
            if id((items_of(first) or [None])[0] if is_list(first) else first) in self.kept:  # a document, with a score
                return copies + self._copies(items[_FEW:_MAX_DOCUMENTS], depth + 1)
        self._left -= len(copies)
        if len(items) <= _FEW:
            return copies
        if not self.whole:
            rest = [] if _DULL.issuperset(map(type, copies)) else items[_FEW:_MAX_ITEMS]
        elif len(items) <= _TAIL:
            rest = items[_FEW:]
        else:
            copies, rest = [CUT], items[-_TAIL:]
        self._left -= len(rest)
        return copies + self._copies(rest, depth + 1)

    def _copies(self, items: Sequence[Any], depth: int) -> list[Snapshot]:
        kept = self.kept
        self.parts += len(items)
        return [known[1] if (known := kept.get(id(item))) is not None else self.copy(item, depth) for item in items]


_DULL: Final = frozenset({str, int, float, bool, type(None), Opaque})


def _reader_of_dataclass(declared: Sequence[str]) -> Reader:
    def read(copying: Copying, value: Any, depth: int) -> Snapshot:
        own = fields_of(value)
        return copying.state({name: own[name] for name in declared if name in own}, depth)

    return read


def _read_scalar(copying: Copying, value: Any, _: int) -> Snapshot:
    plain = plain_scalar(value)
    if type(plain) is str:
        copying.texts[id(plain)] = plain
    return CUT if plain is None else plain


_COMMON: Final[Mapping[type, Reader]] = {
    type(None): lambda _, value, __: value,
    dict: Copying.fields,
    **dict.fromkeys(_LISTS, Copying.items),
}


# Sizes

PART_BYTES: Final = 64
"""Of a number, of a short text, or of an entry of a dictionary or list with what it takes there."""
EVENT_PARTS: Final = 4
"""An event of a log, its time and its keys, as parts."""
_names: dict[int, tuple[tuple[str, ...], type]] = {}


def size_of(value: Any, known: set[int] | None = None) -> int:
    """Bytes of memory of plain data: of a record, say, with all that it holds. A text that is there twice counts once."""
    known = set() if known is None else known
    kind = type(value)
    if kind is str or kind is bytes:
        if id(value) in known:
            return 0
        known.add(id(value))
        return sys.getsizeof(value)
    if kind is dict:
        return PART_BYTES + sum(PART_BYTES + size_of(key, known) + size_of(item, known) for key, item in value.items())
    if kind is tuple or kind is list:
        return sum([size_of(item, known) for item in value], PART_BYTES) if value else 0
    names = (_names.get(id(kind)) or remember(_names, kind, (_fields_of_record(kind), kind)))[0]
    if not names:
        return 0 if value is None or kind is bool else PART_BYTES
    if id(value) in known:  # a context is in a search and in the prompt
        return 0
    known.add(id(value))
    return sum([size_of(getattr(value, name), known) for name in names], PART_BYTES)


def _fields_of_record(kind: type) -> tuple[str, ...]:
    """The fields of the record's own dataclasses; objects of other classes are not entered."""
    modules = [text_of(own_of(base, "__module__")) or "" for base in bases_of(kind)]
    is_own = any(module.startswith(("ragspan.records", "ragspan.messages")) for module in modules)
    return (dataclass_fields(kind) or ()) if is_own else ()
