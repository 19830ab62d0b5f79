"""What stands in a table's cells, as records need it.

Tables have many ways to say that nothing is there: None, NaN, pandas' NA and NaT. Here all of them are None.
"""

from __future__ import annotations

import datetime as dt
import json
import numbers
import re
from collections.abc import Mapping
from typing import Any

from ragspan.records import SpanAnchor, plain_entries

_MISSING_TYPES = frozenset({"NAType", "NaTType"})  # pandas' own, known by name: it is not imported here
_HEX_TRACE = 32  # digits
_HEX_SPAN = 16
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MAX_NS = 2**63 - 1
_MAX_DIGITS = len(str(_MAX_NS))


class CellError(ValueError):
    """A cell holds what a record cannot; the message says what, and quotes nothing of it."""


def is_missing(cell: object) -> bool:
    """Whether the cell says that there is nothing."""
    if cell is None or type(cell).__name__ in _MISSING_TYPES:
        return True
    return isinstance(cell, numbers.Real) and bool(cell != cell)  # noqa: PLR0124 - so is NaN; `isnan` fails on huge integers


def text_of(cell: object) -> str | None:
    """A text, or a number as text.

    Raises:
        CellError: it is something else.
    """
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, (bool, numbers.Number)):
        try:
            return str(cell)
        except ValueError:
            raise CellError("is a number of too many digits") from None
    raise CellError(f"is {kind_of(cell)}, but should be text")


def identifier_of(cell: object) -> str | None:
    """As `text_of`; a blank text, and what is no text, identifies nothing."""
    try:
        text = text_of(cell)
    except CellError:
        return str(cell) if type(cell).__name__ == "UUID" else None
    return text if text and text.strip() else None


def metadata_of(cell: object) -> dict[str, Any]:
    """The plain entries of a dictionary, or of the JSON text of one; empty for anything else."""
    if isinstance(cell, str):
        cell = json_of(cell)
    return plain_entries(cell) if isinstance(cell, Mapping) else {}


def json_of(text: str) -> Any:
    """What the JSON text holds; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def span_of(trace_id: object, span_id: object) -> SpanAnchor | None:
    """The span that the two ids name, both in hexadecimal digits as W3C trace contexts have them; None if both are missing.

    Raises:
        CellError: one of them is not what it should be.
    """
    trace, span = identifier_of(trace_id), identifier_of(span_id)
    if trace is None and span is None:
        return None
    return SpanAnchor(
        trace_id=_hexadecimal("trace id", trace, _HEX_TRACE),
        span_id=_hexadecimal("span id", span, _HEX_SPAN),
        is_remote=True,
    )


def nanoseconds_of(cell: object) -> int | None:
    """A time as Unix nanoseconds: such a number, a date and time, or its ISO 8601 text. Without a zone it is UTC.

    Raises:
        CellError: it is no time.
    """
    if is_missing(cell) or (isinstance(cell, str) and not cell.strip()):  # a CSV file has no other way to say nothing
        return None
    if isinstance(cell, str):
        cell = _parsed_time(cell.strip())
    if isinstance(cell, dt.datetime):
        moment = cell if cell.tzinfo is not None else cell.replace(tzinfo=dt.timezone.utc)
        cell = (moment - _EPOCH) // dt.timedelta(microseconds=1) * 1000
    if isinstance(cell, numbers.Integral) and not is_flag(cell) and 0 <= int(cell) <= _MAX_NS:
        return int(cell)
    raise CellError("is no time: give ISO 8601 text or Unix nanoseconds")


def is_flag(cell: object) -> bool:
    """Whether it is true or false, which Python takes for numbers."""
    return isinstance(cell, bool)


def kind_of(cell: object) -> str:
    """What a cell is, in words."""
    if is_missing(cell):
        return "empty"
    names = {dict: "an object", list: "a list", tuple: "a list", bytes: "bytes", bool: "true or false"}
    return names.get(type(cell), f"a {type(cell).__name__}")


def _hexadecimal(name: str, digits: str | None, length: int) -> int:
    is_whole = digits is not None and re.fullmatch(f"[0-9a-fA-F]{{{length}}}", digits) is not None
    number = int(digits, 16) if digits is not None and is_whole else 0
    if not number:
        raise CellError(f"has a {name} that is not {length} hexadecimal digits, or zero")
    return number


def _parsed_time(text: str) -> object:
    if text.isdecimal() and len(text) <= _MAX_DIGITS:  # Python refuses to read thousands of them
        return int(text)
    try:
        # Python 3.10 does not know the Z.
        return dt.datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in {"Z", "z"} else text)
    except ValueError:
        return None
