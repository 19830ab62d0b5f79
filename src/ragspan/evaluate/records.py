"""Turns the rows of a table into records."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from ragspan.evaluate import cells
from ragspan.evaluate.cells import CellError, cell_text, identifier_of, is_missing, json_of
from ragspan.evaluate.columns import (
    LABEL,
    NEEDED,
    CellReader,
    ColumnChoices,
    Row,
    paths_of,
    reader_of,
    tool_of,
    with_recognized,
    word,
)
from ragspan.evaluate.opening import MAX_CELL, Table, TableRow
from ragspan.evaluate.rows import BadRow, EvaluatedRow
from ragspan.exceptions import RecordError
from ragspan.records import Background, RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan.redaction import RedactionError, redact_from, redacted

_T = TypeVar("_T")
_REFERENCES = re.compile(r"(reference|ground_?truths?|expected_(output|response))(\..*)?", re.IGNORECASE)


class RecordReader:
    """Reads records from the rows of one table.

    Args:
        choices: the columns to read.
        table: what is known of it beforehand.
        with_spans: also read the spans that the answers belong to, and the answers' times.
        dimensions: columns that become entries of the metadata, where the table has them.
        by: those of them that the table has to have.

    Raises:
        TableError: a column is missing, or several may be meant.
        ConfigurationError: `RAGSPAN_REDACT` names no function.
    """

    def __init__(
        self,
        choices: ColumnChoices,
        table: Table,
        *,
        with_spans: bool = False,
        dimensions: Sequence[str] = (),
        by: Sequence[str] = (),
    ) -> None:
        self._choices = {part: choice for part, choice in choices.items() if part != LABEL}
        paths = paths_of(table.columns, table.sample)
        self._label = reader_of(LABEL, choices[LABEL], paths) if LABEL in choices else None
        self._by = {name: reader_of("by", name, paths) for name in by if table.sample}
        self._with_spans = with_spans
        self._dimensions = dimensions
        self._readers: dict[str, CellReader] | None = None
        self._redact = redact_from(None)
        self._tool: str | None = None
        several = [part for part, choice in choices.items() if isinstance(choice, (list, tuple)) and len(choice) > 1]
        self._several = frozenset(several)
        self.columns_read = ""
        """What is read as what, in a line."""
        self.columns: dict[str, str] = {}
        """What each part is read from; to compare with those of an earlier run."""
        self.traced = 0
        """Records that belong to a span."""
        self.span_troubles = 0
        """Rows whose ids name no span."""
        self.span_trouble: BadRow | None = None
        """The first of them, which is scored all the same."""
        if table.sample and all(map(self._is_record, table.sample)):
            self.columns_read = "reading records as RagRecord.to_json writes them"
        elif table.sample:
            self._find_columns(table.columns, table.sample)

    def read(self, entry: TableRow) -> EvaluatedRow | BadRow:
        """The row with its record, and without outcomes; or what is wrong with it."""
        try:
            record = entry.data if isinstance(entry.data, RagRecord) else self._record(entry, entry.data)
            if self._redact is not None:
                record = redacted(record, self._redact)
            label = None if isinstance(entry.data, RagRecord) else self._read(LABEL, entry.data, cells.label_in)
        except (CellError, RedactionError) as error:
            return BadRow(row=entry.row, line=entry.line, reason=str(error))
        self.traced += record.parent is not None
        return EvaluatedRow(row=entry.row, record=record, label=label)

    def _find_columns(self, columns: Sequence[str], sample: Sequence[Row]) -> None:
        paths = paths_of(columns, sample)
        choices = with_recognized(self._choices, paths)
        self._readers = {part: reader_of(part, choice, paths) for part, choice in choices.items()}
        self.columns = {
            part: " and ".join(map(_name_of, choice if isinstance(choice, (list, tuple)) else [choice]))
            for part, choice in choices.items()
        }
        self._tool = tool_of(self.columns)
        unread = [name for name in columns if _REFERENCES.fullmatch(name) and name not in self.columns.values()]
        self.columns_read = "reading " + ", ".join(f"{word(part)} from {self.columns[part]!r}" for part in NEEDED)
        self.columns_read += f" (the names of {self._tool})" if self._tool not in {None, "ragspan"} else ""
        self.columns_read += f"; not {', '.join(map(repr, unread))}: no metric needs a reference" if unread else ""

    def _is_record(self, values: Row) -> bool:
        """Whether `RagRecord.to_json` wrote the row: nothing else has these three, the last as a list."""
        has_fields = "record_id" in values and "status" in values and isinstance(values.get("retrievals"), list)
        return has_fields and not self._choices

    def _record(self, entry: TableRow, values: Row) -> RagRecord:
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
        found_by = {name: values.get(name) for name in self._dimensions} | {
            name: by(values) for name, by in self._by.items()
        }
        dimensions = {name: str(value) for name, value in found_by.items() if not is_missing(value)}
        return RagRecord(
            question=self._text("question", values),
            contexts=self._contexts("contexts", values),
            response=self._text("answer", values),
            background=self._background(values),
            record_id=self._read("id", values, identifier_of) or f"row-{entry.row}",
            framework="table",
            parent=self._span(entry, values) if self._with_spans else None,
            session_id=self._read("session_id", values, identifier_of),
            user_id=self._read("user_id", values, identifier_of),
            metadata=dimensions | self._read("metadata", values, cells.metadata_of),
            retrievals=(search,) if found else (),
            **times,
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

    def _text(self, part: str, values: Row) -> str | None:
        text = self._read(part, values, cell_text)
        if self._tool == "TruLens" and text and text[0] == text[-1] == '"':  # it exports texts as JSON has them
            text = cell_text(json_of(text)) or text
        _require_room(part, (text or "",))
        return text

    def _contexts(self, part: str, values: Row) -> tuple[RetrievedContext, ...] | None:
        separator = "|" if self._tool == "DeepEval" else None  # in its CSV files
        contexts = self._read(
            part, values, partial(self._joined if part in self._several else cells.contexts_of, separator=separator)
        )
        _require_room(part, (context.text for context in contexts or ()))
        return contexts

    def _joined(self, cells_of_columns: Sequence[Any], *, separator: str | None) -> tuple[RetrievedContext, ...] | None:
        """The contexts of several columns, in their order; None where none of them says anything."""
        found = [cells.contexts_of(cell, separator=separator) for cell in cells_of_columns]
        return None if all(one is None for one in found) else tuple(context for one in found for context in one or ())

    def _background(self, values: Row) -> tuple[Background, ...]:
        background = self._read("background", values, cells.background_of)
        _require_room("background", (one.text for one in background))
        return background

    def _span(self, entry: TableRow, values: Row) -> SpanAnchor | None:
        try:
            trace, span = (self._read(part, values, identifier_of) for part in ("trace_id", "span_id"))
            return cells.span_of(trace, span)
        except CellError as error:
            self.span_troubles += 1
            self.span_trouble = self.span_trouble or BadRow(row=entry.row, line=entry.line, reason=str(error))
            return None

    def _times(self, values: Row) -> dict[str, Any]:
        started, ended = (self._read(part, values, cells.nanoseconds_of) for part in ("started", "ended"))
        times = {"started_ns": ended if started is None else started, "ended_ns": ended}
        return {name: moment for name, moment in times.items() if moment is not None}


def _name_of(choice: object) -> str:
    return choice if isinstance(choice, str) else getattr(choice, "__qualname__", type(choice).__name__)


def _require_room(part: str, texts: Iterable[str]) -> None:
    characters = sum(map(len, texts))
    if characters > MAX_CELL:
        raise CellError(f"the column {part} has {characters:,} characters, which are more than {MAX_CELL:,}")
