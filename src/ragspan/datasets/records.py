"""Turns the rows of a table into records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

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
from ragspan.datasets.columns import CellReader, ColumnChoices, described, readers_for, recognized, told, tool_of
from ragspan.datasets.results import BadRow, EvaluatedRow
from ragspan.datasets.tables import MAX_CELL, Table, TableRow
from ragspan.exceptions import RecordError
from ragspan.records import RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan.redaction import RedactionError, redact_from, redacted

_T = TypeVar("_T")
_TROUBLES_KEPT = 100
_WORDS = {
    "answer": "response",
    "retrieved": "retrieved documents",
    "started": "column started",
    "ended": "column ended",
}


class RecordReader:
    """Reads records from the rows of one table.

    Args:
        choices: the columns to read.
        table: what is known of it beforehand.
        with_spans: also read the spans that the answers belong to, and the answers' times.
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
        self.columns = described(choices)
        """What each part is read from."""
        self._may_be_records = not choices
        if table.sample and all(map(self._is_record, table.sample)):
            self.told = "reading records as RagRecord.to_json writes them"
        elif table.sample:
            self._find_columns(table.columns, table.sample)
        self.span_troubles: dict[int, str] = {}
        """Rows whose ids name no span, the first hundred of them, and why."""
        self.span_trouble_count = 0
        self.traced = 0
        """Records that belong to a span."""

    def read(self, entry: TableRow) -> EvaluatedRow | BadRow:
        """The row with its record, and without outcomes; or what is wrong with it."""
        try:
            record = entry.data if isinstance(entry.data, RagRecord) else self._record(entry.row, entry.data)
            if self._redact is not None:
                record = redacted(record, self._redact)
        except (CellError, RedactionError) as error:
            return BadRow(row=entry.row, line=entry.line, reason=str(error))
        self.traced += record.parent is not None
        return EvaluatedRow(row=entry.row, record=record)

    def _find_columns(self, columns: Sequence[str], sample: Sequence[Mapping[str, Any]]) -> None:
        choices = recognized(self._choices, columns, sample)
        self._readers = readers_for(choices, columns, sample)
        self._tool = tool_of(choices)
        self.columns = described(choices)
        self.told = told(choices, columns)

    def _is_record(self, values: Mapping[str, Any]) -> bool:
        """Whether `RagRecord.to_json` wrote the row: nothing else has these three, the last as a list."""
        has_fields = "record_id" in values and "status" in values and isinstance(values.get("retrievals"), list)
        return has_fields and self._may_be_records

    def _record(self, row: int, values: Mapping[str, Any]) -> RagRecord:
        if self._is_record(values):
            try:
                return RagRecord.from_json(json.dumps(values))
            except RecordError as error:
                raise CellError(str(error)) from None
        if self._readers is None:  # there were only records before
            self._find_columns(list(values), [values])
        times = self._times(values) if self._with_spans else {}
        at, found = times.get("started_ns", 0), self._contexts("retrieved", values)
        search = Retrieval(name="search", query=None, started_ns=at, ended_ns=at, contexts=found or ())
        dimensions = {name: str(values[name]) for name in self._dimensions if not is_missing(values.get(name))}
        return RagRecord(
            question=self._text("question", values),
            contexts=self._contexts("contexts", values),
            response=self._text("answer", values),
            record_id=identifier_of(self._cell("id", values)) or f"row-{row}",
            framework="table",
            parent=self._span(row, values) if self._with_spans else None,
            session_id=identifier_of(self._cell("session_id", values)),
            user_id=identifier_of(self._cell("user_id", values)),
            metadata=dimensions | metadata_of(self._cell("metadata", values)),
            retrievals=(search,) if found else (),
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

    def _parsed(self, part: str, values: Mapping[str, Any], parse: Callable[[Any], _T]) -> _T:
        cell = self._cell(part, values)
        try:
            return parse(cell)
        except CellError as error:
            raise CellError(f"the {_WORDS.get(part, part)} {error}") from None

    def _text(self, part: str, values: Mapping[str, Any]) -> str | None:
        text = self._parsed(part, values, text_of)
        if self._tool == "TruLens" and text and text[0] == text[-1] == '"':  # it exports texts as JSON has them
            text = text_of(json_of(text)) or text
        _require_room(part, (text or "",))
        return text

    def _contexts(self, part: str, values: Mapping[str, Any]) -> tuple[RetrievedContext, ...] | None:
        separator = "|" if self._tool == "DeepEval" else None  # in its CSV files
        contexts = self._parsed(part, values, partial(contexts_of, separator=separator))
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
        started, ended = (self._parsed(part, values, nanoseconds_of) for part in ("started", "ended"))
        times = {"started_ns": ended if started is None else started, "ended_ns": ended}
        return {name: moment for name, moment in times.items() if moment is not None}


def _require_room(part: str, texts: Iterable[str]) -> None:
    characters = sum(map(len, texts))
    if characters > MAX_CELL:
        raise CellError(f"the column {part} has {characters:,} characters, which are more than {MAX_CELL:,}")
