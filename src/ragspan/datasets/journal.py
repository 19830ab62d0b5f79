"""The journal of an evaluation: a line for each row that is done, so that nothing is done twice.

The first line says what is evaluated, and how. Each row's line is written with one write as soon as the row is done, in the
order of the table. A process that is killed leaves at most one line without an end, which is cut off. The result file is
made from the journal when all rows are done.
"""

from __future__ import annotations

import json
import numbers
import os
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ragspan.datasets.results import BadRow, EvaluatedRow, ResultRow
from ragspan.exceptions import TableError
from ragspan.judges.base import ClaimVerdict, ContextRating, ContextVerdict, Rating, Vote
from ragspan.metrics import JudgedContext
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score
from ragspan.records import RagRecord

_FORMAT = 2
_OUTCOMES: dict[str, type[Outcome]] = {kind.__name__: kind for kind in (Score, NotApplicable, MetricFailure)}
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

    def of(self, record: RagRecord) -> EvaluatedRow | None:
        """The row with its texts; None if these are not the record's."""
        if self.digest != digest_of(record):
            return None
        return EvaluatedRow(row=self.row, record=replace(record, record_id=self.record_id), outcomes=self.outcomes)


class Journal:
    """A journal that rows are added to.

    Args:
        path: of the file; None is a temporary one, which is deleted with the journal.
        about: what is evaluated, and how.
        resume: continue a journal that exists.

    Raises:
        TableError: a journal exists and `resume` is False, or its run had other settings, which the message names; or the
            file cannot be written.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any], *, resume: bool = False) -> None:
        self.rows = 0
        """When it was opened."""
        header = _encoded({"journal": _FORMAT, **about})
        if path is None:
            descriptor, name = tempfile.mkstemp(prefix="ragspan-", suffix=".partial")
            os.close(descriptor)
            path = Path(name)
            weakref.finalize(self, path.unlink, missing_ok=True)
        elif resume and path.exists():
            self.rows = _resumed(path, header)
        else:
            _create(path)
        self.path = path
        self._file = path.open("ab", buffering=0)
        self.close = weakref.finalize(self, self._file.close)
        if self._file.tell() == 0:
            self._write(header)

    def add(self, done: EvaluatedRow | BadRow) -> None:
        """Write one row.

        Raises:
            TableError: the file cannot be written.
        """
        if isinstance(done, BadRow):
            self._write(_encoded({"row": done.row, "bad": done.reason, "line": done.line}))
            return
        self._write(
            _encoded(
                {
                    "row": done.row,
                    "id": done.record.record_id,
                    "digest": digest_of(done.record),
                    "outcomes": {metric: _tagged(outcome) for metric, outcome in done.outcomes.items()},
                }
            )
        )

    def _write(self, line: bytes) -> None:
        try:
            is_whole = self._file.write(line) == len(line)
        except OSError as error:
            raise TableError(f"{self.path} cannot be written: {error.strerror or error}") from None
        if not is_whole:
            raise TableError(f"{self.path} cannot be written: is there space left?")

    def done(self) -> Iterator[JournalRow | BadRow]:
        """All rows, in the order of the table.

        Raises:
            TableError: the file was changed by somebody else.
        """
        return (_row_of(self.path, line) for line in islice(_whole_lines(self.path), 1, None))

    def results(self) -> Iterator[ResultRow]:
        """The lines of a result file: each record and metric."""
        for row in self.done():
            if isinstance(row, JournalRow):
                for metric, outcome in row.outcomes.items():
                    yield ResultRow.from_outcome(outcome, row=row.row, record_id=row.record_id, metric=metric)

    def remove(self, *, if_empty: bool = False) -> bool:
        """Delete the file, or only one without rows; whether it was deleted."""
        self.close()
        is_wanted = not if_empty or sum(1 for _ in islice(_whole_lines(self.path), 2)) <= 1
        if is_wanted:
            self.path.unlink(missing_ok=True)
        return is_wanted


def digest_of(record: RagRecord) -> str:
    """Equal for records with the same texts to judge, whatever their ids and times are."""
    digest = blake2b(digest_size=8)
    texts = [record.question, record.response, None if record.contexts is None else ""]
    texts += [context.text for context in record.contexts or ()]
    for text in texts:
        data = b"" if text is None else text.encode("utf-8", "surrogatepass")
        digest.update(b"%d:" % (-1 if text is None else len(data)))
        digest.update(data)
    return digest.hexdigest()


def _create(path: Path) -> None:
    try:
        path.touch(mode=0o600, exist_ok=False)  # explanations in it quote answers and contexts
    except FileExistsError:
        rows = max(0, sum(1 for _ in _whole_lines(path)) - 1)
        raise TableError(
            f"{path} holds {rows} rows of an earlier run that did not come to its end: continue it with --resume"
            " (resume=True), or delete that file to begin anew"
        ) from None
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror or error}") from None


def _resumed(path: Path, header: bytes) -> int:
    """Cut off what was half written, and return how many rows are left."""
    end, count = 0, 0
    for line in _whole_lines(path):
        if not count:
            _require_same(path, _parsed(path, line), json.loads(header))
        end, count = end + len(line), count + 1
    os.truncate(path, end)
    return max(0, count - 1)


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


# Lines ----------------------------------------------------------------------------------------------------------------


def _encoded(plain: Mapping[str, Any]) -> bytes:
    """A line. NaN becomes null."""
    try:
        return msgspec.json.encode(plain, enc_hook=_plain) + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(msgspec.to_builtins(plain, enc_hook=_plain)).encode() + b"\n"


def _plain(value: object) -> float | str:
    """A number of NumPy's as a number; what else JSON cannot hold becomes the name of its type."""
    return float(value) if isinstance(value, numbers.Real) else type(value).__name__


def _tagged(outcome: Outcome) -> tuple[str, Outcome, list[tuple[str, Any]]]:
    """The type of the outcome, its fields, and its evidence by type."""
    kind = type(outcome).__name__
    if not isinstance(outcome, Score):
        return kind, outcome, []
    return kind, replace(outcome, evidence=()), [(type(one).__name__, _evidence(one)) for one in outcome.evidence]


def _evidence(item: object) -> Any:
    if type(item).__name__ in _EVIDENCE:
        return item
    try:
        return msgspec.to_builtins(item, enc_hook=_plain)
    except (TypeError, ValueError, RecursionError):  # of a metric of one's own
        return type(item).__name__


def _whole_lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from (line for line in file if line.endswith(b"\n"))


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
        outcomes = {metric: _outcome_of(*tagged) for metric, tagged in plain["outcomes"].items()}
        return JournalRow(row=plain["row"], record_id=plain["id"], digest=plain["digest"], outcomes=outcomes)
    except (KeyError, TypeError, ValueError):
        raise TableError(f"{path} was damaged: delete it to begin anew") from None


def _outcome_of(kind: str, plain: dict[str, Any], evidence: list[tuple[str, Any]]) -> Outcome:
    """The outcome of `_tagged`; evidence of a metric of one's own comes back as plain data."""
    if kind == "Score":
        plain["evidence"] = tuple(_EVIDENCE[name](**item) if name in _EVIDENCE else item for name, item in evidence)
        plain["details"] = {name: value for name, value in plain["details"].items() if value is not None}
    return msgspec.convert(plain, _OUTCOMES[kind])
