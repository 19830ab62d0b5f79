"""One evaluation from its first row to its last: read, score, note, count."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

from ragspan.datasets.journal import Journal, JournalRow
from ragspan.datasets.records import RecordReader, RecordRow, digest_of
from ragspan.datasets.results import BAD_ROWS_KEPT, SKIPPED_REASONS, BadRow, EvaluatedRow, Evaluation, ResultRow
from ragspan.datasets.tables.base import Table
from ragspan.datasets.tally import Tally
from ragspan.datasets.worst import Worst
from ragspan.exceptions import TableError
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, Usage

if TYPE_CHECKING:
    from ragspan.datasets.plan import Plan

OnError: TypeAlias = Literal["skip", "stop"]
Entry: TypeAlias = "RecordRow | BadRow"
Done: TypeAlias = "EvaluatedRow | BadRow"


class Standing:
    """What a run has done so far: what its progress shows, and in the end its result."""

    def __init__(self, metrics: tuple[str, ...], *, share_done: Callable[[int], float | None]) -> None:
        self.metrics = metrics
        self.rows = 0
        """Records that were evaluated, those of earlier runs included."""
        self.resumed = 0
        """Rows of earlier runs among all."""
        self.bad_rows: list[BadRow] = []
        """The first of them."""
        self.bad_row_count = 0
        self.skipped: Counter[str] = Counter()
        self.usage = Usage()
        self.began = time.monotonic()
        self.tally = Tally(metrics)
        self.worst = Worst(metrics)
        self._share_done = share_done

    @property
    def done(self) -> int:
        """Rows of the table, bad ones included."""
        return self.rows + self.bad_row_count

    @property
    def share(self) -> float | None:
        """Of the table, from 0 to 1; None where its size is not known."""
        return self._share_done(self.done)

    def add(self, done: Done) -> None:
        if isinstance(done, BadRow):
            self.bad_row_count += 1
            self.skipped["unreadable"] += 1
            if len(self.bad_rows) < BAD_ROWS_KEPT:
                self.bad_rows.append(done)
            return
        self.rows += 1
        self.worst.offer(done)
        self.skipped.update([reason for reason in map(_skipped, done.outcomes.values()) if reason][:1])
        for metric, outcome in done.outcomes.items():
            result = ResultRow.from_outcome(outcome, row=done.row, record_id=done.record.record_id, metric=metric)
            self.tally.add(result, outcome.threshold if isinstance(outcome, Score) else None)
            if isinstance(outcome, Score) and outcome.usage is not None:
                self.usage += outcome.usage

    def evaluation(
        self, stream: Callable[[], Iterator[ResultRow]], *, is_complete: bool, source: str | None, columns: str
    ) -> Evaluation:
        return Evaluation(
            metrics=self.metrics,
            rows=self.rows,
            summary=self.tally.summary(),
            worst=self.worst.rows(),
            bad_rows=tuple(self.bad_rows),
            bad_row_count=self.bad_row_count,
            skipped=dict(self.skipped.most_common()),
            source=source,
            columns=columns,
            resumed=self.resumed,
            usage=self.usage,
            seconds=time.monotonic() - self.began,
            is_complete=is_complete,
            scores=self.tally.scores,
            stream=stream,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What a run needs besides its plan."""

    plan: Plan
    table: Table
    reader: RecordReader
    journal: Journal
    standing: Standing
    score_all: Callable[[Iterator[Entry]], Iterator[Done]]

    def execute(self) -> None:
        """Evaluate what is not done yet.

        Raises:
            TableError: the table cannot be read on, differs from the one in the journal, or has a bad row and `on_error`
                is `stop`. What was done is in the journal.
        """
        entries = self._entries()
        for done in self._replayed(entries):
            self.standing.resumed += 1
            self._count(done)
        if self.plan.should_stop():  # what was not compared with the journal is not scored after its rows
            return
        for done in self.score_all(entries):
            if isinstance(done, BadRow) and self.plan.on_error == "stop":
                raise TableError(f"stopped at a bad row, as --on-error stop asks: {done}")
            self.journal.add(done)
            self._count(done)

    def _count(self, done: Done) -> None:
        self.standing.add(done)
        self.plan.on_row(self.standing)

    def _entries(self) -> Iterator[Entry]:
        for entry in islice(self.plan.reading(self.table.entries), self.plan.limit):
            yield entry if isinstance(entry, BadRow) else self.reader.read(entry)

    def _replayed(self, entries: Iterator[Entry]) -> Iterator[Done]:
        """The rows that an earlier run did, with the texts that its journal does not have."""
        if not self.journal.rows:
            return
        for noted in self.journal.done():
            entry = next(entries, None)
            if self.plan.should_stop():
                return
            if entry is None:
                raise TableError(
                    f"the table ends before row {noted.row}, which {self.journal.path} has: it is another one"
                )
            yield self._same(noted, entry)

    def _same(self, noted: JournalRow | BadRow, entry: Entry) -> Done:
        if isinstance(noted, BadRow) and noted == entry:
            return noted
        if isinstance(noted, JournalRow) and isinstance(entry, RecordRow) and _is_same(noted, entry):
            record = replace(entry.record, record_id=noted.record_id)
            return EvaluatedRow(row=noted.row, record=record, outcomes=noted.outcomes)
        raise TableError(
            f"row {noted.row} is not what it was when {self.journal.path} was written, so that run cannot be continued"
        )


def results_of(journal: Journal) -> Iterator[ResultRow]:
    """The lines of a result file, from the journal of a run."""
    for noted in journal.done():
        if isinstance(noted, JournalRow):
            yield from _lines(noted.row, noted.record_id, noted.outcomes)


def _lines(row: int, record_id: str, outcomes: Mapping[str, Outcome]) -> Iterator[ResultRow]:
    for metric, outcome in outcomes.items():
        yield ResultRow.from_outcome(outcome, row=row, record_id=record_id, metric=metric)


def _skipped(outcome: Outcome) -> str | None:
    """Why there is no score, where there should be one."""
    if isinstance(outcome, MetricFailure):
        return outcome.error_type
    return outcome.reason if isinstance(outcome, NotApplicable) and outcome.reason in SKIPPED_REASONS else None


def _is_same(noted: JournalRow, entry: RecordRow) -> bool:
    return noted.row == entry.row and noted.digest == digest_of(entry.record)
