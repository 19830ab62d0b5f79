"""Turns the rows of a table into records.

A part of a record is in a column, at a path into a column of dictionaries, or what a function makes of the row. Parts that
nobody names are recognised by the names that evaluation tools give them.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from ragspan.datasets import cells
from ragspan.datasets.cells import CellError, identifier_of, is_missing, json_of, text_of
from ragspan.datasets.results import BadRow, EvaluatedRow
from ragspan.datasets.tables import MAX_CELL, Table, TableRow
from ragspan.exceptions import ConfigurationError, RecordError, TableError
from ragspan.labelled import BAD, GOOD, label_of
from ragspan.records import RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan.redaction import RedactionError, redact_from, redacted

_T = TypeVar("_T")
Row: TypeAlias = Mapping[str, Any]
ColumnChoice: TypeAlias = "str | Callable[[Row], Any]"
ColumnChoices: TypeAlias = Mapping[str, ColumnChoice]
"""The columns that a user names, by part."""
CellReader: TypeAlias = Callable[[Row], Any]

PARTS = (
    *("question", "contexts", "answer"),
    *("id", "session_id", "user_id", "metadata", "retrieved", "trace_id", "span_id", "started", "ended"),
)
"""Of a record. The first three are recognised by many names, an id by a few, the others by these."""
_NEEDED = PARTS[:3]
_QUESTIONS = ("question", "user_input", "query", "input", "prompt")
_CONTEXTS = ("contexts", "retrieved_contexts", "retrieval_context", "context", "documents", "source_documents")
_ANSWERS = ("answer", "response", "actual_output", "output")
_NAMES: Mapping[str, tuple[str, ...]] = {  # the last ones are LangSmith's, which puts all of it into dictionaries
    "question": (*_QUESTIONS, *(f"{prefix}.{name}" for name in _QUESTIONS for prefix in ("inputs", "input"))),
    "contexts": (*_CONTEXTS, *(f"outputs.{name}" for name in _CONTEXTS)),
    "answer": (*_ANSWERS, *(f"outputs.{name}" for name in _ANSWERS)),
}
_LABEL = "label"
"""What people say; read from a column that is named, and only there."""
_IDS = ("id", "record_id", "example_id")
_TOOLS: Mapping[tuple[str, ...], str] = {
    ("question", "contexts", "answer"): "ragspan",  # and of Ragas before 0.2
    ("question", "contexts", "response"): "ragspan",
    ("user_input", "retrieved_contexts", "response"): "Ragas",
    ("input", "retrieval_context", "actual_output"): "DeepEval",
    ("input", "contexts", "output"): "TruLens",
    ("input", "context", "output"): "TruLens",
}
"""Whose columns have these names. A table that has all three of a tool is read as that tool's, whatever else it has."""
_REFERENCES = re.compile(r"(reference|ground_?truths?|expected_(output|response))(\..*)?", re.IGNORECASE)
_KNOWN_SHOWN, _NAMES_SHOWN, _LONGEST_SHOWN = 6, 40, 100
_TROUBLES_KEPT = 100
_WORDS = {"answer": "response", "retrieved": "retrieved documents", "started": "start", "ended": "end"}


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
        self._choices = {part: choice for part, choice in choices.items() if part != _LABEL}
        self._label = _reader(_LABEL, choices[_LABEL], table.columns, table.sample) if _LABEL in choices else None
        self._with_spans = with_spans
        self._dimensions = dimensions
        self._readers: dict[str, CellReader] | None = None
        self._redact = redact_from(None)
        self._tool: str | None = None
        self.told = ""
        """What is read as what, in a line."""
        self.columns = _described(self._choices)
        """What each part is read from; to compare with those of an earlier run."""
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
            label = self._label_of(entry.data)
        except (CellError, RedactionError) as error:
            return BadRow(row=entry.row, line=entry.line, reason=str(error))
        self.traced += record.parent is not None
        return EvaluatedRow(row=entry.row, record=record, label=label)

    def _label_of(self, data: Row | RagRecord) -> bool | None:
        cell = None if isinstance(data, RagRecord) else self._cell(_LABEL, data)
        if is_missing(cell) or not str(cell).strip():
            return None
        try:
            return label_of(cell)
        except ValueError:  # whose message quotes the cell
            raise CellError(f"the label is none of {', '.join(sorted(GOOD | BAD))}") from None

    def _find_columns(self, columns: Sequence[str], sample: Sequence[Row]) -> None:
        choices = recognized(self._choices, columns, sample)
        self._readers = readers_for(choices, columns, sample)
        self.columns = _described(choices)
        self._tool = _tool_of(self.columns)
        parts = ", ".join(f"{_word(part)} from {self.columns[part]!r}" for part in _NEEDED if part in self.columns)
        unread = [name for name in columns if _REFERENCES.fullmatch(name) and name not in self.columns.values()]
        self.told = f"reading {parts}"
        self.told += f" (the names of {self._tool})" if self._tool not in {None, "ragspan"} else ""
        self.told += f"; not {', '.join(map(repr, unread))}: no metric needs a reference" if unread else ""

    def _is_record(self, values: Row) -> bool:
        """Whether `RagRecord.to_json` wrote the row: nothing else has these three, the last as a list."""
        has_fields = "record_id" in values and "status" in values and isinstance(values.get("retrievals"), list)
        return has_fields and not self._choices

    def _record(self, row: int, values: Row) -> RagRecord:
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
            metadata=dimensions | cells.metadata_of(self._cell("metadata", values)),
            retrievals=(search,) if found else (),
            **times,
        )

    def _cell(self, part: str, values: Row) -> Any:
        reader = self._label if part == _LABEL else (self._readers or {}).get(part)
        try:
            return reader(values) if reader else None
        except Exception as error:  # noqa: BLE001 - of a user's function; its message may quote the row
            raise CellError(f"the function for the {part} raised {type(error).__name__}") from None

    def _parsed(self, part: str, values: Row, parse: Callable[[Any], _T]) -> _T:
        cell = self._cell(part, values)
        try:
            return parse(cell)
        except CellError as error:
            raise CellError(f"the {_word(part)} {error}") from None

    def _text(self, part: str, values: Row) -> str | None:
        text = self._parsed(part, values, text_of)
        if self._tool == "TruLens" and text and text[0] == text[-1] == '"':  # it exports texts as JSON has them
            text = text_of(json_of(text)) or text
        _require_room(part, (text or "",))
        return text

    def _contexts(self, part: str, values: Row) -> tuple[RetrievedContext, ...] | None:
        separator = "|" if self._tool == "DeepEval" else None  # in its CSV files
        contexts = self._parsed(part, values, partial(cells.contexts_of, separator=separator))
        _require_room(part, (context.text for context in contexts or ()))
        return contexts

    def _span(self, row: int, values: Row) -> SpanAnchor | None:
        try:
            return cells.span_of(self._cell("trace_id", values), self._cell("span_id", values))
        except CellError as error:
            self.span_trouble_count += 1
            if len(self.span_troubles) < _TROUBLES_KEPT:
                self.span_troubles[row] = str(error)
            return None

    def _times(self, values: Row) -> dict[str, Any]:
        started, ended = (self._parsed(part, values, cells.nanoseconds_of) for part in ("started", "ended"))
        times = {"started_ns": ended if started is None else started, "ended_ns": ended}
        return {name: moment for name, moment in times.items() if moment is not None}


def _require_room(part: str, texts: Iterable[str]) -> None:
    characters = sum(map(len, texts))
    if characters > MAX_CELL:
        raise CellError(f"the column {part} has {characters:,} characters, which are more than {MAX_CELL:,}")


# Columns --------------------------------------------------------------------------------------------------------------


def column_choices(options: Mapping[str, Any]) -> ColumnChoices:
    """The columns that `answer_column` and the like name; the answer may also be called `ground_truth`.

    Raises:
        ConfigurationError: both names of the answer are given, and differ.
    """
    answer, ground_truth = options["answer_column"], options["ground_truth_column"]
    if answer is not None and ground_truth is not None and ground_truth != answer:
        raise ConfigurationError(
            f"answer_column is {answer!r} and ground_truth_column is {ground_truth!r}, but the two are names for the same"
            " thing, the answer that is scored: give one of them"
        )
    chosen = {part: options.get(f"{part}_column") for part in (*PARTS, _LABEL)} | {"answer": answer or ground_truth}
    return {part: choice for part, choice in chosen.items() if choice is not None}


def recognized(choices: ColumnChoices, columns: Sequence[str], sample: Sequence[Row]) -> ColumnChoices:
    """The choices, with a column for the question, the contexts and the answer wherever none is named.

    Paths are looked for in the sample, which has some of the first rows.

    Raises:
        TableError: no column has a known name, or several do; the message says how to name one.
    """
    there = _with_paths(columns, sample)
    wanted = [part for part in _NEEDED if part not in choices]
    found = {part: dict(reversed([*_known(part, there)])) for part in wanted}  # of equal names the first
    of_tools = {
        tuple(found[part][name] for part, name in zip(_NEEDED, tool, strict=True) if part in wanted)
        for tool in _TOOLS
        if all(name in found[part] for part, name in zip(_NEEDED, tool, strict=True) if part in wanted)
    }
    if missing := [part for part in wanted if not found[part]]:
        raise _missing(missing, there)
    chosen = of_tools.pop() if len(of_tools) == 1 else [_only(part, there) for part in wanted]
    return {**choices, **dict(zip(wanted, chosen, strict=True))}


def readers_for(choices: ColumnChoices, columns: Sequence[str], sample: Sequence[Row]) -> dict[str, CellReader]:
    """How to read each part of a record that the table has.

    Raises:
        TableError: a column is missing; the message lists those there are and names the nearest.
    """
    readers = {}
    for part in PARTS:
        names = _IDS if part == "id" else (part,)
        choice = choices.get(part, next((name for name in names if name in columns), None))
        if choice is not None:
            readers[part] = _reader(part, choice, columns, sample)
    return readers


def _described(choices: ColumnChoices) -> dict[str, str]:
    """For a reader; functions are called by their name."""
    return {
        part: choice if isinstance(choice, str) else getattr(choice, "__qualname__", type(choice).__name__)
        for part, choice in choices.items()
    }


def _tool_of(columns: Mapping[str, str]) -> str | None:
    """The tool whose names the three columns have."""
    names = [_plain(columns.get(part, "")) for part in _NEEDED]
    if names[0].startswith(("inputs.", "input.")) and names[2].startswith("outputs."):
        return "LangSmith"
    return {tuple(map(_plain, known)): tool for known, tool in _TOOLS.items()}.get(tuple(names))


def _known(part: str, there: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The known names that the table has for a part, and how the table writes them."""
    names = {_plain(name): name for name in _NAMES[part]}
    found = [(names[plain], column) for column in there if (plain := _plain(column)) in names]
    found.sort(key=lambda pair: _NAMES[part].index(pair[0]))
    for name, column in found:
        if not any(other.startswith(f"{column}.") for _, other in found):  # a dictionary that has the part in it
            yield name, column


def _plain(name: str) -> str:
    """`retrieval_context`, `retrievalContext` and `Retrieval Context` are one name."""
    return re.sub(r"[\s_-]", "", name).lower()


def _only(part: str, there: Sequence[str]) -> str:
    found = [column for _, column in _known(part, there)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(map(repr, found))
    raise TableError(f"several columns may be the {_word(part)}: {names}; {_hint(part)}")


def _missing(parts: Sequence[str], there: Sequence[str]) -> TableError:
    """All that no column is known for, so that one more run is enough."""
    sought = " or ".join(f"the {_word(part)} (known names: {', '.join(_NAMES[part][:_KNOWN_SHOWN])})" for part in parts)
    close = (difflib.get_close_matches(known, there, 1, 0.8) for part in parts for known in _NAMES[part])
    guess = next((f"; is it {names[0]!r}?" for names in close if names), "")
    return TableError(f"no column looks like {sought}; there are: {_listed(there)}{guess}; {_hint(*parts)}")


def _with_paths(columns: Sequence[str], sample: Sequence[Row]) -> list[str]:
    """The columns, and for those of dictionaries the paths into them."""
    return [
        name
        for column in columns
        for name in (column, *(f"{column}.{key}" for key in _keys(row.get(column) for row in sample)))
    ]


def _keys(values: Iterable[Any]) -> Iterable[str]:
    objects = (json_of(cell) if isinstance(cell, str) and cell.lstrip()[:1] == "{" else cell for cell in values)
    return dict.fromkeys(str(key) for cell in objects if isinstance(cell, Mapping) for key in cell)


def _reader(part: str, name: ColumnChoice, columns: Sequence[str], sample: Sequence[Row]) -> CellReader:
    if callable(name):
        return name
    if name in columns:
        return lambda row: row.get(name)
    keys = name.split(".")
    for place in range(len(keys) - 1, 0, -1):  # the longest name of a column comes first
        root, path = ".".join(keys[:place]), keys[place:]
        above = [_follow(row.get(root), path[:-1]) for row in sample]
        if root in columns and (path[-1] in _keys(above) or all(map(is_missing, above))):
            return lambda row: _follow(row.get(root), path)
    there = _with_paths(columns, sample)
    close = difflib.get_close_matches(name, there, 1, 0.5)
    guess = f"did you mean {close[0]!r}?" if close else _hint(part)
    raise TableError(
        f"there is no column {name!r} to read the {_word(part)} from; there are: {_listed(there)}; {guess}"
    )


def _follow(cell: Any, path: Sequence[str]) -> Any:
    """The value at the end of the path, or None."""
    for key in path:
        if isinstance(cell, str):
            cell = json_of(cell)  # a CSV file has its dictionaries as text
        if not isinstance(cell, Mapping):
            return None
        cell = cell.get(key)
    return cell


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(repr(name[:_LONGEST_SHOWN]) for name in names[:_NAMES_SHOWN]) + more if names else "none"


def _word(part: str) -> str:
    return _WORDS.get(part, part)


def _hint(*parts: str) -> str:
    options = [f"{part}_column= or --{part.replace('_', '-')}-column" for part in parts]
    return f"name the right one with {', '.join(options)}"
