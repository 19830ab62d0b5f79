"""Writes values as JSON, and reads JSON from other processes within limits.

The limits bound the cost of reading any text: a fraction of a second, and some tens of megabytes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

from ragspan import field_names
from ragspan.exceptions import ConfigurationError, RecordError
from ragspan.safe_copy import (
    class_name,
    dataclass_fields,
    dict_in,
    fields_of,
    is_dict,
    items_of,
    kept_entries,
    number_of,
    plain_scalar,
    text_keyed,
    text_of,
)

if TYPE_CHECKING:
    import msgspec

_T = TypeVar("_T")

MAX_JSON = 4 * 1024 * 1024
"""Bytes of a record's JSON, or characters of a text."""
MAX_VALUES = 100_000
"""Texts, numbers, lists and objects in a record."""
MAX_DEPTH = 32
"""Lists and objects inside each other; `RagRecord.to_json` writes at most 21."""
MAX_CONTEXTS = 10_000
"""Contexts, background, evidence, results of searches, and input and output of rerankers, together."""
MAX_STEPS = 1_000
"""Searches, rerankings, and calls of tools and models, together. Each becomes a span."""

_MAX_PLAIN_DEPTH = 20  # in the JSON that we write
_MAX_DIGITS = 300
"""Digits of a number. A longer one takes long to read, and may be too large for a float."""
_MAX_BITS = 990
"""Bits of an integer that we write: at most 299 digits and a sign."""


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        RecordError: it is not JSON in UTF-8, or exceeds the limits. The message contains nothing of the text.
    """
    check("bytes of JSON", len(text), MAX_JSON)
    try:
        text = text if isinstance(text, str) else text.decode()
        check("values", _count_values(text), MAX_VALUES)
        value = json.loads(text, parse_constant=_no_constant, parse_int=_integer, parse_float=_decimal)
    except RecordError:
        raise
    except (ValueError, RecursionError) as error:
        raise RecordError(f"a record should be JSON text: {error}") from None
    check("values inside each other", _depth(value), MAX_DEPTH)
    return value


def read_as(kind: type[_T], text: str | bytes, newer: Iterable[tuple[str, Any, str | None]]) -> _T:
    """The record of this type that `write_json` wrote; unknown fields are ignored.

    Args:
        kind: the type.
        text: the JSON.
        newer: fields whose words a newer release may have more of: name, `Literal`, and what a word that is not in it becomes.

    Raises:
        RecordError: as `read_json`, or it is not such a record. The message names the field, and contains nothing of its value.
    """
    import msgspec

    values = read_json(text)
    if isinstance(values, dict):
        background = values.get("background")
        for part in (values, *(background if isinstance(background, list) else ())):
            _replace_newer(part, newer)
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise RecordError(f"this JSON is not a record: {error}") from None


def _replace_newer(part: Any, newer: Iterable[tuple[str, Any, str | None]]) -> None:
    for name, known, instead in newer:
        if isinstance(part, dict) and isinstance(part.get(name), str) and part[name] not in get_args(known):
            part[name] = instead


def write_json(value: Any, *, metadata: Iterable[Mapping[Any, Any]]) -> str:
    """The value as JSON text.

    msgspec needs a tenth of the time, but writes some values in another form than `plain`. Only metadata can hold these.

    Args:
        value: dataclasses and their values.
        metadata: all metadata in it.
    """
    if all(map(_is_plain, metadata)):
        with contextlib.suppress(TypeError, ValueError, RecursionError):  # a lone surrogate, or another type
            return _encoder().encode(value).decode()
    return json.dumps(plain(value), separators=(",", ":"), allow_nan=False)


@functools.cache
def _encoder() -> msgspec.json.Encoder:
    import msgspec

    return msgspec.json.Encoder(enc_hook=_exact)


def _exact(value: object) -> str:
    """The text of an object of a framework's subclass of `str`."""
    if issubclass(type(value), str):
        return str.__str__(value)
    raise TypeError(class_name(type(value)))


def _is_plain(metadata: Mapping[Any, Any]) -> bool:
    """Whether every JSON writer writes the same."""
    return type(metadata) is dict and all(
        type(key) is str and (value is None or type(value) is str or type(value) is bool or _is_plain_number(value))
        for key, value in metadata.items()
    )


def _is_plain_number(value: object) -> bool:
    if type(value) is int:
        return value.bit_length() <= _MAX_BITS
    return type(value) is float and math.isfinite(value)


def check(what: str, number: int, most: int) -> None:
    """Refuse a record that exceeds a limit.

    Raises:
        RecordError: it does.
    """
    if number > most:
        raise RecordError(f"a record has {most} {what} at most, but this one has more")


def _count_values(text: str) -> int:
    """The number of values in the text, or a few more, without reading them.

    Each value but the first follows a comma or a bracket. Strings may contain these as well; they are left out only if the
    number would be too large.
    """
    number = _count_marks(text)
    if number <= MAX_VALUES:
        return number
    most = 4 * MAX_VALUES  # quotation marks: two of a value, and two of its name
    parts = text.replace("\\\\", "").replace('\\"', "").split('"', most)
    return _count_marks("".join(parts[::2])) if len(parts) <= most else most


def _count_marks(text: str) -> int:
    return sum(map(text.count, ",[{"))


def _depth(value: Any) -> int:
    """The number of lists and objects inside each other, up to one more than the limit."""
    depth = -1
    level: list[Any] = [[value]]
    while level and depth <= MAX_DEPTH:
        insides = [outer.values() if isinstance(outer, dict) else outer for outer in level]
        level = [inner for inside in insides for inner in inside if isinstance(inner, (dict, list))]
        depth += 1
    return depth


def _integer(digits: str) -> int:
    return int(_number(digits))


def _decimal(digits: str) -> float:
    return float(_number(digits))


def _number(digits: str) -> str:
    if len(digits) > _MAX_DIGITS:
        raise ValueError("a number has too many digits")
    return digits


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def plain_entries(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """The entries of a framework's metadata that are one text, number or truth value, so that every form of a record can hold them."""
    return {
        key: value if value is None or type(value) is str or type(value) is bool else _plain_scalar(value)
        for key, value in text_keyed(dict_in(metadata) or {}).items()
        if value is None or issubclass(type(value), (str, int, float))
    }


def context_fields(document: Any) -> dict[str, Any]:
    """The fields of a context that a text, a dictionary or a framework's object describes, by the names that tools use.

    Of an object the plain attributes are read, and no property.

    Raises:
        ConfigurationError: it has no text.
    """
    text = text_of(document)
    if text is not None:
        return {"text": text}
    if is_dict(document):
        return _fields_in(text_keyed(document))
    own = fields_of(document)
    inner = fields_of(own["node"]) if "node" in own else own  # a node with a score
    text = next((text for name in _TEXT_NAMES if (text := text_of(inner.get(name))) is not None), None)
    if text is None:
        text = text_of(fields_of(inner.get("text_resource")).get("text"))
    if text is None:
        raise ConfigurationError(
            f"a context is a text, or has one in page_content or text; this {class_name(type(document))} has none"
        )
    return {
        "text": text,
        "id": identifier(map(inner.get, _ID_NAMES)),
        "score": number_of(own.get("score")),
        "metadata": kept_entries(inner.get("metadata")),
    }


def _fields_in(document: Mapping[str, Any]) -> dict[str, Any]:
    text = next((text for key in field_names.TEXT if (text := text_of(document.get(key))) is not None), None)
    if text is None:
        raise ConfigurationError(
            f"a context that is a dictionary has a text under one of {', '.join(field_names.TEXT)}"
        )
    rank = document.get("rank")
    return {
        "text": text,
        "id": identifier(map(document.get, field_names.ID)),
        "rank": rank if type(rank) is int and rank >= 0 else None,
        "score": number_of(document.get("score")),
        "source": identifier(map(document.get, field_names.SOURCE)),
        "metadata": kept_entries(
            next((document[key] for key in field_names.METADATA if document.get(key) is not None), None)
        ),
    }


def finite(figure: Any) -> float | None:
    """The figure as a number; None if it is not a finite one."""
    number = number_of(figure)
    try:
        return float(number) if number is not None and math.isfinite(number) else None
    except OverflowError:
        return None


def identifier(candidates: Iterable[Any]) -> str | None:
    """The first that identifies something: a number, a UUID, a text that is not blank."""
    texts = (str(plain_scalar(one)) for one in candidates if issubclass(type(one), (str, int, uuid.UUID)))
    return next((name for name in texts if name.strip()), None)


_TEXT_NAMES = ("page_content", "text")
_ID_NAMES = ("id", "id_", "node_id")


def plain_metadata(metadata: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Metadata that somebody has written by hand, as plain data; itself if it is that already."""
    return metadata if _is_plain(metadata) else cast("dict[str, Any]", _plain(dict_in(metadata) or {}, 0, _own_scalar))


def plain(value: Any) -> Any:
    """The value in JSON's types. Other types, and values that are nested too deep, become the name of their type."""
    return _plain(value, 0, _plain_scalar)


def _plain(value: Any, depth: int, scalar: Callable[[Any], Any]) -> Any:
    kind = type(value)
    if depth > _MAX_PLAIN_DEPTH:
        return class_name(kind)
    if value is None or kind is str or kind is bool:
        return value
    if issubclass(kind, (str, int, float)):
        return scalar(value)
    inside = dict_in(value)
    if inside is not None:
        made: dict[str, Any] = {}
        for key, item in list(dict.items(inside)):
            made[unused_key(_key(key), made)] = _plain(item, depth + 1, scalar)
        return made
    if issubclass(kind, (list, tuple)):
        return [_plain(item, depth + 1, scalar) for item in items_of(value) or ()]
    declared = dataclass_fields(kind)
    if declared is None:
        return class_name(kind)
    own = fields_of(value)
    return {name: _plain(own[name], depth + 1, scalar) for name in declared if name in own}


def _own_scalar(value: str | float) -> str | float:
    """The text or number, of Python's own class."""
    if issubclass(type(value), str):
        return str.__str__(value)
    return int.__int__(value) if issubclass(type(value), int) else float.__float__(value)  # type: ignore[arg-type]


def unused_key(key: str, taken: Collection[str]) -> str:
    """The key, with a number after it if it is taken: keys that become equal must not lose an entry."""
    number, unused = len(taken), key
    while unused in taken:
        number += 1
        unused = f"{key} ({number})"
    return unused


def _plain_scalar(value: str | float) -> str | float:
    value = _own_scalar(value)  # an enum's own __str__ would give its name
    if type(value) is int:
        return value if value.bit_length() <= _MAX_BITS else "int"
    return value if type(value) is str or math.isfinite(value) else "float"  # type: ignore[arg-type]


def _key(key: object) -> str:
    if issubclass(type(key), str):
        return str.__str__(key)
    return str(plain(key)) if issubclass(type(key), (int, float)) else class_name(type(key))
