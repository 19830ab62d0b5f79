"""Turns the rows of a table into records: a part is in a column, at a path into one, or what a function makes of the row."""

from __future__ import annotations

import ast
import contextlib
import difflib
import json
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from ragspan import field_names
from ragspan.arguments import with_article
from ragspan.engine.redaction import RedactionError, redact_from, redacted
from ragspan.evaluate.rows import BadRow, EvaluatedRow
from ragspan.evaluate.sources import BAD, GOOD
from ragspan.evaluate.tables import Table
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.records import RagRecord, Retrieval, RetrievedContext, as_contexts
from ragspan.safe_copy import kept_entries

_T = TypeVar("_T")
Row: TypeAlias = Mapping[str, Any]
ColumnChoice: TypeAlias = "str | Callable[[Row], Any] | Sequence[str | Callable[[Row], Any]]"
"""Several hold contexts, one beside the other."""

_NEEDED = ("question", "contexts", "answer")
_PREFIXES = ("inputs", "input")
_NAMES: Mapping[str, Sequence[str]] = {  # those with dots are LangSmith's, which puts all of it into dictionaries
    "question": (
        *field_names.QUESTION,
        *(f"{prefix}.{name}" for prefix in _PREFIXES for name in (*field_names.QUESTION, *field_names.OFTEN_QUESTION)),
        *field_names.OFTEN_QUESTION,
    ),
    "contexts": (*field_names.CONTEXTS, *(f"outputs.{name}" for name in field_names.CONTEXTS)),
    "answer": (*field_names.ANSWER, *(f"outputs.{name}" for name in field_names.ANSWER)),
    "id": ("id", "record_id", "example_id"),
    "metadata": ("metadata",),
    "retrieved": ("retrieved",),
}
"""Names of ragspan, Ragas, DeepEval, TruLens and LangSmith; the first that a table has counts."""
_MISSING_WORD = re.compile(r"\s*(-?nan|-?NaN|<NA>|NaT|None|null|NULL|Null|nil|N/A|n/a|NA|#N/A|#NA)\s*")
"""What programs write where there is nothing: `str` and `astype(str)`, databases, spreadsheets and R do."""


class CellError(ValueError):
    """A cell holds what a record cannot; the message says what, and quotes nothing of it."""


# Cells


def is_missing(cell: object) -> bool:
    """Whether the cell says that there is nothing: None, NaN, pandas' NA and NaT, and the words for them."""
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
    raise CellError(f"is {with_article(type(cell).__name__)}, but should be text")


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
    raise CellError("says neither good nor bad, as yes and no do, pass and fail, or 1 and 0")


def contexts_of(cell: Any) -> tuple[RetrievedContext, ...] | None:
    """The contexts that a cell holds; None where it does not say, `()` where it is an empty list.

    A cell is a list, the text of a list (as JSON, or as Python prints it), or a single text. A context is a text, an object with
    one under `text`, `page_content` or `content`, or an object of a framework. What is missing in a list is left out.
    """
    if is_missing(cell) or (isinstance(cell, str) and not cell.strip()):
        return None
    if isinstance(cell, str):
        written, printed = _json_of(cell), cell.strip()
        if written is None and printed.startswith("["):
            with contextlib.suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                written = ast.literal_eval(printed)
            if isinstance(written, list) and repr(written) != printed:  # NumPy leaves out commas
                raise CellError("may be a list as NumPy prints it, without commas: save the table as JSONL or Parquet")
        has_text = isinstance(written, dict) and any(isinstance(written.get(key), str) for key in field_names.TEXT)
        cell = written if has_text or isinstance(written, list) else cell  # other JSON is a context as well
    elif hasattr(cell, "tolist"):  # an array or a series; of no dimension it is a single text
        cell = cell.tolist()
    if isinstance(cell, (str, bytes, Mapping)) or not isinstance(cell, Iterable):
        cell = [cell]
    try:
        return as_contexts([item for item in cell if not is_missing(item)])
    except ConfigurationError as error:
        raise CellError(f"cannot be read: {error}") from None


def _json_of(text: str) -> Any:
    """What the JSON text holds; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# Rows


class RecordReader:
    """Reads records from the rows of one table; the columns or paths in `by` become entries of their metadata."""

    def __init__(self, choices: Mapping[str, ColumnChoice], table: Table, *, by: Sequence[str] = ()) -> None:
        self._redact = redact_from(None)
        self._readers: dict[str, Callable[[Row], Any]] = {}
        self._groups: dict[str, Callable[[Row], Any]] = {}
        self.columns: dict[str, str] = {}
        """What each part is read from; to compare with those of an earlier run."""
        for name in by:
            inner = f"metadata.{name}"  # of a record, or of a row that was evaluated before
            self._groups[name] = _reader_of("by", inner if _leads_somewhere(inner, table) else name, table)
        found = choices if not table.sample else _with_recognized(choices, table)
        for part, choice in found.items():
            self._readers[part] = _reader_of(part, choice, table)
            several = choice if isinstance(choice, (list, tuple)) else [choice]
            names = (one if isinstance(one, str) else getattr(one, "__qualname__", "a function") for one in several)
            self.columns |= {} if part == "label" else {part: " and ".join(names)}
        words = ", ".join(f"{part} from {self.columns[part]!r}" for part in _NEEDED if part in self.columns)
        self.columns_read = f"reading {words}" if table.sample else ""
        """What is read as what, in a line."""

    def read(self, number: int, values: Row | RagRecord | str) -> EvaluatedRow | BadRow:
        """The row with its record, and without outcomes; or what is wrong with it."""
        try:
            if isinstance(values, str):
                raise CellError(values)  # noqa: TRY301 - it is a bad row, too
            record = values if isinstance(values, RagRecord) else self._record(number, values)
            label = None if isinstance(values, RagRecord) else self._read("label", values, label_in)
            if self._redact is not None:
                record = redacted(record, self._redact)
        except (CellError, RedactionError) as error:
            return BadRow(row=number, reason=str(error))
        return EvaluatedRow(row=number, record=record, label=label)

    def _record(self, row: int, values: Row) -> RagRecord:
        found_by = {name: reader(values) for name, reader in self._groups.items()}
        groups = {name: str(value) for name, value in found_by.items() if not is_missing(value)}
        found = self._read("retrieved", values, contexts_of)
        search = Retrieval(name="search", query=None, started_ns=0, ended_ns=0, contexts=found or ())
        metadata = self._read("metadata", values, lambda cell: _json_of(cell) if isinstance(cell, str) else cell)
        return RagRecord(
            question=self._read("question", values, cell_text),
            contexts=self._read("contexts", values, contexts_of),
            response=self._read("answer", values, cell_text),
            record_id=self._read("id", values, identifier_of) or f"row-{row}",
            framework="table",
            metadata=groups | (kept_entries(metadata) if isinstance(metadata, dict) else {}),
            retrievals=(search,) if found else (),
        )

    def _read(self, part: str, values: Row, parse: Callable[[Any], _T]) -> _T:
        reader = self._readers.get(part)
        try:
            return parse(reader(values) if reader else None)
        except CellError as error:
            raise CellError(f"the {part} {error}") from None
        except Exception as error:  # noqa: BLE001 - of a user's function, or for a number of thousands of digits
            # Its message may quote the row.
            raise CellError(f"the {part} cannot be read: {type(error).__name__}") from None


# Columns


def _with_recognized(choices: Mapping[str, ColumnChoice], table: Table) -> Mapping[str, ColumnChoice]:
    """The choices, and for parts that nobody names the first known name that the table has."""
    plain = {re.sub(r"[\s_-]", "", column).lower(): column for column in reversed(table.columns)}
    """`retrieval_context`, `retrievalContext` and `Retrieval Context` are one name."""
    found: dict[str, ColumnChoice] = {}
    for part, names in _NAMES.items():
        known = (plain.get(name.replace("_", ""), name) for name in names)
        if column := next((name for name in known if name in table.columns or _leads_somewhere(name, table)), None):
            found[part] = column
    found |= choices
    if missing := [part for part in _NEEDED if part not in found]:
        names = "; ".join(f"no column looks like the {part} ({', '.join(_NAMES[part][:6])}, ...)" for part in missing)
        raise TableError(f"{names}; there are: {', '.join(map(repr, table.columns))}; {_hint(*missing)}")
    return found


def _leads_somewhere(path: str, table: Table) -> bool:
    """Whether a path with dots leads to something in the first rows."""
    return "." in path and any(_at(path.split("."), row) is not None for row in table.sample)


def _at(keys: Sequence[str], row: Any) -> Any:
    """What stands in a row at these keys, one inside the other; a CSV file has its dictionaries as text."""
    for key in keys:
        row = _json_of(row) if isinstance(row, str) else row
        if not isinstance(row, Mapping):
            return None
        row = row.get(key)
    return row


def _reader_of(part: str, choice: ColumnChoice, table: Table) -> Callable[[Row], Any]:
    """What reads the part from a row."""
    if callable(choice):
        return choice
    if not isinstance(choice, str):
        readers = [_reader_of(part, one, table) for one in choice]

        def joined(row: Row) -> list[RetrievedContext] | None:
            """The contexts of several columns, in their order; None where none of them says anything."""
            found = [contexts_of(reader(row)) for reader in readers]
            return None if all(one is None for one in found) else [context for one in found for context in one or ()]

        return readers[0] if len(readers) == 1 else joined
    if table.sample and choice not in table.columns and not _leads_somewhere(choice, table):
        close = difflib.get_close_matches(choice, table.columns, cutoff=0.5)
        guess = f"did you mean {close[0]!r}?" if close else _hint(part)
        use = "" if part == "by" else f" for the {part}"
        raise TableError(
            f"there is no column {choice!r}{use}; there are: {', '.join(map(repr, table.columns))}; {guess}"
        )
    return partial(_at, [choice] if choice in table.columns else choice.split("."))


def _hint(*parts: str) -> str:
    return "name the right one with " + ", ".join("--by" if part == "by" else f"--{part}-column" for part in parts)
