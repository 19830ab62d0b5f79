"""Objects whose every attribute, operator and conversion is code of the program's: each run of it is counted."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

RUNS: Counter[str] = Counter()
"""What was run, by class and method."""


def _counted(name: str, result: Any) -> Any:
    def run(self, *_, **__):
        RUNS[f"{type(self).__mro__[0].__name__}.{name}"] += 1
        return result(self) if callable(result) else result

    return run


_OPERATORS = {
    "__eq__": False,
    "__ne__": True,
    "__hash__": 1,
    "__bool__": False,
    "__len__": 0,
    "__iter__": lambda _: iter(()),
    "__contains__": False,
    "__getitem__": None,
    "__str__": "text",
    "__repr__": "text",
    "__format__": "text",
    "__int__": 1,
    "__float__": 1.0,
    "__index__": 1,
    "__sizeof__": 1,
    "__copy__": None,
    "__deepcopy__": None,
    "__reduce__": None,
    "__reduce_ex__": None,
    "__dir__": [],
    "__call__": None,
}
_METHODS = (
    "items",
    "keys",
    "values",
    "get",
    "copy",
    "isoformat",
    "model_dump",
    "model_dump_json",
    "get_content",
    "to_messages",
)
OPERATORS = {name: _counted(name, result) for name, result in _OPERATORS.items()}
METHODS = {name: _counted(name, None) for name in _METHODS}


def _properties(*names: str) -> dict[str, Any]:
    return {name: property(_counted(name, "loaded")) for name in names}


def _refuse(self: Any, name: str) -> Any:
    RUNS[f"{type(self).__mro__[0].__name__}.__getattr__"] += 1
    raise AttributeError(name)


class _Attributes:
    def __getattribute__(self, name: str) -> Any:
        if name != "__class__" or type(self) is Liar:
            RUNS[f"{type(self).__name__}.__getattribute__ {name}"] += 1
        return object.__getattribute__(self, name)


class Descriptor:
    """A field that loads its value."""

    def __get__(self, owner: Any, _: Any) -> Any:
        if owner is not None:
            RUNS["Descriptor.__get__"] += 1
        return "default"

    def __set__(self, owner: Any, value: Any) -> None: ...


Everything = type("Everything", (), {**OPERATORS, **METHODS, "__getattr__": _refuse})
Watched = type("Watched", (_Attributes,), {})
Liar = type("Liar", (), {"__class__": property(_counted("__class__", dict)), "__getattr__": _refuse, **OPERATORS})
LyingDocument = type(
    "LyingDocument", (), _properties("page_content", "text", "metadata", "id", "content", "query_str", "blocks")
)
HiddenDict = type("HiddenDict", (), {"__dict__": property(_counted("__dict__", {}))})
Text = type("Text", (str,), {**OPERATORS, **METHODS, "lower": _counted("lower", "a"), "strip": _counted("strip", "a")})
Key = type(
    "Key", (str,), {"__eq__": _counted("__eq__", True), "__hash__": str.__hash__, "lower": _counted("lower", "a")}
)
Integer = type("Integer", (int,), {**OPERATORS, "bit_length": _counted("bit_length", 1)})
Real = type("Real", (float,), OPERATORS)
Fields = type("Fields", (dict,), {**{name: run for name, run in OPERATORS.items() if name != "__call__"}, **METHODS})
Items = type("Items", (list,), OPERATORS)
Pair = type("Pair", (tuple,), {"__slots__": (), **OPERATORS})
Members = type("Members", (set,), OPERATORS)
AbstractMapping = type("AbstractMapping", (Mapping,), {**OPERATORS, **METHODS})
AbstractSequence = type("AbstractSequence", (Sequence,), OPERATORS)


class Cached:
    @functools.cached_property
    def text(self) -> str:
        RUNS["Cached.text"] += 1
        return "loaded"


@dataclasses.dataclass
class LazyField:
    field: Any = Descriptor()


@dataclasses.dataclass
class WatchedRow(_Attributes):
    name: str = "a name"


class Slotted:
    __slots__ = ("text",)

    @property
    def metadata(self) -> Any:
        RUNS["Slotted.metadata"] += 1
        return {}


class Model(BaseModel, arbitrary_types_allowed=True):
    name: str = "a name"
    inner: Any = None

    @property
    def text(self) -> str:
        RUNS["Model.text"] += 1
        return "loaded"

    def model_dump_json(self, **_: Any) -> str:
        RUNS["Model.model_dump_json"] += 1
        return "{}"

    def __eq__(self, other: object) -> bool:
        RUNS["Model.__eq__"] += 1
        return self is other

    __hash__ = OPERATORS["__hash__"]


def numbers() -> Any:
    RUNS["numbers"] += 1
    yield 1


def hostile_objects() -> dict[str, Any]:
    """One object of each kind, by its name."""
    slotted = Slotted()
    slotted.text = "kept in a slot"
    return {
        "everything": Everything(),
        "watched": Watched(),
        "liar": Liar(),
        "document": LyingDocument(),
        "hidden dictionary": HiddenDict(),
        "text": Text("a text"),
        "keys": {
            Key("type"): 1,
            Key("page_content"): "text",
            Key("role"): "user",
            Key("content"): "text",
            Key("text"): "text",
        },
        "number": Integer(3),
        "real": Real(0.5),
        "fields": Fields(question="a text", page_content="a text", inner=Everything()),
        "items": Items(["a text", Everything()]),
        "pair": Pair(("user", Everything())),
        "members": Members({"a text"}),
        "mapping": AbstractMapping(),
        "sequence": AbstractSequence(),
        "cached": Cached(),
        "lazy field": LazyField(),
        "row": WatchedRow(),
        "slots": slotted,
        "model": Model(inner=Everything()),
        "generator": numbers(),
        "range": range(10**7),
        "class": Everything,
        "bytes": bytearray(1000),
    }
