"""The rows of an evaluated table, and the file of rows: JSONL, a line for each row, after a first line that says what was evaluated.

A row is written as soon as it is done to `<output>.partial`, which becomes the output when the table is done: who kills the process
loses no row. A row that is judged again gets another line, which counts in place of the first.
"""

from __future__ import annotations

import contextlib
import json
import math
import numbers
import os
import re
import shutil
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from ragspan.exceptions import ConfigurationError, TableError
from ragspan.judges.judge_catalogue import EMBEDDED
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, Rating, Vote
from ragspan.metrics import JudgedContext
from ragspan.metrics.metric import Metric
from ragspan.outcomes import Asked, MetricFailure, NotApplicable, Outcome, Score, ScreenScore
from ragspan.records import RagRecord

RUN: Final = "ragspan_run"
"""The only key of the first line of a file of rows."""
_FORMAT = 7
_ROW = re.compile(rb'\{"row": (\d+),')
_OUTCOMES: dict[str, type[Outcome]] = {"score": Score, "not_applicable": NotApplicable, "failure": MetricFailure}
_KEPT = ("record_id", "question", "contexts", "response", "metadata", "parent")
"""What the file has of a record."""
_EVIDENCE = {kind.__name__: kind for kind in (Vote, Rating, ClaimVerdict, ContextRating, JudgedContext)}


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluatedRow:
    """A row of the table with its texts and all its outcomes."""

    row: int
    """Of the table's data, counted from 1."""
    record: RagRecord
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """By metric, in the order of the metrics."""
    label: bool | None = None
    """Whether people say that the response is good; None where they do not say."""
    asked: Asked | None = None
    """Why the judge was asked, where it is asked about a share of the rows; None if it was not, or is asked about all."""

    @property
    def scores(self) -> dict[str, Score]:
        """By metric, without the metrics that have none."""
        return {name: outcome for name, outcome in self.outcomes.items() if isinstance(outcome, Score)}

    @property
    def of_one_judge(self) -> dict[str, Score | ScreenScore]:
        """The scores for figures over all rows: where a judge is asked about a share of them, the embedded judge's."""
        return {
            name: score.screen or score
            for name, score in self.scores.items()
            if self.asked is None or score.screen or score.fallback or score.judge in {None, EMBEDDED}
        }

    @property
    def label_word(self) -> str | None:
        """The label as files have it."""
        return None if self.label is None else "pass" if self.label else "fail"

    @property
    def failing(self) -> dict[str, Score]:
        """The scores that fail, by metric."""
        return {name: score for name, score in self.scores.items() if score.label == "fail"}

    @property
    def failure_rank(self) -> tuple[int, float, int]:
        """Orders rows: first those that fail most metrics, then those with the lowest mean."""
        values = [score.value for score in self.scores.values()]
        return -len(self.failing), math.fsum(values) / len(values) if values else 1.0, self.row


@dataclass(frozen=True, kw_only=True, slots=True)
class BadRow:
    """A row that could not be read, or holds what no record can."""

    row: int
    """Of the table's data, counted from 1."""
    reason: str
    """For people. It quotes nothing of the row's texts."""

    def __str__(self) -> str:
        return f"row {self.row}: {self.reason}"


def named_judge(score: Score | ScreenScore) -> str | None:
    """Who gave the score, with the version of the prompts."""
    return f"{score.judge} (prompts {version})" if (version := getattr(score, "prompt_version", None)) else score.judge


class ResultFile:
    """The rows in a file that `evaluate` wrote; to read them raises a `TableError` if it is not such a file, or damaged."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics of that run."""
        return tuple(str(metric["name"]) for metric in _run_of(self.path)["metrics"])

    def rows(self) -> Iterator[EvaluatedRow]:
        """Each row, in the order of the table."""
        _run_of(self.path)
        try:
            yield from map(_row_of, _lines_at(self.path, _offsets_in(self.path)[0]))
        except (LookupError, TypeError, ValueError) as error:
            raise error if isinstance(error, TableError) else _unreadable(self.path) from None


def partial_of(output: Path) -> Path:
    """Where the rows of a run with this output are as long as it is not done."""
    return output.with_name(f"{output.name}.partial")


class RowWriter(ResultFile):
    """The file of rows of one run, which rows are added to.

    A `TableError` says why an earlier run cannot be continued or replaced, or that what is there is no file of rows.
    """

    def __init__(self, output: Path, metrics: Sequence[Metric], about: Mapping[str, Any], *, resume: bool) -> None:
        super().__init__(partial_of(output))
        run = {"format": _FORMAT, "metrics": [_described(metric) for metric in metrics], **about}
        self._header = json.dumps({RUN: run}).encode() + b"\n"
        self._output, self._is_copy = output, False
        self.last_row = 0
        """The last row of the earlier run."""
        earlier = self.path
        if output.exists() and output.stat().st_size:
            _run_of(output, "give another name, or delete it")  # nothing that is not ours is replaced
            if resume and not self.path.exists():
                earlier = output
        if not earlier.exists():
            return
        if not resume:
            raise TableError(
                f"{self.path} holds rows of an earlier run that did not come to its end: continue it with --resume"
                " (resume=True), or delete that file to begin anew"
            )
        offsets, end, _ = _offsets_in(earlier)
        before = _run_of(earlier) if end else run
        was, now = _settings_in(before), _settings_in(run)
        changes = [f"{name} was {was[name]}, is {now[name]}" for name in now if was.get(name, now[name]) != now[name]]
        if changes:
            plain = re.sub("[][{}'\"]", "", "; ".join(changes)).replace("None", "none")
            raise TableError(f"{earlier} is of another run, so it cannot be continued: {plain}; name another output")
        self._is_copy = earlier is output
        if self._is_copy:
            shutil.copy(output, self.path)
        self.last_row = max(len(offsets) - 1, 0)
        os.truncate(self.path, end)  # without what was half written

    def rows(self) -> Iterator[EvaluatedRow]:
        """Each row that is done; before the first one there is no file."""
        return super().rows() if self.path.exists() and self.path.stat().st_size else iter(())

    def add(self, done: EvaluatedRow) -> None:
        """Write one row; raises a `TableError` if the file cannot be written."""
        line = _line_of(done)
        try:
            self.path.touch(mode=0o600)  # it quotes answers and contexts
            with self.path.open("ab") as file:
                file.write(line if file.tell() else self._header + line)
        except OSError as error:
            raise TableError(f"{self.path} cannot be written: {error.strerror or error}") from None

    def finish(self) -> None:
        """Give the file its name: the table is done."""
        try:
            if not self.path.exists():  # no row could be read
                self.path.write_bytes(self._header)
            offsets, _, was_judged_again = _offsets_in(self.path)
            if was_judged_again:
                with replacing(self.path) as whole, whole.open("wb") as file:
                    file.writelines([self._header, *_lines_at(self.path, offsets)])
            self.path.replace(self._output)
        except OSError as error:
            why = error.strerror or error
            raise TableError(f"{self._output} cannot be written: {why}; rows are in {self.path}") from None
        self.path = self._output

    def resume(self, rows: Iterator[EvaluatedRow | BadRow]) -> Iterator[EvaluatedRow | BadRow]:
        """The rows up to the last one that is done, those that were judged with their outcomes; a `TableError` for other rows."""
        for done in self.rows():
            row = next(rows, None)
            while isinstance(row, BadRow) and row.row < done.row:
                yield row
                row = next(rows, None)
            if not isinstance(row, EvaluatedRow) or (row.row, _texts(row)) != (done.row, _texts(done)):
                if self._is_copy:
                    self.path.unlink()
                what = f"row {done.row} is not what it was in the run of {self._output}"
                raise TableError(f"{what}, which cannot be continued; name another output")
            metadata = {**done.record.metadata, **row.record.metadata}
            record = replace(row.record, record_id=done.record.record_id, metadata=metadata)
            row = replace(row, record=record, outcomes=done.outcomes, asked=done.asked)
            if metadata != done.record.metadata or row.label not in {None, done.label}:
                self.add(row)  # with the columns that are new
            yield row


def _settings_in(run: Mapping[str, Any]) -> dict[str, Any]:
    """What a run was made with, by name; of a metric each field by itself."""
    metrics = run.get("metrics", ())
    own = {f"{field} of {one['name']}": value for one in metrics for field, value in one.items() if field != "name"}
    return {**run, "metrics": [one["name"] for one in metrics], **own}


def _described(metric: Metric) -> dict[str, Any]:
    """The metric, its judge and its settings in plain data, to compare with those of an earlier run; no key and no address."""
    about: dict[str, Any] = {"name": metric.name}
    data: Any = metric
    for item in fields(data) if is_dataclass(data) else ():
        value = getattr(data, item.name)
        if hasattr(value, "name"):
            about[item.name] = f"{value.name}, prompts {getattr(value, 'prompt_version', None)}"
        elif isinstance(value, (str, int, float)):
            about[item.name] = value
    return about


def _texts(row: EvaluatedRow) -> bytes:
    """What is judged."""
    record = row.record
    return _encoded([record.question, record.response, record.contexts and [one.text for one in record.contexts]])


# Lines


def _offsets_in(path: Path) -> tuple[Sequence[int], int, bool]:
    """Where the last line of each row begins, by its number, 0 where it has none; where whole lines end; whether a row has several."""
    offsets, end, has_several = array("q"), 0, False
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                break
            if begins := _ROW.match(line):
                row = int(begins[1])
                has_several |= row < len(offsets)
                offsets.extend([0] * (row + 1 - len(offsets)))
                offsets[row] = end
            elif end:
                raise _unreadable(path)
            end += len(line)
    return offsets, end, has_several


def _lines_at(path: Path, offsets: Sequence[int]) -> Iterator[bytes]:
    with path.open("rb") as file:
        for offset in filter(None, offsets):
            file.seek(offset)
            yield file.readline()


def _line_of(done: EvaluatedRow) -> bytes:
    """The row with its texts and its outcomes, without the fields that say nothing."""
    record = msgspec.json.decode(done.record.to_json())
    if record["contexts"]:
        record["contexts"] = [_pruned(one, "text") for one in record["contexts"]]
    plain = {**{name: record[name] for name in _KEPT}, "label": done.label_word, "asked": done.asked}
    outcomes = {}

    def other(value: object) -> float | str:
        """A number of NumPy's as a number; what else JSON cannot hold becomes the name of its type."""
        return float(value) if isinstance(value, numbers.Real) else type(value).__name__

    for name, outcome in done.outcomes.items():
        of_outcome = {item.name: getattr(outcome, item.name) for item in fields(outcome)}
        known = [one for one in of_outcome.get("evidence", ()) if type(one).__name__ in _EVIDENCE]  # of our metrics
        of_outcome["evidence"] = [{"type": type(one).__name__, **msgspec.to_builtins(one)} for one in known]
        kind = next(kind for kind, of_kind in _OUTCOMES.items() if isinstance(outcome, of_kind))
        outcomes[name] = {"outcome": kind, **_pruned(msgspec.to_builtins(of_outcome, enc_hook=other))}
    return _encoded({"row": done.row, **_pruned(plain, *_KEPT[:4]), "outcomes": outcomes}) + b"\n"


def _encoded(plain: Any) -> bytes:
    """JSON in UTF-8, with a question mark for each half of a surrogate pair."""
    return json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace")


def _pruned(plain: Mapping[str, Any], *kept: str) -> dict[str, Any]:
    """Without the entries that say nothing, unless they are kept all the same."""
    nothing: tuple[Any, ...] = (None, "", [], {})
    return {key: one for key, one in plain.items() if key in kept or (one is not False and one not in nothing)}


def _row_of(line: bytes) -> EvaluatedRow:
    plain = json.loads(line)
    outcomes: dict[str, Outcome] = {}
    for name, outcome in plain["outcomes"].items():
        kind = _OUTCOMES[outcome.pop("outcome")]
        if "evidence" in outcome:
            outcome["evidence"] = tuple(_EVIDENCE[one.pop("type")](**one) for one in outcome["evidence"])
        outcomes[name] = msgspec.convert(outcome, kind)
    return EvaluatedRow(
        row=plain["row"],
        record=msgspec.json.decode(line, type=RagRecord),
        outcomes=outcomes,
        label={"pass": True, "fail": False}.get(plain.get("label")),
        asked=plain.get("asked"),
    )


def _run_of(path: Path, advice: str = "ragspan evaluate --output writes one") -> dict[str, Any]:
    """What the first line says of the run."""
    try:
        with contextlib.suppress(ValueError, LookupError, TypeError), path.open("rb") as file:
            run = json.loads(file.readline(1 << 20))[RUN]
            if run["format"] == _FORMAT and isinstance(run["metrics"], list):
                return dict(run)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}") from None
    raise _unreadable(path, advice)


def _unreadable(path: Path, advice: str = "evaluate anew") -> TableError:
    return TableError(f"{path} is not a file of rows that this version of ragspan wrote, or was damaged: {advice}")


# Files of the user's choosing: none that is written is one that is read, and none is ever half-written


def require_apart(read: Mapping[str, Any], written: Mapping[str, Path | None]) -> None:
    """Raise a `ConfigurationError` for a file that is read and written, or written twice, also by another spelling."""
    files = [(f"{name}, which is read", one) for name, one in read.items() if isinstance(one, (str, os.PathLike))]
    before = {os.path.realpath(one): words for words, one in files}
    for option, path in written.items():
        if path is not None and path.as_posix() == "-":
            raise ConfigurationError(f"{option} is '-', but needs the name of a file, or /dev/stdout")
        if path is not None and (words := before.setdefault(os.path.realpath(path), option)) != option:
            raise ConfigurationError(
                f"{option} {str(path)!r} is the same file as {words}, and would replace it: give {option} another name"
            )


def require_jsonl(path: Path, option: str) -> None:
    """Raise a `ConfigurationError` unless the file's name says that it is JSONL."""
    if path.suffix.lower() != ".jsonl":
        better = f"{path.stem}.jsonl"
        raise ConfigurationError(f"{option} is {str(path)!r}, but rows are written as JSONL: name it {better}")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write, which replaces `path` in one step at the end, or not at all. Only its owner may read it.

    What is there already and is not a file, such as /dev/stdout, is written itself.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.touch(mode=0o600)  # it quotes answers and contexts
        yield unfinished
        unfinished.replace(path)
    except OSError as error:
        raise TableError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
