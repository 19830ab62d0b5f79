"""Reads single values of attributes: texts, numbers, JSON, and values that are spread over numbered attributes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Fields: TypeAlias = Mapping[str, Any]

_WRAPPERS = frozenset({"message", "message_content", "tool_call", "document"})
"""OpenInference repeats the kind of a value before each of its names."""
_MAX_INDEX = 100_000
_MAX_NAMES = 12  # in one attribute's name, between its dots
_CHUNKS = ("text_chunks", "context", "contexts", "passages")
_CALLED = frozenset({"args", "kwargs"})


def first_of(fields: Fields, names: Iterable[str]) -> Any:
    """The first of these fields that is there."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def text_of(fields: Fields, names: Iterable[str]) -> str | None:
    """The first of these fields that is a text."""
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), None)


def number(value: Any) -> float | None:
    try:
        return None if value is None or isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def json_of(value: Any) -> Any:
    """The data of an attribute that holds JSON; None if it holds none."""
    if not isinstance(value, str):
        return value if isinstance(value, (dict, list)) else None
    if value.lstrip()[:1] not in {"{", "[", '"'}:
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None


def fields_of(value: Any) -> dict[str, Any]:
    """The fields in an attribute; none if it holds something else."""
    data = json_of(value)
    return {key: item for key, item in data.items() if isinstance(key, str)} if isinstance(data, dict) else {}


def as_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return ""


def numbered(attributes: Fields, prefix: str) -> list[Any]:
    """The values of attributes named `prefix.0.name`, `prefix.1.name`: one mapping for each number, as deep as their names are."""
    start = f"{prefix}."
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        if not key.startswith(start):
            continue
        *path, last = [name for name in key[len(start) :].split(".", _MAX_NAMES) if name not in _WRAPPERS] or [""]
        inner: Any = found
        for name in path:
            inner = inner.setdefault(name, {}) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            inner.setdefault(last, value)
    return _listed(found) if found and isinstance(_listed(found), list) else []


def _listed(value: Any) -> Any:
    """A mapping whose names are all numbers as a list, and so all inside it."""
    if not isinstance(value, dict):
        return value
    inside = {key: _listed(item) for key, item in value.items()}
    are_numbers = all(key.isdecimal() and key.isascii() and int(key[:9]) < _MAX_INDEX for key in inside)
    return [inside[key] for key in sorted(inside, key=int)] if inside and are_numbers else inside


def arguments_in(data: Any) -> Any:
    """What a Python function was called with, if this is its `args` and `kwargs`: its only text, or its arguments."""
    if not isinstance(data, dict) or not data or not (data.keys() <= _CALLED or data.keys() >= _CALLED):
        return data
    named, others = data.get("kwargs"), data.get("args")
    only = others[0] if isinstance(others, list) and len(others) == 1 else None
    return only if isinstance(only, str) else named or only or others


def query_in(inputs: Any) -> str | None:
    """What was searched with: a text, or the field with such a name in what a search was called with."""
    if isinstance(inputs, dict):
        inner = inputs.get("query_bundle", inputs.get("str_or_query_bundle", inputs))
        inputs = inner.get("query_str", inner.get("query")) if isinstance(inner, dict) else inner
    return inputs if isinstance(inputs, str) else None


def chunks_in(inputs: Any) -> list[str]:
    """The documents that a step was given as texts, as the model sees them: by LlamaIndex's synthesizers and DSPy's modules."""
    lists = [inputs.get(key) for key in _CHUNKS] if isinstance(inputs, dict) else []
    return [chunk for chunks in lists if isinstance(chunks, list) for chunk in chunks if isinstance(chunk, str)]
