"""Copies of payloads as they were when they passed by: the structure is copied, the texts are shared."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from typing import Any, TypeAlias

from ragspan_langchain.payloads.documents import is_document
from ragspan_langchain.payloads.messages import ROLES, content_text, role_of
from ragspan_langchain.payloads.shapes import Shape, shape_of, state_of

_MAX_DEPTH = 50
_MAX_NODES = 1000
_TAIL = 200  # of a long list, the end holds the last messages


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class FrozenMessage:
    """A chat message as it was when it passed by."""

    role: str
    """human, ai, system or tool."""
    text: str
    calls: Any = ()
    """The arguments of its tool calls, frozen."""


class FrozenObject(dict[str, Any]):
    """The fields of a model or dataclass: an answer in a form of the program's own, not a state with an answer in it."""


class Opaque:
    """Stands for a value that is neither text nor data."""

    def __repr__(self) -> str:
        return "OPAQUE"


OPAQUE = Opaque()
DOCUMENTS = Opaque()
"""Stands for a document: those are kept apart."""
CUT = Opaque()
"""Stands for what is left out because the payload is too deep or too large."""


class FrozenCall(Opaque):
    """A model's call of a tool: its words, not the user's."""

    def __init__(self, arguments: Any) -> None:
        self.arguments = arguments


Frozen: TypeAlias = Any
"""str, number, bool, None, `FrozenMessage`, an `Opaque`, or a list or dict of these."""


def freeze(value: Any) -> Frozen:
    """A copy of a payload's structure that shares its texts, bounded in depth and size."""
    return value if type(value) is str else _Freezer().freeze(value, 0)


def output_of(value: Any) -> Any:
    """What a call returned. The client of a remote program hands over all events of a stream: the last one has the output."""
    if type(value) is list and value and type(value[-1]) is dict and "event" in value[-1]:
        data = value[-1].get("data")
        return data.get("output") if isinstance(data, dict) else None
    return value


class _Freezer:
    def __init__(self) -> None:
        self._nodes = 0

    def freeze(self, value: Any, depth: int) -> Frozen:
        self._nodes += 1
        if isinstance(value, (str, int, float)) or value is None:
            return _freeze_plain(value)
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            return CUT
        shape = shape_of(value)
        if shape is Shape.MESSAGE:
            return self._message(role_of(value), value.content, getattr(value, "tool_calls", ()), depth)
        if shape is Shape.FIELDS:
            return self._mapping(value, depth)
        if isinstance(value, (list, tuple)):
            return self._sequence(value, depth)
        return self._object(value, shape, depth)

    def _message(self, role: str, content: Any, calls: Any, depth: int) -> FrozenMessage:
        arguments = [call.get("args") for call in calls if isinstance(call, dict)] if calls else ()
        return FrozenMessage(role=role, text=content_text(content), calls=self.freeze(arguments, depth + 1))

    def _mapping(self, value: dict[Any, Any], depth: int) -> Frozen:
        if is_document(value):
            return DOCUMENTS
        if value.get("type") == "tool_call" and "args" in value:
            return FrozenCall(self.freeze(value["args"], depth + 1))
        role = value.get("role", value.get("type"))
        if isinstance(role, str) and role.lower() in ROLES and "content" in value:
            return self._message(ROLES[role.lower()], value["content"], (), depth)
        return self._items(value, depth)

    def _items(self, value: dict[Any, Any], depth: int) -> dict[str, Frozen]:
        items = list(dict.items(value))
        frozen = {key: self.freeze(item, depth + 1) for key, item in items[:_TAIL] if isinstance(key, str)}
        return frozen if len(items) <= _TAIL else {**frozen, "…": CUT}

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> Frozen:
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0].lower() in ROLES:  # noqa: PLR2004  (role, content)
            return self._message(ROLES[value[0].lower()], value[1], (), depth)
        frozen = [self.freeze(item, depth + 1) for item in value[-_TAIL:]]
        return frozen if len(value) <= _TAIL else [CUT, *frozen]

    def _object(self, value: Any, shape: Shape, depth: int) -> Frozen:
        if shape is Shape.DOCUMENT:
            return DOCUMENTS
        if shape is Shape.PROMPT:
            return self.freeze(value.to_messages(), depth + 1)
        if isinstance(value, enum.Enum):
            return self.freeze(value.value, depth + 1)
        if isinstance(value, (dt.date, dt.time)):
            return value.isoformat()
        if isinstance(value, (uuid.UUID, decimal.Decimal)):
            return str(value)
        if (
            shape is Shape.STATE and type(value).__name__ != "Command"
        ):  # LangGraph's steers a graph and holds no question
            return FrozenObject(self._items(state_of(value), depth))
        return OPAQUE


def _freeze_plain(value: object) -> Frozen:
    return value.value if isinstance(value, enum.Enum) else value  # string enums are texts, too
