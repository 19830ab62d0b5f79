"""The journal of an evaluation: a line for each record that is done, so that nothing is judged twice.

The first line says what is evaluated, and how. Each record's line is written with one write as soon as it is done, in the
order of the table. A process that is killed leaves at most one line without an end, which is cut off. A row that is judged
again gets another line, which counts in place of the first. The result file is made from the journal when all rows are done.
Where metrics have failed on some of them the journal then stays, with a last line that says that the run is done.
"""

from __future__ import annotations

import json
import numbers
import os
import re
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from hashlib import blake2b
from io import BytesIO, FileIO
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ragspan.evaluate.results import BadRow, EvaluatedRow, ResultRow
from ragspan.exceptions import TableError
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, ContextVerdict, Rating, Vote
from ragspan.metrics import JudgedContext
from ragspan.metrics.metric import Metric
from ragspan.outcomes import Asked, MetricFailure, NotApplicable, Outcome, Score
from ragspan.records import RagRecord

_FORMAT = 5
_ENDED = {"ended": True}
"""The last line where the run came to its end."""
_ROW = re.compile(rb'\{"row": (\d+),')
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_OUTCOMES: dict[str, type[Outcome]] = {kind.__name__: kind for kind in (Score, NotApplicable, MetricFailure)}
_EVIDENCE = {kind.__name__: kind for kind in (Vote, Rating, ClaimVerdict, ContextVerdict, ContextRating, JudgedContext)}


class _Done(NamedTuple):
    """What a line says of a record."""

    row: int
    record_id: str
    digest: str
    outcomes: Mapping[str, Outcome]
    asked: Asked | None
    doubt: float | None


def journal_of(output: Path) -> Path:
    """Where an evaluation with this output keeps the rows that are done."""
    return output.with_name(f"{output.name}.partial")


class Journal:
    """A journal that rows are added to. The file is made with the first row.

    Args:
        path: of the file; None is a temporary one, which is deleted with the journal.
        about: what is evaluated, and how.
        resume: continue a journal that exists.

    Raises:
        TableError: a journal exists and `resume` is False, its run had other settings, which the message names, or its place is
            a link, or something else that is not a file.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any], *, resume: bool = False) -> None:
        self._header = _line({"journal": _FORMAT, **about})
        self._file: FileIO | None = None
        self.last_row = 0
        """The last row of the earlier run."""
        if path is None:
            descriptor, name = tempfile.mkstemp(prefix="ragspan-", suffix=".partial")
            os.close(descriptor)
            path = Path(name)
            weakref.finalize(self, path.unlink, missing_ok=True)
        elif path.is_symlink():
            raise TableError(f"{path} is a link, and answers would be written where it leads: delete it")
        elif path.exists() and not path.is_file():
            raise TableError(f"{path} is not a file, and rows that are done would be written there: delete it")
        elif path.exists() and not resume:
            if not _is_of_finished_run(path):
                raise TableError(
                    f"{path} holds rows of an earlier run that did not come to its end: continue it with --resume"
                    " (resume=True), or delete that file to begin anew"
                )
            path.unlink()
        elif path.exists():
            self.last_row = _cut(path, json.loads(self._header))
        self.path = path

    def add(self, done: EvaluatedRow) -> None:
        """Write one row.

        Raises:
            TableError: the file cannot be written.
        """
        outcomes = {metric: _tagged(outcome) for metric, outcome in done.outcomes.items()}
        record_id, digest = done.record.record_id, digest_of(done.record)
        of_share = {"asked": done.asked, "doubt": done.doubt}
        line = _line({"row": done.row, "id": record_id, "digest": digest, **of_share, "outcomes": outcomes})
        try:
            if self._file is None:  # explanations in it quote answers and contexts
                self._file = FileIO(os.open(self.path, _APPENDING, 0o600), "ab")
                line = line if self._file.tell() else self._header + line
            is_whole = self._file.write(line) == len(line)
        except OSError as error:
            raise TableError(f"{self.path} cannot be written: {error.strerror or error}") from None
        if not is_whole:
            raise TableError(f"{self.path} cannot be written: is there space left?")

    def end(self) -> None:
        """Say that the run has come to its end, and that what is here is kept only to judge some rows again.

        Raises:
            OSError: the file cannot be written.
        """
        with self.path.open("ab") as file:
            file.write(_line(_ENDED))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def resume(self, rows: Iterator[EvaluatedRow | BadRow]) -> Iterator[EvaluatedRow | BadRow]:
        """The rows up to the last one that is done, those that were judged with their outcomes.

        Raises:
            TableError: they are not those that the journal is about, or the file was damaged.
        """
        for done in self._done():
            for row in rows:
                if row.row == done.row or isinstance(row, EvaluatedRow):
                    break
                yield row
            else:
                raise TableError(f"the table ends before row {done.row}, which {self.path} has: it is another one")
            if isinstance(row, BadRow) or (row.row, digest_of(row.record)) != (done.row, done.digest):
                raise TableError(
                    f"row {row.row} is not what it was when {self.path} was written, so that run cannot be continued"
                )
            record = replace(row.record, record_id=done.record_id)
            yield replace(row, record=record, outcomes=done.outcomes, asked=done.asked, doubt=done.doubt)

    def results(self) -> Iterator[ResultRow]:
        """The lines of a result file: each record and metric."""
        for done in self._done():
            for metric, outcome in done.outcomes.items():
                yield ResultRow.from_outcome(
                    outcome, row=done.row, record_id=done.record_id, metric=metric, asked=done.asked
                )

    def _done(self) -> Iterator[_Done]:
        """Each record, in the order of the table."""
        try:
            # While a run is continued, rows that it judges again are added behind what is read here.
            size = self.path.stat().st_size if self.path.exists() else 0
            again, last_row = _judged_again(self.path), 0
            for end, plain in islice(_whole_lines(self.path), 1, None):
                if end > size:
                    return
                if plain["row"] <= last_row and plain["row"] in again:
                    continue
                if plain["row"] <= last_row:
                    raise _unreadable(self.path)
                last_row = plain["row"]
                counting = json.loads(again[last_row]) if last_row in again else plain
                outcomes = {metric: _outcome_of(*tagged) for metric, tagged in counting["outcomes"].items()}
                yield _Done(
                    counting["row"],
                    counting["id"],
                    counting["digest"],
                    outcomes,
                    counting["asked"],
                    counting["doubt"],
                )
        except (KeyError, TypeError, ValueError):
            raise _unreadable(self.path) from None


def described(metric: Metric) -> dict[str, Any]:
    """The metric and its settings in plain data, to compare with those of an earlier run; no key and no address."""
    about: dict[str, Any] = {"name": metric.name}
    data: Any = metric
    for item in fields(data) if is_dataclass(data) else ():
        value = getattr(data, item.name)
        if isinstance(value, (str, int, float)) or value is None:
            about[item.name] = value
        elif isinstance(name := getattr(value, "name", None), str):  # a judge
            about[item.name] = f"{name}, prompts {getattr(value, 'prompt_version', None)}"
    return about


def digest_of(record: RagRecord) -> str:
    """Equal for records with the same texts to judge, whatever their ids and times are."""
    contexts = None if record.contexts is None else [context.text for context in record.contexts]
    texts = json.dumps([record.question, record.response, contexts])
    return blake2b(texts.encode(), digest_size=8).hexdigest()


def _cut(path: Path, header: Mapping[str, Any]) -> int:
    """Cut off what was half written, and the last line, of a journal with this header; returns the highest row."""
    end = last_row = 0
    for line_end, plain in _whole_lines(path):
        if not end:
            _require_same(path, plain, header)
        elif plain == _ENDED:
            break
        elif not isinstance(plain, dict) or not isinstance(plain.get("row"), int):
            raise _unreadable(path)
        else:
            last_row = max(last_row, plain["row"])
        end = line_end
    os.truncate(path, end)
    return last_row


def _is_of_finished_run(path: Path) -> bool:
    last = _line(_ENDED)
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - len(last), 0))
        return file.read() == last


def _judged_again(path: Path) -> dict[int, bytes]:
    """The last line of each row that has several."""
    again: dict[int, bytes] = {}
    last_row = 0
    with path.open("rb") if path.exists() else BytesIO() as file:
        for line in islice(file, 1, None):
            begins = _ROW.match(line)
            if begins and line.endswith(b"\n"):
                row = int(begins[1])
                if row <= last_row:
                    again[row] = line
                last_row = max(last_row, row)
    return again


def _require_same(path: Path, before: Any, now: Mapping[str, Any]) -> None:
    if not isinstance(before, dict) or before.get("journal") != _FORMAT:
        raise _unreadable(path)
    changes = [
        f"{name} was {json.dumps(before[name])} and is {json.dumps(now[name])}"
        for name in now
        if before[name] != now[name]
    ]
    if changes:
        raise TableError(
            f"{path} is of a run that differs from this one, so it cannot be continued: {'; '.join(changes)}"
        )


# Lines ----------------------------------------------------------------------------------------------------------------


def _line(plain: Mapping[str, Any]) -> bytes:
    """Written by json: unlike msgspec it can encode half of a surrogate pair."""
    return json.dumps(msgspec.to_builtins(plain, enc_hook=_plain)).encode() + b"\n"


def _plain(value: object) -> float | str:
    """A number of NumPy's as a number; what else JSON cannot hold becomes the name of its type."""
    return float(value) if isinstance(value, numbers.Real) else type(value).__name__


def _tagged(outcome: Outcome) -> tuple[str, Outcome, list[tuple[str, Any]]]:
    """The type of the outcome, its fields, and by type its evidence, but for that of other metrics than ours."""
    kind = type(outcome).__name__
    if not isinstance(outcome, Score):
        return kind, outcome, []
    evidence = [(type(one).__name__, one) for one in outcome.evidence if type(one).__name__ in _EVIDENCE]
    return kind, replace(outcome, evidence=()), evidence


def _outcome_of(kind: str, plain: dict[str, Any], evidence: Iterable[tuple[str, Any]]) -> Outcome:
    """The outcome of `_tagged`."""
    if kind == "Score":
        plain["evidence"] = tuple(_EVIDENCE[name](**item) for name, item in evidence)
    return msgspec.convert(plain, _OUTCOMES[kind])


def _whole_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Where each line ends, and what it holds."""
    end = 0
    try:
        with path.open("rb") if path.exists() else BytesIO() as file:  # there is none before a row is done
            for line in file:
                end += len(line)
                if line.endswith(b"\n"):
                    yield end, json.loads(line)
    except ValueError:
        raise _unreadable(path) from None


def _unreadable(path: Path) -> TableError:
    return TableError(f"{path} is not a journal of this version of ragspan, or was damaged: delete it to begin anew")
