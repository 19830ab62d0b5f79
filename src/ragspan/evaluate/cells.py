"""What is in a table's cells, as records need it. None, NaN, pandas' NA and NaT, and the words for them, all become None."""

from __future__ import annotations

import ast
import contextlib
import json
import numbers
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ragspan.arguments import with_article
from ragspan.exceptions import ConfigurationError
from ragspan.records import RetrievedContext, as_contexts

_MISSING_WORD = re.compile(r"\s*(-?nan|-?NaN|<NA>|NaT|None|null|NULL|Null|nil|N/A|n/a|NA|#N/A|#NA)\s*")
"""What programs write where there is nothing: `str` and `astype(str)`, databases, spreadsheets and R do."""
_PRINTED = re.compile(r"""\[\s*(['"]|nan\b|\w+\(|<).*[\])>]|array\(.*\)""", re.DOTALL)
"""A list of texts or objects that NumPy, pandas or a framework has printed."""
GOOD = frozenset(["1", "true", "yes", "y", "pass", "passed", "good", "correct", "supported", "grounded", "faithful"])
_BAD = ("0", "false", "no", "n", "fail", "failed", "bad", "incorrect", "wrong", "unsupported", "ungrounded")
BAD = frozenset([*_BAD, "hallucinated"])
"""People's labels of responses."""


class CellError(ValueError):
    """A cell holds what a record cannot; the message says what, and quotes nothing of it."""


def is_missing(cell: object) -> bool:
    """Whether the cell says that there is nothing."""
    if isinstance(cell, str):
        return bool(_MISSING_WORD.fullmatch(cell))
    if cell is None or type(cell).__name__ in {"NAType", "NaTType"}:  # pandas' own, which is not imported here
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


def kind_of(cell: object) -> str:
    """What a cell is, in words."""
    names = {dict: "an object", list: "a list", tuple: "a list", bytes: "bytes", bool: "true or false"}
    return "empty" if is_missing(cell) else names.get(type(cell), with_article(type(cell).__name__))


def contexts_of(cell: Any) -> tuple[RetrievedContext, ...] | None:
    """The contexts that a cell holds; None where it does not say, `()` where it is an empty list.

    A cell is a list, the text of a list (as JSON, or as Python prints it), or a single text. A context is a
    text, an object with one under `text`, `page_content` or `content`, or an object of a framework. What is missing in a list
    is left out. A blank text is an empty cell: a CSV file cannot tell the two apart.
    """
    if is_missing(cell) or (isinstance(cell, str) and not cell.strip()):
        return None
    if isinstance(cell, str):
        cell = _written_out(cell)
    elif hasattr(cell, "tolist"):  # an array or a series; of no dimension it is a single text
        cell = cell.tolist()
    if isinstance(cell, (str, bytes, Mapping)) or not isinstance(cell, Iterable):
        cell = [cell]
    found: list[RetrievedContext] = []
    for place, item in enumerate(cell, start=1):
        if is_missing(item):
            continue
        try:
            found += as_contexts([item])
        except ConfigurationError as error:
            if isinstance(item, Mapping):
                raise CellError(f"hold an object in place {place} that has no text: {error}") from None
            raise CellError(f"hold {kind_of(item)} in place {place}, but should hold a text there") from None
    return tuple(found)


def _written_out(text: str) -> Any:
    """The list or the object with a text that a text writes out, or the text alone: other JSON is a context as well."""
    written, printed = json_of(text), text.strip()
    if written is None and printed.startswith(("[", "{", "array(")):
        with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            written = ast.literal_eval(printed)
        if repr(written) != printed:  # NumPy leaves out commas, so that texts run into each other
            written = None
            if _PRINTED.fullmatch(printed):
                raise CellError(
                    "hold a list as a program prints it, which cannot be read: save the table as JSONL or Parquet"
                )
    has_text = isinstance(written, dict) and any(
        isinstance(written.get(key), str) for key in ("text", "page_content", "content")
    )
    return written if has_text or isinstance(written, list) else text
