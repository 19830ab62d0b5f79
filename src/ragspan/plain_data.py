"""Reads what the program's objects hold without running any of its code, on the request path and in the worker.

Plain data are texts, numbers, dates, dictionaries, lists and the like, and the attributes that an object keeps in its dictionary
or in plain slots. Everything else is opaque. So nothing here may call what a class of the program's can define: no `getattr`, no
`isinstance` (it asks `__class__`), no `==`, `hash`, `bool`, `len`, `str` or iteration of an object whose class is not known. What
is asked is the exact type, which nobody can hide. Of a subclass of a builtin the base class's own methods are called.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import fractions
import gc
import itertools
import sys
import types
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar

_T = TypeVar("_T")
_MRO: Final[Callable[[type], tuple[type, ...]]] = type.__dict__["__mro__"].__get__
_CLASS_DICT: Final[Callable[[type], Mapping[str, Any]]] = type.__dict__["__dict__"].__get__
_FLAGS: Final[Callable[[type], int]] = type.__dict__["__flags__"].__get__
_NAME: Final[Callable[[type], str]] = type.__dict__["__name__"].__get__
_MAX_CLASSES = 4096  # programs may make classes as they go
_MADE_IN_PYTHON = 1 << 9  # the flag of such classes
_MAX_BITS = 1024  # of an integer: it is no larger than a float may be, and takes little memory
_ABSENT: Final = object()
_NO_FIELDS: Final[dict[str, Any]] = {}


# Classes


def bases_of(kind: type) -> tuple[type, ...]:
    """The class and all of its bases."""
    return _MRO(kind)


def derives_from(kind: type, base: type) -> bool:
    """Whether a class is the other or below it, whatever its metaclass says."""
    return any(each is base for each in _MRO(kind))


def class_name(kind: type) -> str:
    """The name of a class, which nobody has overridden."""
    return _NAME(kind)


def own_of(kind: type, name: str) -> Any:
    """What the class itself has under this name, unbound; None if it has nothing of its own."""
    return _CLASS_DICT(kind).get(name)


def in_class(kind: type, name: str) -> Any:
    """What the class itself, or the nearest of its bases, has under this name, unbound; None if there is nothing."""
    for base in _MRO(kind):
        found = _CLASS_DICT(base).get(name, _ABSENT)
        if found is not _ABSENT:
            return found
    return None


def dataclass_fields(kind: type) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None for any other class."""
    declared = in_class(kind, "__dataclass_fields__")
    return tuple(name for name in declared if type(name) is str) if type(declared) is dict else None


# Objects


class _Layout(NamedTuple):
    fields: Callable[[Any], Any]
    """Reads the dictionary of an object, or what is in its slots as well."""
    dictionary: Callable[[Any], Any] | None
    slots: Mapping[str, Callable[[Any], Any]]
    """Also those with names such as `__pydantic_extra__`."""
    is_plain: bool
    """What `has_plain_dict` says."""
    kind: type
    """Keeps the class alive, so that its identity stays its own."""


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
    dictionary = None
    found: dict[str, Any] = {}
    for base in _MRO(kind):
        own = _CLASS_DICT(base)
        entry = own.get("__dict__")
        if type(entry) is types.GetSetDescriptorType or type(entry) is types.MemberDescriptorType:
            dictionary = dictionary or entry.__get__
        if _FLAGS(base) & _MADE_IN_PYTHON:
            found = {**own, **found}  # a property below a slot hides it
    slots = {name: entry.__get__ for name, entry in found.items() if type(entry) is types.MemberDescriptorType}
    read = _no_fields if dictionary is None else dictionary
    plain = [(name, held) for name, held in slots.items() if not name.startswith("__")]
    getting = in_class(kind, "__getattribute__") is object.__getattribute__
    is_plain = getting and not plain and type(in_class(kind, "__dict__")) is types.GetSetDescriptorType
    layout = _Layout(_reader_of_slots(plain, read) if plain else read, dictionary, slots, is_plain, kind)
    return remember(_layouts, kind, layout)


def has_plain_dict(kind: type) -> bool:
    """Whether all that `fields_of` finds in objects of this class is in their `__dict__`, which may be asked for: no code runs.

    Where many of them are read, that takes half of the time. It is a dictionary, if not always a plain one.
    """
    return (_layouts.get(id(kind)) or _look_up(kind)).is_plain


def _no_fields(_: Any) -> dict[str, Any]:
    return _NO_FIELDS


def _reader_of_slots(
    slots: Iterable[tuple[str, Callable[[Any], Any]]], dictionary: Callable[[Any], Any]
) -> Callable[[Any], dict[str, Any]]:
    def read(value: Any) -> dict[str, Any]:
        fields = {name: held for name, in_slot in slots if (held := _held(in_slot, value)) is not _ABSENT}
        own = dictionary(value)
        return {**fields, **text_keyed(own)} if issubclass(type(own), dict) else fields

    return read


def remember(table: dict[int, _T], kind: type, known: _T) -> _T:
    """Note what is known of a class in a table by the identities of classes, which holds the class itself too."""
    if len(table) >= _MAX_CLASSES:
        table.clear()
    table[id(kind)] = known
    return known


def replace_field(value: Any, name: str, new: Any) -> bool:
    """Replace an attribute where the object keeps it, in its dictionary; False if it is not there."""
    layout = _layouts.get(id(type(value))) or _look_up(type(value))
    own = None if layout.dictionary is None else layout.dictionary(value)
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


def text_keyed(mapping: dict[Any, Any]) -> dict[str, Any]:
    """The entries of a dictionary whose keys are texts. Keys of the program's own classes may compare as they like."""
    if type(mapping) is dict:
        for key in mapping:
            if type(key) is not str:
                break
        else:
            return mapping
    return {
        key if type(key) is str else str.__str__(key): item
        for key, item in list(dict.items(mapping))
        if issubclass(type(key), str)
    }


def is_dict(value: Any) -> bool:
    return issubclass(type(value), dict)


def dict_in(value: Any) -> dict[Any, Any] | None:
    """The dictionary that this is, or that it is a read-only view of; None for anything else."""
    if type(value) is types.MappingProxyType:
        value = gc.get_referents(value)[0]  # its methods may be those of a mapping of the program's own
    return value if issubclass(type(value), dict) else None


def is_list(value: Any) -> bool:
    """Whether it is a list or a tuple."""
    return issubclass(type(value), (list, tuple))


_ITERATORS: Final[Mapping[type, Callable[[Any], Iterator[Any]]]] = {
    kind: kind.__iter__ for kind in (list, tuple, deque, set, frozenset, dict)
}
_ONE_SHOT: Final[tuple[type, ...]] = (
    *(types.GeneratorType, map, filter, zip, enumerate, reversed, itertools.chain, itertools.islice),
    *(type(iter([])), type(iter(())), type({}.keys()), type({}.values()), type(iter({}.values()))),
)


def items_of(value: Any) -> list[Any] | None:
    """The items of a list, tuple, set or deque, by its base class's own method; None for anything else."""
    kind = type(value)
    if kind is list or kind is tuple:
        return list(value)
    if value is None:
        return None
    for base, iterate in _ITERATORS.items():
        if issubclass(kind, base) and base is not dict:
            return list(iterate(value))
    return None


def given_items(value: Any, most: int = sys.maxsize) -> list[Any] | None:
    """At most `most` items of what the program hands over, a generator included; None for what `items_of` cannot read."""
    items = items_of(value)
    if items is not None:
        return items[:most]
    return list(itertools.islice(value, most)) if any(type(value) is kind for kind in _ONE_SHOT) else None


# Texts and numbers


def text_of(value: Any) -> str | None:
    """The text that this is, without a class of the program's own; None for anything else."""
    if type(value) is str:
        return value
    return str.__str__(value) if issubclass(type(value), str) else None


def number_of(value: Any) -> int | float | None:
    """The number that this is, as Python's own; None for anything else, also for truth values."""
    kind = type(value)
    if kind is float or (kind is int and value.bit_length() < _MAX_BITS):
        return value  # type: ignore[no-any-return]
    if kind is bool or value is None or kind is str:
        return None
    read = (_scalars.get(id(kind)) or remember(_scalars, kind, (_scalar_reader(kind), kind)))[0]
    found = None if read is None else read(value)
    return found if type(found) is float or type(found) is int else None


def _read_int(value: Any) -> Any:
    number = int.__int__(value)
    return number if number.bit_length() < _MAX_BITS else None


def _read_fraction(value: Any) -> Any:
    fields = fields_of(value)
    return int.__int__(fields["_numerator"]) / int.__int__(fields["_denominator"])


def _read_datetime(value: Any) -> str:
    zone: Any = dt.datetime.tzinfo.__get__(value)
    known = (
        type(None),
        dt.timezone,
        vars(sys.modules["zoneinfo"]).get("ZoneInfo") if "zoneinfo" in sys.modules else None,
    )
    # Zones ask the value: that of a class of the program's own would answer by its own methods.
    parts = [part.__get__(value) for part in (dt.date.year, dt.date.month, dt.date.day, *_CLOCK)]
    kept = zone if any(type(zone) is kind for kind in known) else None
    plain = dt.datetime(*parts)  # noqa: DTZ001  the zone comes next
    return plain.replace(tzinfo=kept, fold=dt.datetime.fold.__get__(value)).isoformat()


_CLOCK = (dt.datetime.hour, dt.datetime.minute, dt.datetime.second, dt.datetime.microsecond)


def _read_uuid(value: Any) -> str:
    return str(uuid.UUID(int=int.__int__(fields_of(value)["int"])))


def _read_enum(value: Any) -> Any:
    return plain_scalar(fields_of(value).get("_value_"))


_SCALARS: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (enum.Enum, _read_enum),
    (str, str.__str__),
    (bool, bool),
    (int, _read_int),
    (float, float.__float__),
    (fractions.Fraction, _read_fraction),
    (dt.datetime, _read_datetime),
    (dt.date, dt.date.isoformat),
    (uuid.UUID, _read_uuid),
    (decimal.Decimal, decimal.Decimal.__str__),
)
"""How to make a text or number of a value of this class or below it."""


_scalars: dict[int, tuple[Callable[[Any], Any] | None, type]] = {}  # by the class's identity, as above


def scalar_reader(kind: type) -> Callable[[Any], Any] | None:
    """How to make plain what is one text, number or date; None for other classes."""
    return (_scalars.get(id(kind)) or remember(_scalars, kind, (_scalar_reader(kind), kind)))[0]


def _scalar_reader(kind: type) -> Callable[[Any], Any] | None:
    for base, read in _SCALARS:
        if derives_from(kind, base):
            return read
    if kind is dt.time:
        return lambda value: value.isoformat() if value.tzinfo is None else None
    if "numpy" in sys.modules and not _FLAGS(kind) & _MADE_IN_PYTHON:
        of_numpy = [vars(sys.modules["numpy"]).get(name) for name in ("integer", "floating", "bool_")]
        if any(type(base) is type and derives_from(kind, base) for base in of_numpy):
            return float
    return None


def plain_scalar(value: Any) -> str | int | float | bool | None:
    """A text, number or truth value as Python's own, a date or identifier as text; None for anything else."""
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is float:
        return value  # type: ignore[no-any-return]
    if kind is int:
        return value if value.bit_length() < _MAX_BITS else None
    try:
        read = scalar_reader(kind)
        return None if read is None else read(value)
    except Exception:  # noqa: BLE001  numbers of other libraries
        return None


def texts_among(items: Iterable[Any]) -> tuple[str, ...]:
    """Those of these that are texts."""
    found = [item if type(item) is str else text_of(item) for item in items]
    return tuple([text for text in found if text is not None])
