"""Writes records as JSON, and reads those that other processes wrote, up to a number of bytes."""

from __future__ import annotations

import contextlib
import functools
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ragspan.exceptions import RecordError
from ragspan.safe_copy import class_name, dataclass_fields, dict_in, fields_of, items_of, plain_scalar, text_keyed

if TYPE_CHECKING:
    import msgspec

_T = TypeVar("_T")

MAX_JSON = 4 * 1024 * 1024
"""Bytes of a record's JSON, or characters of a text. Reading as much takes some tens of megabytes."""
MAX_CONTEXTS = 10_000
"""Contexts, background, evidence, results of searches, and input and output of rerankers, together."""
MAX_STEPS = 1_000
"""Searches, rerankings, and calls of tools and models, together. Each becomes a span."""
_MAX_DEPTH = 20  # of lists and dictionaries in metadata


def check(what: str, number: int, most: int) -> None:
    """Raise a `RecordError` for a record that exceeds a limit."""
    if number > most:
        raise RecordError(f"a record has {most} {what} at most, but this one has more")


def read_as(kind: type[_T], text: str | bytes) -> _T:
    """The record of this type that `write_json` wrote; unknown fields are ignored.

    Raises:
        RecordError: it is not such a record, or is too large. The message names the field, and contains nothing of its value.
    """
    import msgspec

    check("bytes of JSON", len(text), MAX_JSON)
    try:
        return cast("_T", _decoder(cast("Any", kind)).decode(text))
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RecordError(f"this JSON is not a record: {error}") from None


@functools.cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    import msgspec

    return msgspec.json.Decoder(kind)


def write_json(value: Any) -> str:
    """The value as JSON text. What JSON does not have becomes the name of its type, half of a surrogate pair U+FFFD."""
    with contextlib.suppress(TypeError, ValueError, RecursionError):  # half of a pair, a huge number, a deep list
        return _encoder().encode(value).decode()
    return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace").decode()


@functools.cache
def _encoder() -> msgspec.json.Encoder:
    import msgspec

    return msgspec.json.Encoder(enc_hook=plain)


def plain_entries(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """The entries of a framework's metadata that are one text, number or truth value, so that every form of a record can hold them."""
    entries = text_keyed(dict_in(metadata) or {}).items()
    return {key: plain(value) for key, value in entries if value is None or issubclass(type(value), _SCALARS)}


_SCALARS = (str, int, float)


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
    if issubclass(kind, (list, tuple)):
        return [plain(item, depth + 1) for item in items_of(value) or ()]
    declared = dataclass_fields(kind)
    if declared is None:
        return class_name(kind)
    own = fields_of(value)
    return {name: plain(own[name], depth + 1) for name in declared if name in own}
