"""Where in a row a record's parts are: a column's name, a path into a column of dictionaries, or a function of the row.

Parts that nobody names are recognised by the names that evaluation tools give them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ragspan.datasets.cells import is_missing, json_of
from ragspan.exceptions import ConfigurationError, TableError

Row: TypeAlias = Mapping[str, Any]
ColumnChoice: TypeAlias = "str | Callable[[Row], Any]"
CellReader: TypeAlias = Callable[[Row], Any]

_PARTS = ("question", "contexts", "answer")
_QUESTIONS = ("question", "user_input", "query", "input", "prompt")
_CONTEXTS = ("contexts", "retrieved_contexts", "retrieval_context", "context", "documents", "source_documents")
_ANSWERS = ("answer", "response", "actual_output", "output")


_NAMES: Mapping[str, tuple[str, ...]] = {  # the last ones are LangSmith's, which puts all of it into dictionaries
    "question": (*_QUESTIONS, *(f"{prefix}.{name}" for name in _QUESTIONS for prefix in ("inputs", "input"))),
    "contexts": (*_CONTEXTS, *(f"outputs.{name}" for name in _CONTEXTS)),
    "answer": (*_ANSWERS, *(f"outputs.{name}" for name in _ANSWERS)),
}
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
_IDS = ("id", "record_id", "example_id")


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnChoices:
    """Which columns a user names. None means: the one of a known name, if the table has it."""

    question: ColumnChoice | None = None
    contexts: ColumnChoice | None = None
    answer: ColumnChoice | None = None
    id: ColumnChoice | None = None
    session_id: ColumnChoice | None = None
    user_id: ColumnChoice | None = None
    metadata: ColumnChoice | None = None
    retrieved: ColumnChoice | None = None
    trace_id: ColumnChoice | None = None
    span_id: ColumnChoice | None = None
    started: ColumnChoice | None = None
    ended: ColumnChoice | None = None
    label: ColumnChoice | None = None

    def described(self) -> dict[str, str]:
        """For a reader, and to compare with those of an earlier run; functions go by their name."""
        named = {part: getattr(self, part) for part in self.__slots__}
        return {
            part: choice if isinstance(choice, str) else getattr(choice, "__qualname__", type(choice).__name__)
            for part, choice in named.items()
            if choice is not None
        }


def answer_column(answer: ColumnChoice | None, ground_truth: ColumnChoice | None) -> ColumnChoice | None:
    """The column of the answer, which may go by two names.

    Raises:
        ConfigurationError: both are given, and differ.
    """
    if answer is not None and ground_truth is not None and ground_truth != answer:
        raise ConfigurationError(
            f"answer_column is {answer!r} and ground_truth_column is {ground_truth!r}, but the two are names for the same"
            " thing, the answer that is scored: give one of them"
        )
    return answer if ground_truth is None else ground_truth


def recognized(choices: ColumnChoices, columns: Sequence[str], sample: Sequence[Row]) -> ColumnChoices:
    """The choices, with a column for the question, the contexts and the answer wherever none is named.

    Args:
        choices: the user's.
        columns: the table's.
        sample: some of its first rows, in which paths are looked for.

    Raises:
        TableError: no column has a known name, or several do; the message says how to name one.
    """
    wanted = [part for part in _PARTS if getattr(choices, part) is None]
    found = {part: list(_known(part, columns, sample)) for part in wanted}
    tools = [dict(zip(_PARTS, names, strict=True)) for names in _TOOLS]
    whole = {
        tuple(next(there for name, there in found[part] if name == tool[part]) for part in wanted)
        for tool in tools
        if all(tool[part] in dict(found[part]) for part in wanted)
    }
    if len(whole) == 1:
        return replace(choices, **dict(zip(wanted, whole.pop(), strict=True)))
    return replace(choices, **{part: _only(part, found[part], columns, sample) for part in wanted})


def told(choices: ColumnChoices, columns: Sequence[str]) -> str:
    """What is read as what, in a line."""
    named = choices.described()
    text = "reading " + ", ".join(f"{_word(part)} from {named[part]!r}" for part in _PARTS if part in named)
    tool = tool_of(choices)
    text += f" (the names of {tool})" if tool not in {None, "ragspan"} else ""
    unread = [name for name in columns if _REFERENCES.fullmatch(name) and name not in named.values()]
    return text + (f"; not {', '.join(map(repr, unread))}: no metric needs a reference" if unread else "")


def tool_of(choices: ColumnChoices) -> str | None:
    """The tool whose names the three columns have."""
    named = choices.described()
    names = [_plain(named.get(part, "")) for part in _PARTS]
    if names[0].startswith(("inputs.", "input.")) and names[2].startswith("outputs."):
        return "LangSmith"
    return {tuple(map(_plain, known)): tool for known, tool in _TOOLS.items()}.get(tuple(names))


def readers_for(choices: ColumnChoices, columns: Sequence[str], sample: Sequence[Row]) -> dict[str, CellReader]:
    """How to read each part of a record that the table has.

    Args:
        choices: as `recognized` has them.
        columns: the table's.
        sample: some of its first rows, in which paths are looked for.

    Raises:
        TableError: a column is missing; the message lists those there are and names the nearest.
    """
    readers = {}
    for part in choices.__slots__:
        choice = getattr(choices, part)
        if choice is None:
            choice = next((name for name in (_IDS if part == "id" else (part,)) if name in columns), None)
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
        if not any(other.startswith(f"{column}.") for _, other in found):  # a dictionary, and the part is in it
            yield name, column


def _plain(name: str) -> str:
    """`retrieval_context`, `retrievalContext` and `Retrieval Context` are one name."""
    return re.sub(r"[\s_-]", "", name).lower()


def _only(part: str, found: Sequence[tuple[str, str]], columns: Sequence[str], sample: Sequence[Row]) -> str:
    if len(found) == 1:
        return found[0][1]
    if found:
        names = ", ".join(repr(column) for _, column in found)
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
    for root, path in _splits(name):
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


def _splits(name: str) -> Iterable[tuple[str, list[str]]]:
    """A path's column and the keys below it; the longest name of a column comes first."""
    keys = name.split(".")
    return ((".".join(keys[:place]), keys[place:]) for place in range(len(keys) - 1, 0, -1))


def _follow(cell: Any, path: Sequence[str]) -> Any:
    """What stands at the end of the path; None where it does not lead anywhere."""
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


_KNOWN_SHOWN, _NAMES_SHOWN, _LONGEST_SHOWN = 6, 40, 100
