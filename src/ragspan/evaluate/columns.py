"""Which columns of a table hold the parts of a record.

A part is in a column, at a path into a column of dictionaries, or what a function makes of the row. Parts that nobody names
are recognised by the names that evaluation tools give them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ragspan import field_names
from ragspan.evaluate.cells import json_of
from ragspan.exceptions import TableError

Row: TypeAlias = Mapping[str, Any]
ColumnChoice: TypeAlias = "str | Callable[[Row], Any] | Sequence[str | Callable[[Row], Any]]"
"""Several hold contexts, one beside the other."""
ColumnChoices: TypeAlias = Mapping[str, ColumnChoice]
"""What a user names, by part."""
Paths: TypeAlias = Mapping[str, Sequence[str]]
"""The columns, and the paths into those of dictionaries, each with the keys that lead there."""

NEEDED = ("question", "contexts", "answer")
PARTS = (*NEEDED, "id", "metadata", "retrieved", "background")
"""Of a record. The first three are recognised by many names, an id by a few, the others by these."""
LABEL = "label"
"""What people say; read from a column that is named, and only there."""
_IDS = ("id", "record_id", "example_id")
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


def column_choices(options: Mapping[str, Any]) -> ColumnChoices:
    """The columns that `answer_column` and the like name."""
    chosen = {part: options.get(f"{part}_column") for part in (*PARTS, LABEL)}
    return {part: choice for part, choice in chosen.items() if choice is not None and choice != []}


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
    optional = {part: _IDS if part == "id" else (part,) for part in PARTS if part not in NEEDED}
    found = {part: name for part, names in optional.items() for name in reversed(names) if name in paths}
    known = {part: _known(part, paths) for part in NEEDED if part not in choices}
    of_tools = []
    for names in _TOOLS:
        wanted = dict(zip(NEEDED, names, strict=True))
        own = {part: column for part, those in known.items() for column in those if _plain(column) == wanted[part]}
        if len(own) == len(known) and own not in of_tools:
            of_tools.append(own)
    if len(of_tools) == 1:
        return {**found, **of_tools[0], **choices}
    problems = [
        f"several columns may be the {word(part)}: {', '.join(map(repr, those))}"
        if those
        else f"no column looks like the {word(part)} (known names: {', '.join(_NAMES[part][:_KNOWN_SHOWN])})"
        for part, those in known.items()
        if len(those) != 1
    ]
    if problems:
        unclear = [part for part, those in known.items() if len(those) != 1]
        raise TableError(f"{'; '.join(problems)}; there are: {_listed(paths)}; {_hint(*unclear)}")
    return {**found, **{part: those[0] for part, those in known.items()}, **choices}


def _known(part: str, paths: Paths) -> list[str]:
    """The columns that have a known name, in its plain form; no dictionary that has the part in it."""
    names = set(map(_plain, _NAMES[part]))
    found = [column for column in paths if _plain(column) in names]
    return [column for column in found if not any(one.startswith(f"{column}.") for one in found)]


def _plain(name: str) -> str:
    """`retrieval_context`, `retrievalContext` and `Retrieval Context` are one name."""
    return re.sub(r"[\s_-]", "", name).lower()


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
        raise TableError(f"there is no column {choice!r} for the {word(part)}; there are: {_listed(paths)}; {guess}")

    def follow(row: Any) -> Any:
        for key in path:
            if isinstance(row, str):
                row = json_of(row)  # a CSV file has its dictionaries as text
            if not isinstance(row, Mapping):
                return None
            row = row.get(key)
        return row

    return follow


def word(part: str) -> str:
    """What a part is called in messages."""
    return _WORDS.get(part, part)


def _listed(paths: Paths) -> str:
    names = list(paths)
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(map(repr, names[:_NAMES_SHOWN])) + more or "none"


def _hint(*parts: str) -> str:
    options = [f"{part}_column= or --{part}-column" for part in parts]
    several = "; contexts in several columns: give it once for each" if "contexts" in parts else ""
    return f"name the right one with {', '.join(options)}{several}"
