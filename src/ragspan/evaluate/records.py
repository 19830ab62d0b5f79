"""Turns the rows of a table into records.

A part of a record is in a column, at a path into a column of dictionaries, or what a function makes of the row. Parts that nobody
names are recognised by the names that evaluation tools give them.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from ragspan import field_names
from ragspan.evaluate import cells
from ragspan.evaluate.cells import CellError, cell_text, identifier_of, is_missing, json_of
from ragspan.evaluate.rows import LABEL, BadRow, EvaluatedRow
from ragspan.evaluate.tables import Table, TableRow
from ragspan.exceptions import RecordError, TableError
from ragspan.record_json import plain_entries
from ragspan.records import RagRecord, Retrieval, RetrievedContext
from ragspan.redaction import RedactionError, redact_from, redacted

_T = TypeVar("_T")
Row: TypeAlias = Mapping[str, Any]
ColumnChoice: TypeAlias = "str | Callable[[Row], Any] | Sequence[str | Callable[[Row], Any]]"
"""Several hold contexts, one beside the other."""
ColumnChoices: TypeAlias = Mapping[str, ColumnChoice]
"""What a user names, by part."""
Paths: TypeAlias = Mapping[str, Sequence[str]]
"""The columns, and the paths into those of dictionaries, each with the keys that lead there."""

NEEDED = ("question", "contexts", "answer")
_OPTIONAL = {"id": ("id", "record_id", "example_id")} | {one: (one,) for one in ("metadata", "retrieved")}
PARTS = (*NEEDED, *_OPTIONAL, LABEL)
"""The first three are recognised by many names, and a label by none: what people say is only read from a column that is named."""
_QUESTIONS = (*field_names.QUESTION, *field_names.OFTEN_QUESTION)
_NAMES: Mapping[str, Sequence[str]] = {  # the last ones are LangSmith's, which puts all of it into dictionaries
    "question": (*_QUESTIONS, *(f"{prefix}.{name}" for prefix in ("inputs", "input") for name in _QUESTIONS)),
    "contexts": (*field_names.CONTEXTS, *(f"outputs.{name}" for name in field_names.CONTEXTS)),
    "answer": (*field_names.ANSWER, *(f"outputs.{name}" for name in field_names.ANSWER)),
}
_TOOLS = (
    ("question", "contexts", "answer"),  # ragspan, and Ragas before 0.2
    ("question", "contexts", "response"),
    ("userinput", "retrievedcontexts", "response"),  # Ragas
    ("input", "retrievalcontext", "actualoutput"),  # DeepEval
    ("input", "contexts", "output"),  # TruLens
    ("input", "context", "output"),
)
"""A table that has all three names of a tool is read as that tool's, whatever else it has."""
_WORDS = {"answer": "response", "by": "groups", "retrieved": "retrieved documents"}
_DEEPEST = 8  # keys of a path
_KNOWN_SHOWN, _NAMES_SHOWN = 6, 40


class RecordReader:
    """Reads records from the rows of one table.

    Args:
        choices: the columns to read, by part.
        table: what is known of it beforehand.
        by: columns or paths that become entries of the metadata; the table has to have them.
    """

    def __init__(self, choices: ColumnChoices, table: Table, *, by: Sequence[str] = ()) -> None:
        self._choices = {part: choice for part, choice in choices.items() if part != LABEL}
        self._redact = redact_from(None)
        self._readers: dict[str, Callable[[Row], Any]] = {}
        self._groups: dict[str, Callable[[Row], Any]] = {}
        self.columns_read = ""
        """What is read as what, in a line."""
        self.columns: dict[str, str] = {}
        """What each part is read from; to compare with those of an earlier run."""
        paths = paths_of(table.columns, table.sample)
        if LABEL in choices:
            self._readers[LABEL] = reader_of(LABEL, choices[LABEL], paths)
        for name in by if table.sample else ():
            inner = f"metadata.{name}"  # of a record, or of a row that was evaluated before
            self._groups[name] = reader_of("by", inner if inner in paths and name not in paths else name, paths)
        if table.sample and all(map(self._is_record, table.sample)):
            self.columns_read = "reading records as RagRecord.to_json writes them"
        elif table.sample:
            self._find_columns(paths)

    def read(self, entry: TableRow) -> EvaluatedRow | BadRow:
        """The row with its record, and without outcomes; or what is wrong with it."""
        try:
            if isinstance(entry.data, str):
                raise CellError(entry.data)  # noqa: TRY301 - it is a bad row, too
            if isinstance(entry.data, RagRecord):
                record, label = entry.data, None
            else:
                record, label = self._record(entry.row, entry.data), self._read(LABEL, entry.data, cells.label_in)
            if self._redact is not None:
                record = redacted(record, self._redact)
        except (CellError, RedactionError) as error:
            return BadRow(row=entry.row, line=entry.line, reason=str(error))
        return EvaluatedRow(row=entry.row, record=record, label=label)

    def _find_columns(self, paths: Paths) -> None:
        for part, choice in with_recognized(self._choices, paths).items():
            self._readers[part] = reader_of(part, choice, paths)
            several = choice if isinstance(choice, (list, tuple)) else [choice]
            names = (one if isinstance(one, str) else getattr(one, "__qualname__", "a function") for one in several)
            self.columns[part] = " and ".join(names)
        self.columns_read = "reading " + ", ".join(f"{_word(part)} from {self.columns[part]!r}" for part in NEEDED)

    def _is_record(self, values: Row) -> bool:
        """Whether `RagRecord.to_json` wrote the row: nothing else has these three, the last as a list."""
        has_fields = "record_id" in values and "status" in values and isinstance(values.get("retrievals"), list)
        return has_fields and not self._choices

    def _record(self, row: int, values: Row) -> RagRecord:
        found_by = {name: reader(values) for name, reader in self._groups.items()}
        groups = {name: str(value) for name, value in found_by.items() if not is_missing(value)}
        if self._is_record(values):
            try:
                record = RagRecord.from_json(json.dumps(values))
            except RecordError as error:
                raise CellError(str(error)) from None
            return replace(record, metadata={**record.metadata, **groups}) if groups else record
        if not self.columns:  # there were only records before
            self._find_columns(paths_of(list(values), [values]))
        found = self._read("retrieved", values, cells.contexts_of)
        search = Retrieval(name="search", query=None, started_ns=0, ended_ns=0, contexts=found or ())
        metadata = self._read("metadata", values, lambda cell: json_of(cell) if isinstance(cell, str) else cell)
        chosen = self._choices.get("contexts")
        is_joined = isinstance(chosen, (list, tuple)) and len(chosen) > 1
        return RagRecord(
            question=self._read("question", values, cell_text),
            contexts=self._read("contexts", values, _joined if is_joined else cells.contexts_of),
            response=self._read("answer", values, cell_text),
            record_id=self._read("id", values, identifier_of) or f"row-{row}",
            framework="table",
            metadata=groups | (plain_entries(metadata) if isinstance(metadata, dict) else {}),
            retrievals=(search,) if found else (),
        )

    def _read(self, part: str, values: Row, parse: Callable[[Any], _T]) -> _T:
        reader = self._readers.get(part)
        try:
            return parse(reader(values) if reader else None)
        except CellError as error:
            raise CellError(f"the {_word(part)} {error}") from None
        except Exception as error:  # noqa: BLE001 - of a user's function, or for a number of thousands of digits
            # Its message may quote the row.
            raise CellError(f"the {_word(part)} cannot be read: {type(error).__name__}") from None


def _joined(of_columns: Sequence[Any]) -> tuple[RetrievedContext, ...] | None:
    """The contexts of several columns, in their order; None where none of them says anything."""
    found = [cells.contexts_of(cell) for cell in of_columns]
    return None if all(one is None for one in found) else tuple(context for one in found for context in one or ())


# Columns --------------------------------------------------------------------------------------------------------------


def paths_of(columns: Sequence[str], sample: Sequence[Row]) -> Paths:
    """Those in some of the first rows."""
    found: dict[str, Sequence[str]] = {column: (column,) for column in columns}

    def add(path: Sequence[str], cell: Any) -> None:
        if isinstance(cell, str) and cell.lstrip()[:1] == "{":
            cell = json_of(cell)
        if isinstance(cell, Mapping) and len(path) < _DEEPEST:
            for key in cell:
                inner = (*path, str(key))
                found.setdefault(".".join(inner), inner)
                add(inner, cell[key])

    for row in sample:
        for column in columns:
            add((column,), row.get(column))
    return found


def with_recognized(choices: ColumnChoices, paths: Paths) -> ColumnChoices:
    """The choices, and for parts that nobody names the columns with known names."""
    found = {part: name for part, names in _OPTIONAL.items() for name in reversed(names) if name in paths}
    plain = {column: re.sub(r"[\s_-]", "", column).lower() for column in paths}
    """`retrieval_context`, `retrievalContext` and `Retrieval Context` are one name."""
    known: dict[str, list[str]] = {}
    for part in NEEDED:
        names = {re.sub("_", "", name) for name in _NAMES[part]}
        those = [column for column in paths if plain[column] in names]
        if part not in choices:  # a dictionary that has the part in it is not the part
            known[part] = [one for one in those if not any(other.startswith(f"{one}.") for other in those)]
    of_tools = []
    for names_of_tool in _TOOLS:
        wanted = dict(zip(NEEDED, names_of_tool, strict=True))
        own = {part: column for part, those in known.items() for column in those if plain[column] == wanted[part]}
        if len(own) == len(known) and own not in of_tools:
            of_tools.append(own)
    if len(of_tools) == 1:
        return {**found, **of_tools[0], **choices}
    unclear = {part: those for part, those in known.items() if len(those) != 1}
    problems = [
        f"several columns may be the {_word(part)}: {', '.join(map(repr, those))}"
        if those
        else f"no column looks like the {_word(part)} (known names: {', '.join(_NAMES[part][:_KNOWN_SHOWN])})"
        for part, those in unclear.items()
    ]
    if problems:
        raise TableError(f"{'; '.join(problems)}; there are: {_listed(paths)}; {_hint(*unclear)}")
    return {**found, **{part: those[0] for part, those in known.items()}, **choices}


def reader_of(part: str, choice: ColumnChoice, paths: Paths) -> Callable[[Row], Any]:
    """What reads the part from a row."""
    if callable(choice):
        return choice
    if not isinstance(choice, str):
        readers = [reader_of(part, one, paths) for one in choice]
        return readers[0] if len(readers) == 1 else lambda row: [reader(row) for reader in readers]
    path = paths.get(choice)
    if path is None:
        close = difflib.get_close_matches(choice, paths, 1, 0.5)
        guess = f"did you mean {close[0]!r}?" if close else _hint(part)
        raise TableError(f"there is no column {choice!r} for the {_word(part)}; there are: {_listed(paths)}; {guess}")

    def follow(row: Any) -> Any:
        for key in path:
            if isinstance(row, str):
                row = json_of(row)  # a CSV file has its dictionaries as text
            if not isinstance(row, Mapping):
                return None
            row = row.get(key)
        return row

    return follow


def _word(part: str) -> str:
    """What a part is called in messages."""
    return _WORDS.get(part, part)


def _listed(paths: Paths) -> str:
    names = list(paths)
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(map(repr, names[:_NAMES_SHOWN])) + more or "none"


def _hint(*parts: str) -> str:
    names = ["by" if part == "by" else f"{part}_column" for part in parts]
    options = ", ".join(f"--{name.replace('_', '-')}" for name in names)
    return f"name the right one with {options}, or in Python {names[0]}="
