"""Where in a row a record's parts are: a column's name, a path into a column of dictionaries, or a function of the row."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ragspan.datasets.cells import is_missing, json_of
from ragspan.exceptions import ConfigurationError, TableError

Row: TypeAlias = Mapping[str, Any]
ColumnChoice: TypeAlias = "str | Callable[[Row], Any]"
CellReader: TypeAlias = Callable[[Row], Any]

DEFAULT_ANSWER_COLUMN = "answer"


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnChoices:
    """Which columns a user names. Of the optional ones, None means the one of the standard name, if the table has it."""

    question: ColumnChoice = "question"
    contexts: ColumnChoice = "contexts"
    answer: ColumnChoice = DEFAULT_ANSWER_COLUMN
    id: ColumnChoice | None = None
    session_id: ColumnChoice | None = None
    user_id: ColumnChoice | None = None
    metadata: ColumnChoice | None = None
    trace_id: ColumnChoice | None = None
    span_id: ColumnChoice | None = None
    started: ColumnChoice | None = None
    ended: ColumnChoice | None = None

    def described(self) -> dict[str, str]:
        """For a reader, and to compare with those of an earlier run; functions go by their name."""
        named = {part: getattr(self, part) for part in self.__slots__}
        return {
            part: choice if isinstance(choice, str) else getattr(choice, "__qualname__", type(choice).__name__)
            for part, choice in named.items()
            if choice is not None
        }


def answer_column(answer: ColumnChoice, ground_truth: ColumnChoice | None) -> ColumnChoice:
    """The column of the answer, which may go by two names.

    Raises:
        ConfigurationError: both are given, and differ.
    """
    if ground_truth is None or ground_truth == answer:
        return answer
    if answer != DEFAULT_ANSWER_COLUMN:
        raise ConfigurationError(
            f"answer_column is {answer!r} and ground_truth_column is {ground_truth!r}, but the two are names for the same"
            " thing, the answer that is scored: give one of them"
        )
    return ground_truth


def readers_for(choices: ColumnChoices, columns: Sequence[str], sample: Sequence[Row]) -> dict[str, CellReader]:
    """How to read each part of a record that the table has.

    Args:
        choices: the user's.
        columns: the table's.
        sample: some of its first rows, in which paths are looked for.

    Raises:
        TableError: a column is missing; the message lists those there are and names the nearest.
    """
    readers = {}
    for part in choices.__slots__:
        choice = getattr(choices, part)
        if choice is None and part in columns:
            choice = part
        if choice is not None:
            readers[part] = choice if callable(choice) else _reader(part, choice, columns, sample)
    return readers


def _reader(part: str, name: str, columns: Sequence[str], sample: Sequence[Row]) -> CellReader:
    if name in columns:
        return lambda row: row.get(name)
    for root, path in _splits(name):
        if root in columns:
            _require_path(part, name, root, path, sample)
            return lambda row: _follow(row.get(root), path)
    raise TableError(_missing(part, name, columns))


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


def _require_path(part: str, name: str, root: str, path: Sequence[str], sample: Sequence[Row]) -> None:
    """Raise unless some row has what the path leads to, or no row has anything to go by."""
    above = [_follow(row.get(root), path[:-1]) for row in sample]
    objects = [json_of(cell) if isinstance(cell, str) else cell for cell in above]
    keys = list(dict.fromkeys(str(key) for cell in objects if isinstance(cell, Mapping) for key in cell))
    if path[-1] in keys or (not keys and all(map(is_missing, above))):
        return
    parent = name.rpartition(".")[0]
    if keys:
        raise TableError(_missing(part, name, [f"{parent}.{key}" for key in keys]))
    raise TableError(f"there is no {name!r} to read the {part} from: {parent!r} holds no dictionaries; {_hint(part)}")


def _missing(part: str, name: str, there: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, there, n=1, cutoff=0.5)
    guess = f"; did you mean {close[0]!r}?" if close else f"; {_hint(part)}"
    return f"there is no column {name!r} to read the {part} from; there are: {', '.join(map(repr, there))}{guess}"


def _hint(part: str) -> str:
    argument = f"{part}_column"
    return f"name the right one with {argument}= or --{argument.replace('_', '-')}"
