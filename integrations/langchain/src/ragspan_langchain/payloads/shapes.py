"""What kinds of payload there are, as far as reading them goes."""

from __future__ import annotations

import dataclasses
import enum
from collections import deque
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel

READABLE = (list, tuple, set, frozenset, deque)
"""Containers that can be read again and again; anything else may be an iterator that belongs to the program."""


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


def state_of(value: Any) -> dict[str, Any]:
    """The fields of a pydantic model or a dataclass, as they are kept."""
    if isinstance(value, BaseModel):
        return value.__dict__
    return {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
