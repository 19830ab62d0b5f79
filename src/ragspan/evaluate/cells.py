"""What is in a table's cells, as records need it. None, NaN, pandas' NA and NaT, and the words for them, all become None."""

from __future__ import annotations

import ast
import contextlib
import datetime as dt
import json
import numbers
import re
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from ragspan.arguments import with_article
from ragspan.exceptions import ConfigurationError
from ragspan.records import Background, BackgroundKind, RetrievedContext, as_contexts

_MISSING_TYPES = frozenset({"NAType", "NaTType"})  # pandas' own, known by name: it is not imported here
_MISSING_WORD = re.compile(r"\s*(-?nan|-?NaN|<NA>|NaT|None|null|NULL|Null|nil|N/A|n/a|NA|#N/A|#NA)\s*")
"""What programs write where there is nothing: `str` and `astype(str)`, databases, spreadsheets and R do."""
_PRINTED = re.compile(
    r"""\[\s*(['"]|nan\b|\w+\(|<).*[\])>]|(array|Index|Series|Document|TextNode|NodeWithScore)\(.*\)""", re.DOTALL
)
"""A list of texts or objects that NumPy, pandas or a framework has printed."""
GOOD = frozenset({"1", "true", "yes", "y", "pass", "passed", "good", "correct", "supported", "grounded", "faithful"})
BAD = frozenset(
    (
        "0",
        "false",
        "no",
        "n",
        "fail",
        "failed",
        "bad",
        "incorrect",
        "wrong",
        "unsupported",
        "ungrounded",
        "hallucinated",
    )
)
"""People's labels of responses."""
_TEXT_KEYS = ("text", "page_content", "content")
_MAX_NS = 2**63 - 1


class CellError(ValueError):
    """A cell holds what a record cannot; the message says what, and quotes nothing of it."""


def is_missing(cell: object) -> bool:
    """Whether the cell says that there is nothing."""
    if isinstance(cell, str):
        return bool(_MISSING_WORD.fullmatch(cell))
    if cell is None or type(cell).__name__ in _MISSING_TYPES:
        return True
    return isinstance(cell, numbers.Real) and bool(cell != cell)  # noqa: PLR0124 - so is NaN; `isnan` fails on huge integers


def cell_text(cell: object) -> str | None:
    """A text, or a number as text; anything else is a `CellError`."""
    if is_missing(cell):
        return None
    if isinstance(cell, (str, numbers.Number)):
        return str(cell)
    raise CellError(f"is {kind_of(cell)}, but should be text")


def identifier_of(cell: object) -> str | None:
    """The cell as text; a blank one identifies nothing."""
    text = "" if is_missing(cell) else str(cell)
    return text if text.strip() else None


def label_in(cell: object) -> bool | None:
    """What people say of a response: whether it is good; None where they do not say."""
    if identifier_of(cell) is None:
        return None
    word = str(cell).strip().lower().removesuffix(".0")
    if word in GOOD or word in BAD:
        return word in GOOD
    raise CellError(f"is none of {', '.join(sorted(GOOD | BAD))}")


def json_of(text: str) -> Any:
    """What the JSON text holds; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def nanoseconds_of(cell: object) -> int | None:
    """A time as Unix nanoseconds: such a number, a date and time, or its ISO 8601 text. Without a zone it is UTC."""
    if is_missing(cell) or (isinstance(cell, str) and not cell.strip()):
        return None
    if isinstance(cell, str):
        text = cell.strip()
        try:  # Python 3.10 does not know the Z
            cell = int(text) if text.isdecimal() else dt.datetime.fromisoformat(re.sub("[zZ]$", "+00:00", text))
        except ValueError:
            cell = None
    if isinstance(cell, dt.datetime):
        moment = cell if cell.tzinfo is not None else cell.replace(tzinfo=dt.timezone.utc)
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
        cell = (moment - epoch) // dt.timedelta(microseconds=1) * 1000
    if not isinstance(cell, bool) and isinstance(cell, numbers.Integral) and 0 <= int(cell) <= _MAX_NS:
        return int(cell)
    raise CellError("is not a time: give ISO 8601 text or Unix nanoseconds")


def kind_of(cell: object) -> str:
    """What a cell is, in words."""
    names = {dict: "an object", list: "a list", tuple: "a list", bytes: "bytes", bool: "true or false"}
    return "empty" if is_missing(cell) else names.get(type(cell), with_article(type(cell).__name__))


# Contexts --------------------------------------------------------------------------------------------------------------


def contexts_of(cell: Any) -> tuple[RetrievedContext, ...] | None:
    """The contexts that a cell holds; None where it does not say, `()` where it is an empty list.

    A cell is a list, the text of a list (as JSON, or as Python prints it), or a single text. A context is a
    text, an object with one under `text`, `page_content` or `content`, or an object of a framework. What is missing in a list
    is left out. A blank text is an empty cell: a CSV file cannot tell the two apart.
    """
    items = _items_of(cell)
    return None if items is None else tuple(_context(place, item) for place, item in items)


def background_of(cell: Any) -> tuple[Background, ...]:
    """The background that a cell holds: texts as in `contexts_of`, of which an object may have a `kind`."""
    known: dict[Any, BackgroundKind] = {kind: kind for kind in get_args(BackgroundKind)}
    found = []
    for place, item in _items_of(cell) or ():
        kind = item.get("kind") if isinstance(item, Mapping) else None
        found.append(Background(text=_context(place, item).text, kind=known.get(kind, "other")))
    return tuple(one for one in found if one.text.strip())


def _items_of(cell: Any) -> list[tuple[int, Any]] | None:
    """What a cell's list holds, with the places from 1; None where the cell says nothing."""
    if is_missing(cell) or (isinstance(cell, str) and not cell.strip()):
        return None
    if isinstance(cell, str):
        cell = _listed(cell)
    elif hasattr(cell, "tolist"):  # an array or a series; of no dimension it is a single text
        cell = cell.tolist()
    if isinstance(cell, (str, bytes, Mapping)) or not isinstance(cell, Iterable):
        cell = [cell]
    return [(place, item) for place, item in enumerate(cell, start=1) if not is_missing(item)]


def _listed(text: str) -> Any:
    """The list or the object with a text that a text writes out, or the text alone: other JSON is a context as well."""
    written, printed = json_of(text), text.strip()
    if written is None and printed.startswith(("[", "{", "a", "I", "S", "D", "T", "N")):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            written = ast.literal_eval(printed)
        if repr(written) != printed:  # NumPy leaves out commas, so that texts run into each other
            written = None
            if _PRINTED.fullmatch(printed):
                raise CellError(
                    "hold a list as a program prints it, which cannot be read back: save the table as JSONL or Parquet"
                )
    has_text = isinstance(written, dict) and any(isinstance(written.get(key), str) for key in _TEXT_KEYS)
    return written if has_text or isinstance(written, list) else [text]


def _context(place: int, item: Any) -> RetrievedContext:
    try:
        return as_contexts([item])[0]
    except ConfigurationError as error:
        if isinstance(item, Mapping):
            raise CellError(f"hold an object in place {place} that has no text: {error}") from None
        raise CellError(f"hold {kind_of(item)} in place {place}, but should hold a text there") from None
