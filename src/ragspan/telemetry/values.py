"""Attribute values that every exporter and backend accepts, and no more of them than a span holds.

The SDK does not change text: one lone surrogate fails when the span is encoded, and the attribute is lost. A full span drops its
oldest attribute for each new one; ragspan leaves out the least important ones instead.
"""

from __future__ import annotations

import json
import math
import numbers
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

from opentelemetry.trace import Span

Attributes: TypeAlias = Mapping[str, object]
"""Attributes as they are written down here, before `encodable` makes them fit."""
AttributeValue: TypeAlias = str | bool | int | float | Sequence[str]

MAX_TEXT_CHARS = 8192
"""Longer text is cut: backends refuse whole batches for one oversized attribute."""
MAX_NAME_CHARS = 256
"""For names, ids and types."""
_MAX_ITEMS = 50  # of lists of names
_USUAL_LIMIT = 128  # of attributes in OpenTelemetry's specification, for spans whose own limit is not known
_INT64 = 2**63
_UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


def bounded(text: str, limit: int) -> str:
    """`text` in at most `limit` characters, the last an ellipsis where something was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def well_formed(text: str) -> str:
    """`text` with U+FFFD for what UTF-8 or a database cannot hold: lone surrogates and NUL."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Through UTF-16, because two surrogates may be one character.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\ufffd")


def legible(text: str) -> str:
    """The text for people, with U+FFFD for what a terminal would execute, or what would mislead a reader."""
    return _UNSHOWABLE.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def clean_name(text: str, limit: int = MAX_NAME_CHARS) -> str:
    """`text` in at most `limit` characters, well formed."""
    return well_formed(bounded(text, limit))


def error_type(kind: str | None) -> str:
    """The type of an error as a name; the conventions' `_OTHER` if it is not known."""
    return clean_name(kind) if kind else "_OTHER"


def encodable(attributes: Attributes) -> dict[str, AttributeValue]:
    """The attributes that can be exported, converted where necessary; None, NaN and other objects are left out."""
    return {name: value for name, raw in attributes.items() if (value := _encodable_value(raw)) is not None}


def _encodable_value(value: object) -> AttributeValue | None:
    match value:
        case str():
            return clean_name(value, MAX_TEXT_CHARS)
        case bool():
            return value
        case int():
            return value if -_INT64 <= value < _INT64 else None
        case list() | tuple():
            return tuple(clean_name(item) for item in value[:_MAX_ITEMS] if isinstance(item, str))
        case float() | numbers.Real():  # a retriever's scores may be NumPy's
            return number if math.isfinite(number := float(value)) else None
    return None


def json_list(items: list[Any]) -> str:
    """The items as a JSON list, and only as many of the first as one attribute holds: cut text would be no JSON."""
    while len(text := json.dumps(items)) > MAX_TEXT_CHARS:
        items = items[:-1]
    return text


def set_within_limit(span: Span, attributes: Attributes) -> None:
    """Set the first attributes, as many as the span has room for."""
    if span.is_recording():
        # None is in the API. The SDK's spans have their limits only in a private field; other spans get the default.
        limit = getattr(getattr(span, "_limits", None), "max_span_attributes", _USUAL_LIMIT)
        room = None if limit is None else max(0, limit - len(getattr(span, "attributes", None) or ()))
        span.set_attributes(dict(islice(encodable(attributes).items(), room)))
