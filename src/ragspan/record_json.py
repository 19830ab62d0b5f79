"""Writes records as JSON, and reads those that other processes wrote, up to a number of bytes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ragspan.exceptions import RecordError
from ragspan.safe_copy import (
    class_name,
    dataclass_fields,
    dict_in,
    fields_of,
    is_list,
    items_of,
    plain_scalar,
    text_keyed,
)

MAX_JSON = 4 * 1024 * 1024
"""Bytes of a record's JSON, or characters of a text. Reading as much takes some tens of megabytes."""
MAX_CONTEXTS = 10_000
"""Contexts or background that an answer by hand may have."""
_MAX_DEPTH = 20  # of lists and dictionaries in metadata
_SCALARS = (str, int, float)


def check_size(text: str | bytes) -> None:
    """Raise a `RecordError` for more JSON than a record may have."""
    if len(text) > MAX_JSON:
        raise RecordError(f"a record has {MAX_JSON} bytes of JSON at most, but this one has more")


def write_json(value: Any) -> str:
    """The value as JSON text. What JSON does not have becomes the name of its type, half of a surrogate pair U+FFFD."""
    import msgspec

    try:
        return msgspec.json.encode(value, enc_hook=plain).decode()
    except (TypeError, ValueError, RecursionError):  # half of a pair, a huge number, a deep list
        text = json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False)
        return text.encode("utf-8", "replace").decode()


def plain_entries(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """The entries of a framework's metadata that are one text, number or truth value, so that every form of a record can hold them."""
    entries = text_keyed(dict_in(metadata) or {}).items()
    return {key: plain(value) for key, value in entries if value is None or issubclass(type(value), _SCALARS)}


def plain(value: Any, depth: int = 0) -> Any:
    """The value in JSON's types. Other types, and values that are nested too deep, become the name of their type."""
    kind = type(value)
    if value is None or kind is str or kind is bool:
        return value
    if issubclass(kind, _SCALARS):
        found = plain_scalar(value)
        is_held = found is not None and not (type(found) is float and not math.isfinite(found))
        return found if is_held else ("int" if issubclass(kind, int) else "float")
    if depth > _MAX_DEPTH:
        return class_name(kind)
    inside = dict_in(value)
    if inside is not None:
        return {
            str(plain(key)) if issubclass(type(key), _SCALARS) else class_name(type(key)): plain(item, depth + 1)
            for key, item in list(dict.items(inside))
        }
    if is_list(value):
        return [plain(item, depth + 1) for item in items_of(value) or ()]
    own = fields_of(value)
    declared = dataclass_fields(kind)
    return class_name(kind) if declared is None else {key: plain(own[key], depth + 1) for key in declared if key in own}
