"""Turns the rows of a table into records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragspan.datasets.cells import (
    CellError,
    contexts_of,
    identifier_of,
    is_missing,
    json_of,
    metadata_of,
    nanoseconds_of,
    span_of,
    text_of,
)
from ragspan.datasets.columns import CellReader, ColumnChoices, readers_for, recognized, told, tool_of
from ragspan.datasets.results import BadRow
from ragspan.datasets.tables import MAX_CELL, Table, TableRow
from ragspan.exceptions import RecordError
from ragspan.records import RagRecord, Retrieval, SpanAnchor
from ragspan.redaction import RedactionError, redact_from, redacted


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordRow:
    """A row that has become a record."""

    row: int
    record: RagRecord


class RecordReader:
    """Reads records from the rows of one table.

    Args:
        choices: the columns to read.
        table: what is known of it beforehand.
        with_spans: read the spans that the answers belong to, and the answers' times, as well.
        dimensions: columns that become entries of the metadata, where the table has them.

    Raises:
        TableError: a column is missing, or several may be meant.
        ConfigurationError: `RAGSPAN_REDACT` names no function.
    """

    def __init__(
        self, choices: ColumnChoices, table: Table, *, with_spans: bool = False, dimensions: Sequence[str] = ()
    ) -> None:
        self._choices = choices
        self._with_spans = with_spans
        self._dimensions = dimensions
        self._readers: dict[str, CellReader] | None = None
        self._redact = redact_from(None)
        self._tool: str | None = None
        self.told = ""
        """What is read as what, in a line."""
        self.columns = choices.described()
        """What each part is read from."""
        self._may_be_records = not self.columns
        if table.sample and all(map(self._is_record, table.sample)):
            self.told = "reading records as RagRecord.to_json writes them"
        elif table.sample:
            self._find_columns(table.columns, table.sample)
        self.span_troubles: dict[int, str] = {}
        """Rows whose ids name no span, the first hundred of them, and why."""
        self.span_trouble_count = 0
        self.traced = 0
        """Records that belong to a span."""

    def read(self, entry: TableRow) -> RecordRow | BadRow:
        """The record of a row, or what is wrong with the row."""
        try:
            record = entry.data if isinstance(entry.data, RagRecord) else self._record(entry.row, entry.data)
            if self._redact is not None:
                record = redacted(record, self._redact)
        except (CellError, RedactionError) as error:
            return BadRow(row=entry.row, line=entry.line, reason=str(error))
        self.traced += record.parent is not None
        return RecordRow(row=entry.row, record=record)

    def _find_columns(self, columns: Sequence[str], sample: Sequence[Mapping[str, Any]]) -> None:
        choices = recognized(self._choices, columns, sample)
        self._readers = readers_for(choices, columns, sample)
        self._tool = tool_of(choices)
        self.columns = choices.described()
        self.told = told(choices, columns)

    def _is_record(self, values: Mapping[str, Any]) -> bool:
        """Whether `RagRecord.to_json` wrote the row: nothing else has these three, the last as a list."""
        is_one = "record_id" in values and "status" in values and isinstance(values.get("retrievals"), list)
        return is_one and self._may_be_records

    def _record(self, row: int, values: Mapping[str, Any]) -> RagRecord:
        if self._is_record(values):
            try:
                return RagRecord.from_json(json.dumps(values))
            except RecordError as error:
                raise CellError(str(error)) from None
        if self._readers is None:  # there were only records before
            self._find_columns(list(values), [values])
        times = self._times(values) if self._with_spans else {}
        return RagRecord(
            question=self._text("question", values),
            contexts=self._contexts(values),
            response=self._text("answer", values),
            record_id=identifier_of(self._cell("id", values)) or f"row-{row}",
            framework="table",
            parent=self._span(row, values) if self._with_spans else None,
            session_id=identifier_of(self._cell("session_id", values)),
            user_id=identifier_of(self._cell("user_id", values)),
            metadata={
                **{name: str(values[name]) for name in self._dimensions if not is_missing(values.get(name))},
                **metadata_of(self._cell("metadata", values)),
            },
            retrievals=self._retrievals(values, times),
            **times,
        )

    def _cell(self, part: str, values: Mapping[str, Any]) -> Any:
        reader = (self._readers or {}).get(part)
        if reader is None:
            return None
        try:
            return reader(values)
        except Exception as error:  # noqa: BLE001 - of a user's function; its message may quote the row
            raise CellError(f"the function for the {part} raised {type(error).__name__}") from None

    def _text(self, part: str, values: Mapping[str, Any]) -> str | None:
        cell = self._cell(part, values)
        try:
            text = text_of(cell)
            if self._tool == "TruLens" and text and text[0] == text[-1] == '"':  # it exports texts as JSON has them
                text = text_of(json_of(text)) or text
        except CellError as error:
            raise CellError(f"the {'response' if part == 'answer' else part} {error}") from None
        _require_room(part, (text or "",))
        return text

    def _retrievals(self, values: Mapping[str, Any], times: Mapping[str, int]) -> tuple[Retrieval, ...]:
        """What was retrieved, where the table tells that from what reached the prompt."""
        found = self._contexts(values, part="retrieved")
        at = times.get("started_ns", 0)
        return (Retrieval(name="search", query=None, started_ns=at, ended_ns=at, contexts=found),) if found else ()

    def _contexts(self, values: Mapping[str, Any], part: str = "contexts") -> Any:
        cell = self._cell(part, values)
        try:
            contexts = contexts_of(cell, separator="|" if self._tool == "DeepEval" else None)  # in its CSV files
        except CellError as error:
            raise CellError(f"the {'contexts' if part == 'contexts' else 'retrieved documents'} {error}") from None
        _require_room(part, (context.text for context in contexts or ()))
        return contexts

    def _span(self, row: int, values: Mapping[str, Any]) -> SpanAnchor | None:
        try:
            return span_of(self._cell("trace_id", values), self._cell("span_id", values))
        except CellError as error:
            self.span_trouble_count += 1
            if len(self.span_troubles) < _TROUBLES_KEPT:
                self.span_troubles[row] = str(error)
            return None

    def _times(self, values: Mapping[str, Any]) -> dict[str, Any]:
        times: dict[str, Any] = {}
        for part in ("started", "ended"):
            try:
                times[f"{part}_ns"] = nanoseconds_of(self._cell(part, values))
            except CellError as error:  # noqa: PERF203 - each may be the one
                raise CellError(f"the column {part} {error}") from None
        if times["started_ns"] is None:
            times["started_ns"] = times["ended_ns"]
        return {name: moment for name, moment in times.items() if moment is not None}


def _require_room(part: str, texts: Iterable[str]) -> None:
    characters = sum(map(len, texts))
    if characters > MAX_CELL:
        raise CellError(f"the column {part} has {characters:,} characters, which are more than {MAX_CELL:,}")


_TROUBLES_KEPT = 100
