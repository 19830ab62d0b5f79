"""People's labels of responses, and labelled records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ragspan.exceptions import ConfigurationError, RecordError
from ragspan.record_json import read_json
from ragspan.records import RagRecord

GOOD: Final = frozenset({"1", "true", "yes", "pass", "passed", "good", "correct", "supported", "grounded", "faithful"})
BAD: Final = frozenset(
    {"0", "false", "no", "fail", "failed", "bad", "incorrect", "wrong", "unsupported", "ungrounded", "hallucinated"}
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
            found += [_labelled(read_json(line))] if line.strip() else []
        except (RecordError, ValueError) as error:  # noqa: PERF203 - the message needs the row
            raise ConfigurationError(f"the anchors {path!r}: row {row} {error}") from None
    if not found:
        raise ConfigurationError(f"the anchors {path!r}: there is no row")
    return found


def _labelled(row: Any) -> tuple[RagRecord, bool]:
    if not isinstance(row, dict):
        raise ValueError("should be an object")  # noqa: TRY004 - an error of the file, not of the program
    for name in ("question", "response"):
        if not isinstance(row.get(name), str):
            raise ValueError(f"should have a text as {name!r}")  # noqa: TRY004
    contexts = row.get("contexts")
    if not isinstance(contexts, list) or not all(isinstance(context, str) for context in contexts):
        raise ValueError("should have a list of texts as 'contexts'")
    record = RagRecord(question=row["question"], contexts=contexts, response=row["response"])
    record = replace(record, record_id=str(row["id"])) if "id" in row else record
    return record, label_of(row.get("label"))
