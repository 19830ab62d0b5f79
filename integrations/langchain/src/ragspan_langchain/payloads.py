"""Reads what callbacks hand over, on the request path: references and small copies only, nothing of the user's consumed.

Payloads are the very objects that the program goes on using. So whatever must stay as it is now is copied here (never
text, only references to it), iterators are left alone, and no method of a payload is called that could run user code.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import numbers
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel

READABLE = (list, tuple, set, frozenset, deque)
"""Containers that can be read again and again; anything else may be an iterator that belongs to the program."""

_MAX_DEPTH = 6
_MAX_NODES = 1000
_TAIL = 200  # of a long list, the end holds the last messages
_MAX_DOCUMENTS = 2000

_ROLES = {
    "human": "human",
    "HumanMessageChunk": "human",
    "AIMessageChunk": "ai",
    "SystemMessageChunk": "system",
    "ToolMessageChunk": "tool",
    "user": "human",
    "ai": "ai",
    "assistant": "ai",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}


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
    """Stands for a value that is neither text nor data, or lies too deep."""

    def __repr__(self) -> str:
        return "OPAQUE"


OPAQUE = Opaque()
DOCUMENTS = Opaque()
"""Stands for a document: those are kept apart."""

Frozen: TypeAlias = Any
"""str, number, bool, None, `FrozenMessage`, `OPAQUE`, `DOCUMENTS`, or a list or dict of these."""


class Shape(enum.Enum):
    """What kind of payload a value is, as far as reading it goes."""

    PLAIN = "plain"
    MESSAGE = "message"
    PROMPT = "prompt"
    DOCUMENT = "document"
    FIELDS = "fields"
    ITEMS = "items"
    STATE = "state"
    OTHER = "other"


_shapes: dict[type, Shape] = {}
_MAX_SHAPES = 4096  # programs may make classes as they go


def shape_of(value: Any) -> Shape:
    """The shape of a value's type, looked up: `isinstance` with a pydantic class costs more than all the rest here."""
    kind = type(value)
    shape = _shapes.get(kind)
    if shape is None:
        if len(_shapes) >= _MAX_SHAPES:
            _shapes.clear()
        shape = _shapes[kind] = _shape(kind)
    return shape


def _shape(kind: type) -> Shape:
    if issubclass(kind, (str, bytes, int, float, type(None))):
        return Shape.PLAIN
    for base, shape in (
        (BaseMessage, Shape.MESSAGE),
        (PromptValue, Shape.PROMPT),
        (Document, Shape.DOCUMENT),
        (dict, Shape.FIELDS),
        (READABLE, Shape.ITEMS),
        (BaseModel, Shape.STATE),
    ):
        if issubclass(kind, base):
            return shape
    return Shape.STATE if dataclasses.is_dataclass(kind) else Shape.OTHER


def freeze(value: Any) -> Frozen:
    """A copy of a payload's structure that shares its texts, bounded in depth and size."""
    return _Freezer().freeze(value, 0)


class _Freezer:
    def __init__(self) -> None:
        self._nodes = 0

    def freeze(self, value: Any, depth: int) -> Frozen:
        self._nodes += 1
        if isinstance(value, (str, int, float)) or value is None:
            return _freeze_plain(value)
        if depth > _MAX_DEPTH or self._nodes > _MAX_NODES:
            return OPAQUE
        shape = shape_of(value)
        if shape is Shape.MESSAGE:
            return self._message(_role_of(value), value.content, getattr(value, "tool_calls", ()), depth)
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
        role = value.get("role", value.get("type"))
        if isinstance(role, str) and role.lower() in _ROLES and "content" in value:
            return self._message(_ROLES[role.lower()], value["content"], (), depth)
        return self._items(value, depth)

    def _items(self, value: dict[Any, Any], depth: int) -> dict[str, Frozen]:
        items = list(dict.items(value))[:_TAIL]
        return {key: self.freeze(item, depth + 1) for key, item in items if isinstance(key, str)}

    def _sequence(self, value: list[Any] | tuple[Any, ...], depth: int) -> Frozen:
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0].lower() in _ROLES:  # noqa: PLR2004  (role, content)
            return self._message(_ROLES[value[0].lower()], value[1], (), depth)
        return [self.freeze(item, depth + 1) for item in value[-_TAIL:]]

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


def state_of(value: Any) -> dict[str, Any]:
    """The fields of a pydantic model or a dataclass, as they are kept."""
    if isinstance(value, BaseModel):
        return value.__dict__
    return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}


def _role_of(message: BaseMessage) -> str:
    role = _ROLES.get(message.type)
    if role is None:
        kind = message.type.lower().removesuffix("messagechunk")
        role = _ROLES.get(str(getattr(message, "role", "")).lower() if kind == "chat" else kind, "human")
    return role


def content_text(content: Any) -> str:
    """The text of a message's content, without thinking, pictures and sound."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_block_texts(content, nested=False))
    return ""


def prompt_text(content: Any) -> str:
    """All text that a message's content shows to a model: also that of search results and documents within."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_block_texts(content, nested=True))
    return ""


def _block_texts(blocks: Any, *, nested: bool, depth: int = 0) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict):
            if isinstance(block.get("text"), str):
                yield block["text"]
            elif nested and depth < _MAX_DEPTH:
                yield from _nested_texts(block, depth + 1)


def _nested_texts(block: dict[Any, Any], depth: int) -> Iterator[str]:
    if block.get("type") in {"image", "image_url", "audio", "input_audio", "video", "base64"}:
        return
    for key in ("title", "content", "source", "data"):
        inner = block.get(key)
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, (list, dict)):
            yield from _block_texts([inner] if isinstance(inner, dict) else inner, nested=True, depth=depth)


class PromptPart(NamedTuple):
    """One message of a prompt, or all of a plain prompt."""

    role: str
    text: str


def prompt_parts(messages: Iterable[Any]) -> list[PromptPart]:
    """The parts of a chat prompt, or of a plain one."""
    parts = []
    for message in messages:
        if isinstance(message, str):
            parts.append(PromptPart("human", message))
        elif shape_of(message) is Shape.MESSAGE:
            parts.append(PromptPart(_role_of(message), prompt_text(message.content)))
    return parts


# Documents


def is_document(value: Any) -> bool:
    """A document, or the dictionary that one becomes when a checkpoint is read back."""
    shape = shape_of(value)
    return shape is Shape.DOCUMENT or (shape is Shape.FIELDS and isinstance(value.get("page_content"), str))


def text_of(document: Any) -> str | None:
    """The document's text as it is now."""
    text = document.get("page_content") if isinstance(document, dict) else getattr(document, "page_content", None)
    return text if isinstance(text, str) else None


def id_and_metadata_of(document: Any) -> tuple[str | None, Mapping[str, Any]]:
    """The document's id, and a copy of its metadata, so that later changes are not seen; the values are shared."""
    if isinstance(document, dict):
        own, metadata = document.get("id"), document.get("metadata")
    else:
        own, metadata = getattr(document, "id", None), getattr(document, "metadata", None)
    return own if isinstance(own, str) else None, dict(metadata) if isinstance(metadata, dict) else {}


Found: TypeAlias = list[tuple[Any, float | None]]
"""Documents, each with its score where it came with one."""

_NONE: list[Found] = []


def documents_in(value: Any, depth: int = 0) -> list[Found]:
    """The documents in a payload, list by list: inside dictionaries, states and `(document, score)` pairs.

    Messages are not entered: what they carry may be the history of earlier turns.
    """
    shape = shape_of(value)
    if shape is Shape.PLAIN or shape is Shape.MESSAGE or shape is Shape.PROMPT or depth > _MAX_DEPTH:
        return _NONE
    if shape is Shape.ITEMS:
        return _documents_in_items(value, depth)
    if is_document(value):
        return [[(value, None)]]
    if shape is Shape.OTHER:
        return _NONE
    fields = list(dict.values(value if shape is Shape.FIELDS else state_of(value)))[:_TAIL]
    deeper = [item for item in fields if shape_of(item) is not Shape.PLAIN]
    return [found for item in deeper for found in documents_in(item, depth + 1)] if deeper else _NONE


def _documents_in_items(value: Iterable[Any], depth: int) -> list[Found]:
    own: Found = []
    others: list[Found] = []
    for count, item in enumerate(value):
        pair = scored_document(item)
        if pair is not None:
            own.append(pair)
        elif shape_of(item) in _CONTAINERS:
            others += documents_in(item, depth + 1)
        elif count >= 3 and not own and not others:  # noqa: PLR2004  a list of numbers or texts is not worth reading on
            break
        if count >= _MAX_DOCUMENTS:
            break
    return [own, *others] if own else others


_CONTAINERS = {Shape.FIELDS, Shape.ITEMS, Shape.STATE}


def scored_document(item: Any) -> tuple[Any, float | None] | None:
    """A document, alone or as `(document, score)`."""
    if is_document(item):
        return item, None
    if isinstance(item, (tuple, list)) and len(item) == 2 and is_document(item[0]):  # noqa: PLR2004  (document, score)
        score = item[1]
        return item[0], float(score) if isinstance(score, numbers.Real) else None
    return None


def documents_of_tools(messages: Iterable[Any]) -> tuple[list[Found], bool]:
    """The documents that a conversation's tool messages carry beside their text.

    Those after the user's last words are of the current request; of earlier ones, which are history, it is only told
    whether there are any.
    """
    current: list[Found] = []
    is_current, carried = True, False
    for message in reversed(list(messages)):
        kind = getattr(message, "type", None)
        if kind == "human":
            is_current = False
        elif kind == "tool":
            found = documents_in(getattr(message, "artifact", None))
            if is_current:
                current = [*found, *current]
            else:
                carried = carried or bool(found)
    return current, carried


def found_nothing(outputs: Any) -> bool:
    """Whether a step gave an empty list for a result, as a whole or in a field that is not about messages."""
    if isinstance(outputs, READABLE):
        return len(outputs) == 0
    if not isinstance(outputs, dict):
        return False
    empty = [key for key, value in dict.items(outputs) if isinstance(value, (list, tuple)) and len(value) == 0]
    return any(isinstance(key, str) and not key.endswith(("messages", "history")) for key in empty)


def tool_messages(output: Any) -> list[Any]:
    """The messages in a tool's output: itself, or those of the state update that a command carries."""
    update = getattr(output, "update", None)
    if isinstance(update, dict) and not isinstance(output, dict):
        messages = update.get("messages")
        return messages if isinstance(messages, list) else []
    return output if isinstance(output, list) else [output]
