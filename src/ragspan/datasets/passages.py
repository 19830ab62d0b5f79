"""The contexts of an answer, in the many shapes in which tables keep them."""

from __future__ import annotations

import ast
import json
import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ragspan.datasets.cells import CellError, identifier_of, is_missing, kind_of
from ragspan.records import RetrievedContext, as_contexts, plain_entries

_TEXT_KEYS = ("text", "page_content", "content")
_ID_KEYS = ("id", "doc_id", "document_id", "chunk_id")
_SOURCE_KEYS = ("source", "url", "title")
_MOST_COMMAS = 100_000  # Python's parser takes a kilobyte for each thing in a list


def contexts_of(cell: Any, *, separator: str | None = None) -> tuple[RetrievedContext, ...] | None:
    """The contexts that a cell holds; None where it does not say, `()` where it is an empty list.

    A cell is a list, the JSON text of a list (or what Python prints of one), or a single text. A context is a text, an
    object with one under `text`, `page_content` or `content`, or an object of a framework. A blank text is an empty cell:
    a CSV file cannot tell the two apart. With a separator, a single text is several.

    Raises:
        CellError: it is nothing of the kind.
    """
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        if not cell.strip():
            return None
        cell = _listed(cell, separator)
    elif isinstance(cell, Mapping) or not _is_iterable(cell):
        cell = [cell]
    elif hasattr(cell, "tolist"):  # an array or a series
        cell = cell.tolist()
    return tuple(_context(place, passage) for place, passage in enumerate(cell))


def _is_iterable(cell: object) -> bool:
    return isinstance(cell, Iterable) and not isinstance(cell, bytes)


def _listed(text: str, separator: str | None) -> list[Any]:
    """The list that a text stands for: the one that it spells, its parts between separators, or itself alone."""
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return [part for part in text.split(separator) if part.strip()] if separator else [text]
    try:
        parsed = json.loads(stripped)
    except (ValueError, RecursionError):
        parsed = _printed_list(stripped)
    return parsed if isinstance(parsed, list) else [text]


def _printed_list(text: str) -> object:
    """What data frames write into CSV files: the list as Python prints it.

    NumPy's arrays are printed without commas, which Python reads as one long text; so a list counts only if printing it
    again gives the same.
    """
    if text.count(",") > _MOST_COMMAS:
        raise CellError("hold a list that is too long to be read as Python prints it: write it as JSON")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = ast.literal_eval(text)
        return parsed if repr(parsed) == text else None
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _context(place: int, passage: Any) -> RetrievedContext:
    if isinstance(passage, Mapping):
        return _from_mapping(place, passage)
    if is_missing(passage):
        raise CellError(f"hold nothing in place {place + 1}, but should hold a text there")
    try:
        return as_contexts([passage])[0]
    except TypeError:
        raise CellError(f"hold {kind_of(passage)} in place {place + 1}, but should hold a text there") from None


def _from_mapping(place: int, passage: Mapping[Any, Any]) -> RetrievedContext:
    text = next((passage[key] for key in _TEXT_KEYS if isinstance(passage.get(key), str)), None)
    if text is None:
        wanted = ", ".join(_TEXT_KEYS)
        raise CellError(f"hold an object in place {place + 1} that has no text under any of {wanted}")
    metadata = passage.get("metadata")
    score, rank = passage.get("score"), passage.get("rank")
    return RetrievedContext(
        text=text,
        id=_first(passage, _ID_KEYS),
        rank=rank if isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0 else None,
        score=_score(score),
        source=_first(passage, _SOURCE_KEYS),
        metadata=plain_entries(metadata) if isinstance(metadata, Mapping) else {},
    )


def _score(value: object) -> float | None:
    """A finite number; JSON has integers that no float holds."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) <= sys.float_info.max else None  # type: ignore[arg-type]


def _first(passage: Mapping[Any, Any], keys: Iterable[str]) -> str | None:
    return next((found for key in keys if (found := identifier_of(passage.get(key))) is not None), None)
