"""Attribute values that every exporter and backend can take.

The SDK keeps NaN and None and passes text on as it is; one lone surrogate then costs the attribute at encoding, with a
traceback in the application's log.
"""

from __future__ import annotations

import functools
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ragspan.telemetry.semconv import ERROR_TYPE_OTHER

AttributeValue: TypeAlias = str | bool | int | float | Sequence[str]

MAX_TEXT_CHARS = 8192
"""Longer text is cut: backends refuse whole batches for one oversized attribute."""
MAX_NAME_CHARS = 256
"""For names, ids and types, which have no reason to be long."""
MAX_ITEMS = 50
"""For lists of names."""

_INT64 = 2**63


def bounded(text: str, limit: int) -> str:
    """`text` in at most `limit` characters, the last an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def well_formed(text: str) -> str:
    """`text` with U+FFFD for what UTF-8 or a database cannot hold: lone surrogates and NUL."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            # Through UTF-16, so that two surrogates which make a character together become that character.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\ufffd") if "\0" in text else text


def named(text: str) -> str:
    """`text` as a name: bounded and well formed."""
    return well_formed(bounded(text, MAX_NAME_CHARS))


def error_type(kind: str | None) -> str:
    """The type of an error as a name, the conventions' stand-in where it is not known."""
    return named(kind) if kind else ERROR_TYPE_OTHER


def encodable(attributes: Mapping[str, object]) -> dict[str, AttributeValue]:
    """The attributes that can be exported, made so where it takes little; None, NaN and what has no form are left out."""
    return {_key(name): value for name, raw in attributes.items() if (value := _encodable_value(raw)) is not None}


_key = functools.lru_cache(maxsize=1024)(well_formed)
"""Keys come again with every record, and are few: the metrics' names are the only part that varies."""


def _encodable_value(value: object) -> AttributeValue | None:
    if value is None:
        return None
    if isinstance(value, str):
        return well_formed(bounded(value, MAX_TEXT_CHARS))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else None
    if isinstance(value, (list, tuple)):
        return tuple(named(item) for item in value[:MAX_ITEMS] if isinstance(item, str))
    if isinstance(value, numbers.Real):  # figures of retrievers may be NumPy's
        return number if math.isfinite(number := float(value)) else None
    return None
