"""The journal of an evaluation: a line for each row that is done, so that nothing is done twice.

The first line says what is evaluated, and how. Each other line is written, in the order of the table, as soon as its row
is done, with one write: a process that is killed leaves at most a line without an end, which is cut off. The result file
is made from the journal when all rows are done.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ragspan.datasets.records import digest_of
from ragspan.datasets.results import BadRow, EvaluatedRow, ResultRow
from ragspan.exceptions import TableError
from ragspan.judges.base import ClaimVerdict, ContextRating, ContextVerdict, Rating, Vote
from ragspan.metrics import JudgedContext
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, Usage

_FORMAT = 1
_EVIDENCE = {kind.__name__: kind for kind in (Vote, Rating, ClaimVerdict, ContextVerdict, ContextRating, JudgedContext)}


def journal_of(output: Path) -> Path:
    """Where an evaluation with this output keeps the rows that are done."""
    return output.with_name(f"{output.name}.partial")


@dataclass(frozen=True, kw_only=True, slots=True)
class JournalRow:
    """A row that is done, without its texts."""

    row: int
    record_id: str
    digest: str
    """Of the texts that were judged."""
    outcomes: Mapping[str, Outcome]


class Journal:
    """A journal that rows are added to.

    Args:
        path: of the file.
        rows: that it has when it is opened.
    """

    def __init__(self, path: Path, *, rows: int = 0) -> None:
        self.path = path
        self.rows = rows
        self._file = path.open("ab", buffering=0)
        self._end = weakref.finalize(self, self._file.close)

    @classmethod
    def begin(cls, path: Path, about: Mapping[str, Any]) -> Journal:
        """A new journal.

        Raises:
            TableError: there is one already, or no file can be written there.
        """
        try:
            path.touch(mode=0o600, exist_ok=False)  # explanations in it quote answers and contexts
            path.write_bytes(_line({"journal": _FORMAT, **about}))
        except FileExistsError:
            rows = max(0, sum(1 for _ in _whole_lines(path)) - 1)
            raise TableError(
                f"{path} holds {rows} rows of an earlier run that did not come to its end: continue it with --resume"
                " (resume=True), or delete that file to begin anew"
            ) from None
        except OSError as error:
            raise TableError(f"{path} cannot be written: {error.strerror or error}") from None
        return cls(path)

    @classmethod
    def resume(cls, path: Path, about: Mapping[str, Any]) -> Journal:
        """The journal of an earlier run, without what was half written.

        Raises:
            TableError: that run was about another table, or had other settings; the message names what differs.
        """
        end, rows, header = 0, 0, b""
        for line in _whole_lines(path):
            header = header or line
            end, rows = end + len(line), rows + 1
        if header:
            _require_same(path, _parsed(path, header), json.loads(_line({"journal": _FORMAT, **about})))
        os.truncate(path, end)
        if not header:  # killed before the first line was whole
            path.write_bytes(_line({"journal": _FORMAT, **about}))
        return cls(path, rows=max(0, rows - 1))

    @classmethod
    def temporary(cls, about: Mapping[str, Any]) -> Journal:
        """A journal that is gone when nobody uses it any more."""
        descriptor, name = tempfile.mkstemp(prefix="ragspan-", suffix=".partial")
        with os.fdopen(descriptor, "wb") as file:
            file.write(_line({"journal": _FORMAT, **about}))
        journal = cls(Path(name))
        weakref.finalize(journal, Path(name).unlink, missing_ok=True)
        return journal

    def add(self, done: EvaluatedRow | BadRow) -> None:
        """Write one row.

        Raises:
            TableError: the file cannot be written, for want of space, say.
        """
        if isinstance(done, BadRow):
            plain: dict[str, Any] = {"row": done.row, "bad": done.reason, "line": done.line}
        else:
            plain = {
                "row": done.row,
                "id": done.record.record_id,
                "digest": digest_of(done.record),
                "outcomes": {metric: plain_outcome(outcome) for metric, outcome in done.outcomes.items()},
            }
        line = _line(plain)
        try:
            is_whole = self._file.write(line) == len(line)
        except OSError as error:
            raise TableError(f"{self.path} cannot be written: {error.strerror or error}") from None
        if not is_whole:  # the next try would tell why
            raise TableError(f"{self.path} cannot be written on: is there space left?")

    def done(self) -> Iterator[JournalRow | BadRow]:
        """All rows, in the order of the table.

        Raises:
            TableError: the file was changed by somebody else.
        """
        lines = _whole_lines(self.path)
        next(lines, None)
        for line in lines:
            yield _row_of(self.path, line)

    def results(self) -> Iterator[ResultRow]:
        """The lines of a result file: each record and metric."""
        for row in self.done():
            if isinstance(row, JournalRow):
                for metric, outcome in row.outcomes.items():
                    yield ResultRow.from_outcome(outcome, row=row.row, record_id=row.record_id, metric=metric)

    def close(self) -> None:
        """Write nothing more."""
        self._end()

    def remove_if_empty(self) -> bool:
        """A run that ended before its first row leaves nothing behind."""
        is_empty = sum(1 for _ in islice(_whole_lines(self.path), 2)) <= 1
        if is_empty:
            self.path.unlink(missing_ok=True)
        return is_empty

    def remove(self) -> None:
        self.close()
        self.path.unlink(missing_ok=True)


def _line(plain: Mapping[str, Any]) -> bytes:
    return json.dumps(plain, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def _whole_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line


def _parsed(path: Path, line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise TableError(f"{path} is no journal of an evaluation, or was damaged: delete it to begin anew") from None


def _row_of(path: Path, line: bytes) -> JournalRow | BadRow:
    plain = _parsed(path, line)
    try:
        if "bad" in plain:
            return BadRow(row=plain["row"], reason=plain["bad"], line=plain["line"])
        outcomes = {metric: outcome_from(outcome) for metric, outcome in plain["outcomes"].items()}
        return JournalRow(row=plain["row"], record_id=plain["id"], digest=plain["digest"], outcomes=outcomes)
    except (KeyError, TypeError, ValueError):
        raise TableError(f"{path} was damaged: delete it to begin anew") from None


def _require_same(path: Path, before: Any, now: Mapping[str, Any]) -> None:
    if not isinstance(before, dict) or before.get("journal") != _FORMAT:
        raise TableError(f"{path} is no journal of this version of ragspan: delete it to begin anew")
    changes = [
        f"{name} was {_shown(before.get(name))} and is {_shown(now.get(name))}"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    if changes:
        raise TableError(
            f"{path} is of a run that differs from this one, so it cannot be continued: {'; '.join(changes)}"
        )


def _shown(value: Any) -> str:
    return "not set" if value is None else json.dumps(value, ensure_ascii=False)


# Outcomes -------------------------------------------------------------------------------------------------------------


def plain_outcome(outcome: Outcome) -> dict[str, Any]:
    """What JSON can hold of an outcome, evidence included; fields without a value are left out."""
    plain = {"is": type(outcome).__name__, **_scalars(outcome)}
    if isinstance(outcome, Score):
        plain["value"] = float(outcome.value)
        if outcome.evidence:
            plain["evidence"] = [_plain_evidence(item) for item in outcome.evidence]
        if outcome.details:
            plain["details"] = {str(name): value for name, value in outcome.details.items() if _is_scalar(value)}
        if outcome.usage is not None:
            plain["usage"] = _scalars(outcome.usage)
    return plain


def outcome_from(plain: Mapping[str, Any]) -> Outcome:
    """The outcome of `plain_outcome`; evidence of a metric of one's own comes back as dictionaries.

    Raises:
        Exception: it is none.
    """
    values = dict(plain)
    kind = values.pop("is")
    if kind == "NotApplicable":
        return NotApplicable(**values)
    if kind == "MetricFailure":
        return MetricFailure(**values)
    values["evidence"] = tuple(map(_evidence_from, values.get("evidence", ())))
    if "usage" in values:
        values["usage"] = Usage(**values["usage"])
    return Score(**values)


def _scalars(data: Any) -> dict[str, Any]:
    values = {item.name: getattr(data, item.name) for item in fields(data)}
    return {name: value for name, value in values.items() if _is_scalar(value)}


def _plain_evidence(item: object) -> Any:
    if is_dataclass(item) and not isinstance(item, type):
        return {"is": type(item).__name__, **_scalars(item)}
    if isinstance(item, Mapping):
        return {str(key): value for key, value in item.items() if _is_scalar(value)}
    return item if _is_scalar(item) else type(item).__name__


def _is_scalar(value: object) -> bool:
    """Whether JSON has it; it has no NaN."""
    return isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


def _evidence_from(plain: Any) -> object:
    kind = _EVIDENCE.get(plain.get("is", "")) if isinstance(plain, dict) else None
    if kind is None:
        return plain
    optional = {item.name: None for item in fields(kind) if "None" in str(item.type)}
    return kind(**{**optional, **{name: value for name, value in plain.items() if name != "is"}})
