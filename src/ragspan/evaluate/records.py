"""Turns the rows of a table into records."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ragspan.evaluate import cells
from ragspan.evaluate.cells import CellError, cell_text, identifier_of, is_missing, json_of
from ragspan.evaluate.columns import (
    LABEL,
    NEEDED,
    ColumnChoices,
    Row,
    paths_of,
    reader_of,
    with_recognized,
    word,
)
from ragspan.evaluate.rows import BadRow, EvaluatedRow
from ragspan.evaluate.tables import Table, TableRow
from ragspan.exceptions import RecordError
from ragspan.record_json import plain_entries
from ragspan.records import RagRecord, Retrieval, RetrievedContext
from ragspan.redaction import RedactionError, redact_from, redacted

_T = TypeVar("_T")


class RecordReader:
    """Reads records from the rows of one table.

    Args:
        choices: the columns to read.
        table: what is known of it beforehand.
        dimensions: columns that become entries of the metadata, where the table has them.
        by: columns or paths that become entries as well, which the table has to have.
    """

    def __init__(
        self,
        choices: ColumnChoices,
        table: Table,
        *,
        dimensions: Sequence[str] = (),
        by: Sequence[str] = (),
    ) -> None:
        self._choices = {part: choice for part, choice in choices.items() if part != LABEL}
        paths = paths_of(table.columns, table.sample)
        self._label = reader_of(LABEL, choices[LABEL], paths) if LABEL in choices else None
        self._groups: dict[str, Callable[[Row], Any]] = {}
        for name in dict.fromkeys([*dimensions, *by]):
            inner = f"metadata.{name}"  # of a record, or of a row that was evaluated before
            if name in paths or inner in paths or (name in by and table.sample):
                self._groups[name] = reader_of("by", name if name in paths or inner not in paths else inner, paths)
        chosen = self._choices.get("contexts")
        self._has_several = isinstance(chosen, (list, tuple)) and len(chosen) > 1
        self._readers: dict[str, Callable[[Row], Any]] | None = None
        self._redact = redact_from(None)
        self.columns_read = ""
        """What is read as what, in a line."""
        self.columns: dict[str, str] = {}
        """What each part is read from; to compare with those of an earlier run."""
        if table.sample and all(map(self._is_record, table.sample)):
            self.columns_read = "reading records as RagRecord.to_json writes them"
        elif table.sample:
            self._find_columns(table.columns, table.sample)

    def read(self, entry: TableRow) -> EvaluatedRow | BadRow:
        """The row with its record, and without outcomes; or what is wrong with it."""
        try:
            if isinstance(entry.data, RagRecord):
                record, label = entry.data, None
            else:
                record, label = self._record(entry, entry.data), self._read(LABEL, entry.data, cells.label_in)
            if self._redact is not None:
                record = redacted(record, self._redact)
        except (CellError, RedactionError) as error:
            return BadRow(row=entry.row, line=entry.line, reason=str(error))
        return EvaluatedRow(row=entry.row, record=record, label=label)

    def _find_columns(self, columns: Sequence[str], sample: Sequence[Row]) -> None:
        paths = paths_of(columns, sample)
        choices = with_recognized(self._choices, paths)
        self._readers = {part: reader_of(part, choice, paths) for part, choice in choices.items()}
        for part, choice in choices.items():
            several = choice if isinstance(choice, (list, tuple)) else [choice]
            names = (one if isinstance(one, str) else getattr(one, "__qualname__", "a function") for one in several)
            self.columns[part] = " and ".join(names)
        self.columns_read = "reading " + ", ".join(f"{word(part)} from {self.columns[part]!r}" for part in NEEDED)

    def _is_record(self, values: Row) -> bool:
        """Whether `RagRecord.to_json` wrote the row: nothing else has these three, the last as a list."""
        has_fields = "record_id" in values and "status" in values and isinstance(values.get("retrievals"), list)
        return has_fields and not self._choices

    def _record(self, entry: TableRow, values: Row) -> RagRecord:
        found_by = {name: reader(values) for name, reader in self._groups.items()}
        groups = {name: str(value) for name, value in found_by.items() if not is_missing(value)}
        if self._is_record(values):
            try:
                record = RagRecord.from_json(json.dumps(values))
            except RecordError as error:
                raise CellError(str(error)) from None
            return replace(record, metadata={**record.metadata, **groups}) if groups else record
        if self._readers is None:  # there were only records before
            self._find_columns(list(values), [values])
        found = self._read("retrieved", values, cells.contexts_of)
        search = Retrieval(name="search", query=None, started_ns=0, ended_ns=0, contexts=found or ())
        metadata = self._read("metadata", values, lambda cell: json_of(cell) if isinstance(cell, str) else cell)
        return RagRecord(
            question=self._read("question", values, cell_text),
            contexts=self._read("contexts", values, _joined if self._has_several else cells.contexts_of),
            response=self._read("answer", values, cell_text),
            background=self._read("background", values, cells.background_of),
            record_id=self._read("id", values, identifier_of) or f"row-{entry.row}",
            framework="table",
            metadata=groups | (plain_entries(metadata) if isinstance(metadata, dict) else {}),
            retrievals=(search,) if found else (),
        )

    def _read(self, part: str, values: Row, parse: Callable[[Any], _T]) -> _T:
        reader = self._label if part == LABEL else (self._readers or {}).get(part)
        try:
            return parse(reader(values) if reader else None)
        except CellError as error:
            raise CellError(f"the {word(part)} {error}") from None
        except Exception as error:  # noqa: BLE001 - of a user's function, or for a number of thousands of digits
            # Its message may quote the row.
            raise CellError(f"the {word(part)} cannot be read: {type(error).__name__}") from None


def _joined(cells_of_columns: Sequence[Any]) -> tuple[RetrievedContext, ...] | None:
    """The contexts of several columns, in their order; None where none of them says anything."""
    found = [cells.contexts_of(cell) for cell in cells_of_columns]
    return None if all(one is None for one in found) else tuple(context for one in found for context in one or ())
