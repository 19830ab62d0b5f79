"""Where in a row a record's parts are: a column's name, a path into a column of dictionaries, or a function of the row.

Parts that nobody names are recognised by the names that evaluation tools give them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ragspan.datasets.cells import is_missing, json_of
from ragspan.exceptions import ConfigurationError, TableError

Row: TypeAlias = Mapping[str, Any]
ColumnChoice: TypeAlias = "str | Callable[[Row], Any]"
ColumnChoices: TypeAlias = Mapping[str, ColumnChoice]
"""The columns that a user names, by part."""
CellReader: TypeAlias = Callable[[Row], Any]

PARTS = (
    *("question", "contexts", "answer"),
    *("id", "session_id", "user_id", "metadata", "retrieved", "trace_id", "span_id", "started", "ended", "label"),
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
    chosen = {part: options.get(f"{part}_column") for part in PARTS} | {"answer": answer or ground_truth}
    return {part: choice for part, choice in chosen.items() if choice is not None}


def described(choices: ColumnChoices) -> dict[str, str]:
    """For a reader, and to compare with those of an earlier run; functions are called by their name."""
    return {
        part: choice if isinstance(choice, str) else getattr(choice, "__qualname__", type(choice).__name__)
        for part, choice in choices.items()
    }


def recognized(choices: ColumnChoices, columns: Sequence[str], sample: Sequence[Row]) -> ColumnChoices:
    """The choices, with a column for the question, the contexts and the answer wherever none is named.

    Paths are looked for in the sample, which has some of the first rows.

    Raises:
        TableError: no column has a known name, or several do; the message says how to name one.
    """
    wanted = [part for part in _NEEDED if part not in choices]
    found = {part: dict(reversed([*_known(part, columns, sample)])) for part in wanted}  # of equal names the first
    of_tools = {
        tuple(found[part][name] for part, name in zip(_NEEDED, tool, strict=True) if part in wanted)
        for tool in _TOOLS
        if all(name in found[part] for part, name in zip(_NEEDED, tool, strict=True) if part in wanted)
    }
    if len(of_tools) == 1:
        return {**choices, **dict(zip(wanted, of_tools.pop(), strict=True))}
    return {**choices, **{part: _only(part, columns, sample) for part in wanted}}


def told(choices: ColumnChoices, columns: Sequence[str]) -> str:
    """What is read as what, in a line."""
    named = described(choices)
    text = "reading " + ", ".join(f"{_word(part)} from {named[part]!r}" for part in _NEEDED if part in named)
    tool = tool_of(choices)
    text += f" (the names of {tool})" if tool not in {None, "ragspan"} else ""
    unread = [name for name in columns if _REFERENCES.fullmatch(name) and name not in named.values()]
    return text + (f"; not {', '.join(map(repr, unread))}: no metric needs a reference" if unread else "")


def tool_of(choices: ColumnChoices) -> str | None:
    """The tool whose names the three columns have."""
    named = described(choices)
    names = [_plain(named.get(part, "")) for part in _NEEDED]
    if names[0].startswith(("inputs.", "input.")) and names[2].startswith("outputs."):
        return "LangSmith"
    return {tuple(map(_plain, known)): tool for known, tool in _TOOLS.items()}.get(tuple(names))


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
            readers[part] = choice if callable(choice) else _reader(part, choice, columns, sample)
    return readers


def _known(part: str, columns: Sequence[str], sample: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """The known names that the table has for a part, and how the table writes them."""
    there: dict[str, list[str]] = {}
    for column in _with_paths(columns, sample):
        there.setdefault(_plain(column), []).append(column)
    found = [(name, column) for name in _NAMES[part] for column in there.get(_plain(name), ())]
    for name, column in found:
        if not any(other.startswith(f"{column}.") for _, other in found):  # a dictionary that has the part in it
            yield name, column


def _plain(name: str) -> str:
    """`retrieval_context`, `retrievalContext` and `Retrieval Context` are one name."""
    return re.sub(r"[\s_-]", "", name).lower()


def _only(part: str, columns: Sequence[str], sample: Sequence[Row]) -> str:
    found = [column for _, column in _known(part, columns, sample)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(map(repr, found))
        raise TableError(f"several columns may be the {_word(part)}: {names}; {_hint(part)}")
    known = ", ".join(_NAMES[part][:_KNOWN_SHOWN])
    there = _with_paths(columns, sample)
    close = [name for known_name in _NAMES[part] for name in _close(known_name, there, cutoff=0.8)]
    guess = f"; is it {close[0]!r}?" if close else ""
    raise TableError(
        f"no column looks like the {_word(part)} (known names: {known}); there are: {_listed(there)}{guess}; {_hint(part)}"
    )


def _with_paths(columns: Sequence[str], sample: Sequence[Row]) -> list[str]:
    """The columns, and for those of dictionaries the paths into them."""
    return [
        name
        for column in columns
        for name in (column, *(f"{column}.{key}" for key in _keys(row.get(column) for row in sample)))
    ]


def _keys(cells: Iterable[Any]) -> Iterable[str]:
    objects = (json_of(cell) if isinstance(cell, str) and cell.lstrip()[:1] == "{" else cell for cell in cells)
    return dict.fromkeys(str(key) for cell in objects if isinstance(cell, Mapping) for key in cell)


def _reader(part: str, name: str, columns: Sequence[str], sample: Sequence[Row]) -> CellReader:
    if name in columns:
        return lambda row: row.get(name)
    keys = name.split(".")
    for place in range(len(keys) - 1, 0, -1):  # the longest name of a column comes first
        root, path = ".".join(keys[:place]), keys[place:]
        above = [_follow(row.get(root), path[:-1]) for row in sample]
        if root in columns and (path[-1] in _keys(above) or all(map(is_missing, above))):
            return lambda row: _follow(row.get(root), path)
    there = _with_paths(columns, sample)
    close = _close(name, there, cutoff=0.5)
    guess = f"did you mean {close[0]!r}?" if close else _hint(part)
    raise TableError(
        f"there is no column {name!r} to read the {_word(part)} from; there are: {_listed(there)}; {guess}"
    )


def _close(name: str, there: Sequence[str], *, cutoff: float) -> list[str]:
    return difflib.get_close_matches(name, there, n=1, cutoff=cutoff)


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
    return "response" if part == "answer" else part


def _hint(part: str) -> str:
    argument = f"{part}_column"
    return f"name the right one with {argument}= or --{argument.replace('_', '-')}"
