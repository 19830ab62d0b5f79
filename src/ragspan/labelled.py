"""People's labels of responses, and labelled records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ragspan.exceptions import ConfigurationError, RecordError
from ragspan.record_json import read_json
from ragspan.records import RagRecord

GOOD: Final = frozenset(
    {"1", "true", "yes", "y", "pass", "passed", "good", "correct", "supported", "grounded", "faithful"}
)
BAD: Final = frozenset(
    {
        "0",
        "false",
        "no",
        "n",
        "fail",
        "failed",
        "bad",
        "incorrect",
        "wrong",
        "unsupported",
        "ungrounded",
        "hallucinated",
    }
)
_SHOWN: Final = 60  # characters


def label_of(cell: object) -> bool:
    """Whether the label says that a response is good.

    Raises:
        ValueError: it is not a label; the message continues "row 3 ".
    """
    word = str(cell).strip().lower().removesuffix(".0")
    if word in GOOD or word in BAD:
        return word in GOOD
    raise ValueError(
        f"has the label {str(cell)[:_SHOWN]!r}, but should have one of {', '.join(sorted(GOOD))} for a good response,"
        f" one of {', '.join(sorted(BAD))} for a bad one"
    )


def labelled_records(path: str) -> list[tuple[RagRecord, bool]]:
    """The records of a JSONL file, and whether the response of each is good.

    Each row is an object with `question`, `contexts` (a list of texts), `response` and `label`, and may have an `id`.

    Raises:
        ConfigurationError: the file cannot be read, or a row is wrong; the message names it.
    """
    try:
        lines = Path(path).read_text("utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the anchors {path!r} cannot be read: {error}") from None
    found = []
    for row, line in enumerate(lines, start=1):
        try:
            found += [_labelled(line)] if line.strip() else []
        except (RecordError, ValueError) as error:  # noqa: PERF203 - the message needs the row
            raise ConfigurationError(f"the anchors {path!r}: row {row} {error}") from None
    if not found:
        raise ConfigurationError(f"the anchors {path!r}: there is no row")
    return found


@dataclass(frozen=True, kw_only=True)
class _Row:
    question: str
    contexts: list[str]
    response: str
    label: str | float | bool | None = None
    id: str | int | None = None


def _labelled(line: str) -> tuple[RagRecord, bool]:
    import msgspec

    try:
        row = msgspec.convert(read_json(line), _Row)
    except msgspec.ValidationError as error:
        raise ValueError(f"is wrong: {error}") from None
    record = RagRecord(question=row.question, contexts=row.contexts, response=row.response)
    record = record if row.id is None else replace(record, record_id=str(row.id))
    return record, label_of(row.label)
