"""Writes values as JSON, and reads JSON from other processes within limits.

The limits bound the cost of reading any text: a fraction of a second, and some tens of megabytes.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from ragspan.exceptions import ConfigurationError, RecordError

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

_PLAIN_TYPES = (str, bool, type(None))
_PLAIN_ENTRIES = (str, bool, int, float)
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
        RecordError: as `read_json`, or it is no such record. The message names the field, and contains nothing of its value.
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
        raise RecordError(f"this JSON is no record: {error}") from None


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
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(type(value).__name__)


def _is_plain(metadata: Mapping[Any, Any]) -> bool:
    """Whether every JSON writer writes the same."""
    return type(metadata) is dict and all(
        type(key) is str and (type(value) in _PLAIN_TYPES or _is_plain_number(value)) for key, value in metadata.items()
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
    raise ValueError(f"{name} is no JSON")


def plain_entries(metadata: Mapping[Any, Any]) -> dict[str, Any]:
    """The entries of a framework's metadata that are plain data, so that every form of a record can hold them."""
    return {
        str.__str__(key): value if value is None or type(value) in _PLAIN_ENTRIES else _plain_scalar(value)
        for key, value in metadata.items()
        if isinstance(key, str) and (value is None or isinstance(value, (str, int, float, bool)))
    }


def context_fields(document: Any) -> dict[str, Any]:
    """The fields of a context that a text, a dictionary or a framework's object describes, by the names that tools use.

    Raises:
        ConfigurationError: it has no text.
    """
    if isinstance(document, str):
        return {"text": document}
    if isinstance(document, Mapping):
        return _fields_of(document)
    get_content = getattr(document, "get_content", None)
    text = getattr(document, "page_content", None)
    if not isinstance(text, str):
        text = get_content() if callable(get_content) else getattr(document, "text", None)
    if not isinstance(text, str):
        kind = type(document).__name__
        raise ConfigurationError(
            f"a context is a text, or has one in page_content, get_content() or text; this {kind} has none"
        )
    metadata = getattr(document, "metadata", None)
    return {
        "text": text,
        "id": identifier((getattr(document, "id", None), getattr(document, "node_id", None))),
        "metadata": metadata if isinstance(metadata, Mapping) else {},
    }


def _fields_of(document: Mapping[Any, Any]) -> dict[str, Any]:
    text = next((document[key] for key in _TEXT_KEYS if isinstance(document.get(key), str)), None)
    if text is None:
        raise ConfigurationError(f"a context that is a dictionary has a text under one of {', '.join(_TEXT_KEYS)}")
    metadata, score, rank = document.get("metadata"), document.get("score"), document.get("rank")
    return {
        "text": text,
        "id": identifier(map(document.get, _ID_KEYS)),
        "rank": rank if type(rank) is int and rank >= 0 else None,
        "score": score if isinstance(score, (int, float)) and not isinstance(score, bool) else None,
        "source": identifier(map(document.get, _SOURCE_KEYS)),
        "metadata": plain_entries(metadata) if isinstance(metadata, Mapping) else {},
    }


def finite(figure: Any) -> float | None:
    """The figure as a number; None if it is not a finite one."""
    try:
        number = float(figure)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def identifier(candidates: Iterable[Any]) -> str | None:
    """The first that identifies something: a number, a UUID, a text that is not blank."""
    told = (str(one) for one in candidates if isinstance(one, (str, int, uuid.UUID)))
    return next((name for name in told if name.strip()), None)


_TEXT_KEYS = ("text", "page_content", "content")
_ID_KEYS = ("id", "doc_id", "document_id", "chunk_id")
_SOURCE_KEYS = ("source", "url", "title")


def plain(value: Any, depth: int = 0) -> Any:
    """The value in JSON's types. Other types, and values that are nested too deep, become the name of their type."""
    if depth > _MAX_PLAIN_DEPTH:
        return type(value).__name__
    if type(value) in _PLAIN_TYPES:
        return value
    if isinstance(value, (str, int, float)):
        return _plain_scalar(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name), depth + 1) for item in fields(value)}
    if isinstance(value, Mapping):
        made: dict[str, Any] = {}
        for key, item in value.items():
            made[unused_key(_key(key), made)] = plain(item, depth + 1)
        return made
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    return type(value).__name__


def unused_key(key: str, taken: Collection[str]) -> str:
    """The key, with a number after it if it is taken: keys that become equal must not lose an entry."""
    number, unused = len(taken), key
    while unused in taken:
        number += 1
        unused = f"{key} ({number})"
    return unused


def _plain_scalar(value: str | float) -> str | float:
    if isinstance(value, str):
        return str.__str__(value)  # an enum's own __str__ would give its name
    if isinstance(value, int):
        return int(value) if value.bit_length() <= _MAX_BITS else "int"
    return float(value) if math.isfinite(value) else "float"


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    return str(plain(key)) if isinstance(key, (int, float)) else type(key).__name__
