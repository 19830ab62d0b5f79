"""The file of rows: JSONL, a line for each row with its texts and all its outcomes.

A row's line is written with one write as soon as it is done, in the order of the table, to `<output>.partial`, which becomes the
output when the table is done. So the process may be killed at any moment: at most one line has no end, and is cut off. The first
line says what was evaluated, and how. A row that is judged again gets another line, which counts in place of the first.
"""

from __future__ import annotations

import json
import numbers
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from hashlib import blake2b
from io import FileIO
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from ragspan.evaluate.rows import BadRow, EvaluatedRow
from ragspan.evaluate.written_files import replacing
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, ContextVerdict, Rating, Vote
from ragspan.metrics import JudgedContext
from ragspan.metrics.metric import Metric
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score
from ragspan.records import Background, RagRecord, RetrievedContext, SpanAnchor

RUN = "ragspan_run"
"""The only key of the first line of a file of rows."""
_FORMAT = 6
_LONGEST_HEADER = 1 << 20
_ROW = re.compile(rb'\{"row": (\d+),')
_APPENDING = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_OUTCOMES: dict[str, type[Outcome]] = {"score": Score, "not_applicable": NotApplicable, "failure": MetricFailure}
_EVIDENCE = {kind.__name__: kind for kind in (Vote, Rating, ClaimVerdict, ContextVerdict, ContextRating, JudgedContext)}


class ResultFile:
    """The rows in a file that `evaluate` wrote.

    Args:
        path: of the file.

    Raises:
        TableError: while it is read: it is not such a file, or damaged.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics of that run."""
        try:
            with self.path.open("rb") as file:
                run = json.loads(file.readline(_LONGEST_HEADER))[RUN]
            if run["format"] == _FORMAT:
                return tuple(str(metric["name"]) for metric in run["metrics"])
        except OSError as error:
            raise TableError(f"{self.path} cannot be read: {error.strerror or error}") from None
        except (ValueError, LookupError, TypeError):
            pass
        raise _unreadable(self.path)

    def rows(self) -> Iterator[EvaluatedRow]:
        """Each row, in the order of the table."""
        _ = self.metrics
        yield from _rows(self.path)


def partial_of(output: Path) -> Path:
    """Where the rows of a run with this output are as long as it is not done."""
    return output.with_name(f"{output.name}.partial")


class RowWriter:
    """The file of rows of one run, which rows are added to.

    Args:
        output: where it is in the end; None is a temporary file, which is deleted with this object.
        metrics: of the run.
        about: what else of the run must be the same where it is continued.
        resume: continue an earlier run, or judge again where a finished one failed.

    Raises:
        TableError: an earlier run did not come to its end and `resume` is False, its run had other settings, which the message
            names, or what is there is no file of rows.
    """

    def __init__(self, output: Path | None, metrics: list[Metric], about: Mapping[str, Any], *, resume: bool) -> None:
        self._header = {RUN: {"format": _FORMAT, "metrics": [_described(metric) for metric in metrics], **about}}
        self._file: FileIO | None = None
        self._output = output
        self.last_row = 0
        """The last row of the earlier run."""
        if output is None:
            descriptor, name = tempfile.mkstemp(prefix="ragspan-", suffix=".partial")
            os.close(descriptor)
            self.path = Path(name)
            weakref.finalize(self, self.path.unlink, missing_ok=True)
            return
        self.path = partial_of(output)
        for path in (output, self.path):
            if path.is_symlink() or (path.exists() and not path.is_file()):
                raise TableError(f"{path} is a link or no file, and answers would be written where it leads: delete it")
        if output.exists() and output.stat().st_size:
            _ = ResultFile(output).metrics  # nothing that is not ours is replaced
        if resume:
            if not self.path.exists() and output.exists():
                shutil.copy(output, self.path)
            if self.path.exists():
                self.last_row = self._cut()
        elif self.path.exists():
            raise TableError(
                f"{self.path} holds rows of an earlier run that did not come to its end: continue it with --resume"
                " (resume=True), or delete that file to begin anew"
            )

    def add(self, done: EvaluatedRow) -> None:
        """Write one row.

        Raises:
            TableError: the file cannot be written.
        """
        line = _line(_plain_row(done))
        try:
            if self._file is None:  # it quotes answers and contexts
                self._file = FileIO(os.open(self.path, _APPENDING, 0o600), "ab")
                line = line if self._file.tell() else _line(self._header) + line
            is_whole = self._file.write(line) == len(line)
        except OSError as error:
            raise TableError(f"{self.path} cannot be written: {error.strerror or error}") from None
        if not is_whole:
            raise TableError(f"{self.path} cannot be written: is there space left?")

    def finish(self, *, is_complete: bool) -> ResultFile | RowWriter:
        """Close the file, and give it its name if the table is done; returns what reads the rows."""
        if self._file is not None:
            self._file.close()
        if self._output is None or not is_complete:
            return self
        try:
            if not self.path.exists():  # no row could be read
                self.path.write_bytes(_line(self._header))
            if _judged_again(self.path):
                with replacing(self.path) as whole, whole.open("wb") as file:
                    file.write(_line(self._header))
                    file.writelines(_row_lines(self.path))
            self.path.replace(self._output)
        except OSError as error:
            raise TableError(
                f"{self._output} cannot be written: {error.strerror or error}; all rows are in {self.path}"
            ) from None
        return ResultFile(self._output)

    def rows(self) -> Iterator[EvaluatedRow]:
        """Each row that is done, in the order of the table."""
        yield from _rows(self.path)

    def resume(self, rows: Iterator[EvaluatedRow | BadRow]) -> Iterator[EvaluatedRow | BadRow]:
        """The rows up to the last one that is done, those that were judged with their outcomes.

        Raises:
            TableError: they are not those of the earlier run, or the file was damaged.
        """
        for done in _rows(self.path):
            for row in rows:
                if row.row == done.row or isinstance(row, EvaluatedRow):
                    break
                yield row
            else:
                raise TableError(f"the table ends before row {done.row}, which {self.path} has: it is another one")
            if isinstance(row, BadRow) or (row.row, _digest(row.record)) != (done.row, _digest(done.record)):
                raise TableError(
                    f"row {row.row} is not what it was when {self.path} was written, so that run cannot be continued"
                )
            record = replace(row.record, record_id=done.record.record_id)
            yield replace(row, record=record, outcomes=done.outcomes, asked=done.asked, doubt=done.doubt)

    def _cut(self) -> int:
        """Check the header, and cut off what was half written; returns the highest row."""
        last_row = end = 0
        with self.path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    break
                if end == 0:
                    try:
                        before = dict(json.loads(line)[RUN])
                    except (ValueError, TypeError, LookupError):
                        raise _unreadable(self.path) from None
                    self._require_same(before)
                elif (begins := _ROW.match(line)) is None:
                    raise _unreadable(self.path)
                else:
                    last_row = max(last_row, int(begins[1]))
                end += len(line)
        os.truncate(self.path, end)
        return last_row

    def _require_same(self, before: Mapping[str, Any]) -> None:
        now = json.loads(json.dumps(self._header[RUN]))
        changes = [
            f"{name} was {json.dumps(before.get(name))} and is {json.dumps(now[name])}"
            for name in now
            if before.get(name) != now[name]
        ]
        if changes:
            raise TableError(
                f"{self.path} is of a run that differs from this one, so it cannot be continued: {'; '.join(changes)}"
            )


def _described(metric: Metric) -> dict[str, Any]:
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


def _digest(record: RagRecord) -> str:
    """Equal for records with the same texts to judge, whatever their ids and times are."""
    contexts = None if record.contexts is None else [context.text for context in record.contexts]
    return blake2b(json.dumps([record.question, record.response, contexts]).encode(), digest_size=8).hexdigest()


# Lines ----------------------------------------------------------------------------------------------------------------


def _plain_row(done: EvaluatedRow) -> dict[str, Any]:
    record, span = done.record, done.record.parent
    more = {
        "background": [{"text": one.text, "kind": one.kind} for one in record.background],
        "metadata": dict(record.metadata),
        "trace_id": span and format(span.trace_id, "032x"),
        "span_id": span and format(span.span_id, "016x"),
        "label": {True: "pass", False: "fail"}.get(done.label) if done.label is not None else None,
        "asked": done.asked,
        "doubt": done.doubt,
    }
    return {
        "row": done.row,
        "record_id": record.record_id,
        "question": record.question,
        "contexts": None if record.contexts is None else [_plain_context(one) for one in record.contexts],
        "response": record.response,
        **{name: value for name, value in more.items() if value not in (None, [], {})},
        "outcomes": {metric: _plain_outcome(outcome) for metric, outcome in done.outcomes.items()},
    }


def _plain_context(context: RetrievedContext) -> str | dict[str, Any]:
    more = {"id": context.id, "source": context.source, "metadata": dict(context.metadata)}
    known = {name: value for name, value in more.items() if value}
    return {"text": context.text, **known} if known else context.text


def _plain_outcome(outcome: Outcome) -> dict[str, Any]:
    """The fields of the outcome that say something; evidence with its type, but for that of other metrics than ours."""
    kind = next(name for name, one in _OUTCOMES.items() if isinstance(outcome, one))
    plain: dict[str, Any] = {"outcome": kind}
    for item in fields(outcome):
        value = getattr(outcome, item.name)
        if item.name == "evidence":
            known = [one for one in value if type(one).__name__ in _EVIDENCE]
            value = [{"type": type(one).__name__, **msgspec.to_builtins(one, enc_hook=_plain)} for one in known]
        if value is not None and value is not False and value not in ((), [], {}):
            plain[item.name] = value
    return plain


def _row_of(plain: dict[str, Any]) -> EvaluatedRow:
    """The row of a line."""
    contexts = plain["contexts"]
    span = plain.get("trace_id") and plain.get("span_id")
    record = RagRecord(
        record_id=plain["record_id"],
        question=plain["question"],
        contexts=None if contexts is None else [RetrievedContext(**({"text": one} if isinstance(one, str) else one)) for one in contexts],
        response=plain["response"],
        background=tuple(Background(**one) for one in plain.get("background", ())),
        metadata=plain.get("metadata", {}),
        parent=SpanAnchor(trace_id=int(plain["trace_id"], 16), span_id=int(plain["span_id"], 16), is_remote=True) if span else None,
        framework="table",
    )  # fmt: skip
    return EvaluatedRow(
        row=plain["row"],
        record=record,
        outcomes={metric: _outcome_of(outcome) for metric, outcome in plain["outcomes"].items()},
        label={"pass": True, "fail": False}.get(plain.get("label", "")),
        asked=plain.get("asked"),
        doubt=plain.get("doubt"),
    )


def _outcome_of(plain: dict[str, Any]) -> Outcome:
    kind = _OUTCOMES[plain.pop("outcome")]
    if kind is Score:
        plain["evidence"] = tuple(_EVIDENCE[one.pop("type")](**one) for one in plain.get("evidence", ()))
    return msgspec.convert(plain, kind)


def _line(plain: Mapping[str, Any]) -> bytes:
    """Written by json: unlike msgspec it can encode half of a surrogate pair."""
    return json.dumps(msgspec.to_builtins(plain, enc_hook=_plain)).encode() + b"\n"


def _plain(value: object) -> float | str:
    """A number of NumPy's as a number; what else JSON cannot hold becomes the name of its type."""
    return float(value) if isinstance(value, numbers.Real) else type(value).__name__


def _rows(path: Path) -> Iterator[EvaluatedRow]:
    """Each row in the order of the table, by its last line."""
    try:
        for line in _row_lines(path):
            yield _row_of(json.loads(line))
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise _unreadable(path) from None


def _row_lines(path: Path) -> Iterator[bytes]:
    if not path.exists():  # there is none before a row is done
        return
    # While a run is continued, rows are added behind what is read here.
    again, last_row, left = _judged_again(path), 0, path.stat().st_size
    with path.open("rb") as file:
        for place, line in enumerate(file):
            left -= len(line)
            if left < 0 or not line.endswith(b"\n"):
                return
            begins = _ROW.match(line)
            if begins is None:
                if place:
                    raise _unreadable(path)
            elif (row := int(begins[1])) > last_row:
                last_row = row
                yield again.get(row, line)


def _judged_again(path: Path) -> dict[int, bytes]:
    """The last line of each row that has several."""
    again: dict[int, bytes] = {}
    last_row = 0
    with path.open("rb") as file:
        for line in islice(file, 1, None):
            if line.endswith(b"\n") and (begins := _ROW.match(line)):
                if (row := int(begins[1])) <= last_row:
                    again[row] = line
                last_row = max(last_row, row)
    return again


def _unreadable(path: Path) -> TableError:
    return TableError(
        f"{path} is not a file of rows that this version of ragspan wrote, or was damaged: give another name, or delete it"
    )


def require_jsonl(path: Path, option: str) -> None:
    """Raise a `ConfigurationError` unless the file's name says that it is JSONL."""
    if path.suffix.lower() != ".jsonl":
        raise ConfigurationError(
            f"{option} is {str(path)!r}, but rows are written as JSONL: name it {path.stem}.jsonl; another format is made of that"
            " by pandas or jq"
        )
