"""What is in a table's cells, as records need it. None, NaN, pandas' NA and NaT, and the words for them, all become None."""

from __future__ import annotations

import ast
import datetime as dt
import json
import numbers
import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from ragspan.arguments import with_article
from ragspan.exceptions import ConfigurationError
from ragspan.labelled import BAD, GOOD, label_of
from ragspan.record_json import plain_entries
from ragspan.records import Background, BackgroundKind, RetrievedContext, SpanAnchor, as_contexts

_MISSING_TYPES = frozenset({"NAType", "NaTType"})  # pandas' own, known by name: it is not imported here
_MISSING_WORDS = frozenset(
    {
        *("nan", "NaN", "-nan", "-NaN", "<NA>", "NaT", "None", "null", "NULL", "Null", "NIL", "nil"),
        *("N/A", "n/a", "NA", "#N/A", "#NA", "#N/A N/A", "1.#IND", "1.#QNAN", "-1.#IND", "-1.#QNAN"),
    }
)
"""What programs write where there is nothing: `str` and `astype(str)`, databases, spreadsheets and R do."""
_LONGEST_WORD = max(map(len, _MISSING_WORDS))
_PRINTED = re.compile(
    r"""\[\s*(?:[rbuRBU]{0,2}['"]|nan\b|[A-Za-z_][\w.]*\(|<)|(?:\w+\.)*(?:array|Index|Series|Categorical|Document|TextNode|NodeWithScore)\("""
)
"""Where a list of texts or objects begins that NumPy, pandas or a framework has printed."""
_TEXT_KEYS = ("text", "page_content", "content")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MAX_NS = 2**63 - 1


class CellError(ValueError):
    """A cell holds what a record cannot; the message says what, and quotes nothing of it."""


def is_missing(cell: object) -> bool:
    """Whether the cell says that there is nothing."""
    if cell is None or type(cell).__name__ in _MISSING_TYPES:
        return True
    if isinstance(cell, str):
        return len(cell) <= _LONGEST_WORD + 2 and cell.strip() in _MISSING_WORDS
    return isinstance(cell, numbers.Real) and bool(cell != cell)  # noqa: PLR0124 - so is NaN; `isnan` fails on huge integers


def cell_text(cell: object) -> str | None:
    """A text, or a number as text; anything else is a `CellError`."""
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, numbers.Number):
        return str(cell)
    raise CellError(f"is {kind_of(cell)}, but should be text")


def identifier_of(cell: object) -> str | None:
    """The cell as text; a blank one identifies nothing."""
    text = "" if is_missing(cell) else str(cell)
    return text if text.strip() else None


def metadata_of(cell: object) -> dict[str, Any]:
    """The plain entries of a dictionary, or of the JSON text of one; empty for anything else."""
    entries = json_of(cell) if isinstance(cell, str) else cell
    return plain_entries(entries) if isinstance(entries, Mapping) else {}


def label_in(cell: object) -> bool | None:
    """What people say of a response: whether it is good; None where they do not say."""
    if is_missing(cell) or not str(cell).strip():
        return None
    try:
        return label_of(cell)
    except ValueError:  # whose message quotes the cell
        raise CellError(f"is none of {', '.join(sorted(GOOD | BAD))}") from None


def json_of(text: str) -> Any:
    """What the JSON text holds; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def span_of(trace_id: str | None, span_id: str | None) -> SpanAnchor | None:
    """The span that the two ids name, in hexadecimal digits as in W3C trace contexts; None if both are missing."""
    if trace_id is None and span_id is None:
        return None
    return SpanAnchor(
        trace_id=_hexadecimal("trace id", trace_id, 32), span_id=_hexadecimal("span id", span_id, 16), is_remote=True
    )


def _hexadecimal(name: str, digits: str | None, length: int) -> int:
    number = int(digits, 16) if digits and re.fullmatch(f"[0-9a-fA-F]{{{length}}}", digits) else 0
    if not number:
        raise CellError(f"the {name} is not {length} hexadecimal digits, or zero")
    return number


def nanoseconds_of(cell: object) -> int | None:
    """A time as Unix nanoseconds: such a number, a date and time, or its ISO 8601 text. Without a zone it is UTC.

    Raises:
        CellError: it is not a time.
    """
    if is_missing(cell) or (isinstance(cell, str) and not cell.strip()):  # a CSV file has no other way to say nothing
        return None
    if isinstance(cell, str):
        cell = _parsed_time(cell.strip())
    if isinstance(cell, dt.datetime):
        moment = cell if cell.tzinfo is not None else cell.replace(tzinfo=dt.timezone.utc)
        cell = (moment - _EPOCH) // dt.timedelta(microseconds=1) * 1000
    if not isinstance(cell, bool) and isinstance(cell, numbers.Integral) and 0 <= int(cell) <= _MAX_NS:
        return int(cell)
    raise CellError("is not a time: give ISO 8601 text or Unix nanoseconds")


def kind_of(cell: object) -> str:
    """What a cell is, in words."""
    if is_missing(cell):
        return "empty"
    names = {dict: "an object", list: "a list", tuple: "a list", bytes: "bytes", bool: "true or false"}
    return names.get(type(cell), with_article(type(cell).__name__))


def _parsed_time(text: str) -> object:
    try:
        if text.isdecimal():
            return int(text)
        # Python 3.10 does not know the Z.
        return dt.datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in {"Z", "z"} else text)
    except ValueError:
        return None


# Contexts --------------------------------------------------------------------------------------------------------------


def contexts_of(cell: Any, *, separator: str | None = None) -> tuple[RetrievedContext, ...] | None:
    """The contexts that a cell holds; None where it does not say, `()` where it is an empty list.

    A cell is a list, the text of a list (as JSON, or as Python prints it), or a single text. A context is a
    text, an object with one under `text`, `page_content` or `content`, or an object of a framework. What is missing in a list
    is left out. A blank text is an empty cell: a CSV file cannot tell the two apart. With a separator, a single text is
    several.

    Raises:
        CellError: it is nothing of the kind, or a list as NumPy or pandas print it, which loses what is between its texts.
    """
    items = _items_of(cell, separator)
    return None if items is None else tuple(_context(place, item) for place, item in items)


def background_of(cell: Any) -> tuple[Background, ...]:
    """The background that a cell holds: texts as in `contexts_of`, of which an object may have a `kind`.

    Raises:
        CellError: it is nothing of the kind.
    """
    known: dict[Any, BackgroundKind] = {kind: kind for kind in get_args(BackgroundKind)}
    held = [(_context(place, item).text, item) for place, item in _items_of(cell, None) or ()]
    return tuple(
        Background(text=text, kind=known.get(item.get("kind") if isinstance(item, Mapping) else None, "other"))
        for text, item in held
        if text.strip()
    )


def _items_of(cell: Any, separator: str | None) -> list[tuple[int, Any]] | None:
    """What a cell's list holds, with the places from 1; None where the cell says nothing."""
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        if not cell.strip():
            return None
        cell = _listed(cell, separator)
    elif hasattr(cell, "tolist"):  # an array or a series; of no dimension it is a single text
        cell = cell.tolist()
    if isinstance(cell, (str, Mapping)) or not _is_iterable(cell):
        cell = [cell]
    return [(place, item) for place, item in enumerate(cell, start=1) if not is_missing(item)]


def _is_iterable(cell: object) -> bool:
    return isinstance(cell, Iterable) and not isinstance(cell, bytes)


def _listed(text: str, separator: str | None) -> list[Any]:
    """The list that a text writes out, the object that it writes out, its parts between separators, or the text alone."""
    try:
        written = json.loads(text)
    except (ValueError, RecursionError):
        written = _printed(text.strip())
    if isinstance(written, list):
        return written
    if isinstance(written, dict) and any(isinstance(written.get(key), str) for key in _TEXT_KEYS):
        return [written]  # any other object is a text in JSON: records of a database are contexts, too
    return [part for part in text.split(separator) if part.strip()] if separator else [text]


def _printed(text: str) -> Any:
    """The list that Python has printed; None if the text is not a list.

    Raises:
        CellError: it is a list as another program prints it: NumPy leaves out commas, and `...` stands for what it leaves out.
    """
    try:
        value = ast.literal_eval(text) if text.startswith(("[", "{")) else None
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        value = None
    if value is not None and repr(value) == text:
        return value
    if _PRINTED.match(text) and text.endswith(("]", ")", ">")):
        raise CellError(
            "hold a list as a program prints it, which cannot be read back: save the table as JSONL or Parquet"
        )
    return None


def _context(place: int, item: Any) -> RetrievedContext:
    try:
        return as_contexts([item])[0]
    except ConfigurationError as error:
        if isinstance(item, Mapping):
            raise CellError(f"hold an object in place {place} that has no text: {error}") from None
        raise CellError(f"hold {kind_of(item)} in place {place}, but should hold a text there") from None
