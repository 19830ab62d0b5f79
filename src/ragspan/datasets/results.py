"""What comes out of an evaluated table: a line for each record and metric, a summary, and the worst answers.

No figure here is NaN: where nothing was scored there is None.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from ragspan.datasets.summaries import SUMMARY_HEADER, MetricSummary
from ragspan.notebook import table
from ragspan.outcomes import CauseKind, Label, MetricFailure, NotApplicable, Outcome, Score, Usage, html_of
from ragspan.records import RagRecord

if TYPE_CHECKING:
    from rich.text import Text

WORST_KEPT = 20
"""Rows of a metric that are kept with their texts."""
BAD_ROWS_KEPT = 10_000


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

    @property
    def failing(self) -> dict[str, Score]:
        """The scores that fail, by metric."""
        scores = {name: outcome for name, outcome in self.outcomes.items() if isinstance(outcome, Score)}
        return {name: score for name, score in scores.items() if score.label == "fail"}

    @property
    def badness(self) -> tuple[int, float, int]:
        """Orders rows: first those that fail most metrics, then those with the lowest mean."""
        values = [outcome.value for outcome in self.outcomes.values() if isinstance(outcome, Score)]
        return -len(self.failing), math.fsum(values) / len(values) if values else 1.0, self.row

    def told(self, *metrics: str) -> Iterator[Text]:
        """The row with its texts, and what these metrics say of it, in lines for a terminal."""
        from rich.text import Text

        from ragspan.telemetry.console import outcome_line, text_lines

        record_id = self.record.record_id
        yield Text(f"row {self.row:,}" + ("" if record_id == f"row-{self.row}" else f" ({record_id})"))
        yield from text_lines(self.record)
        for metric in metrics:
            outcome = self.outcomes[metric]
            explanation = outcome.explanation if isinstance(outcome, Score) else None
            yield Text("  ").append_text(outcome_line(metric, outcome, explanation))

    def _repr_html_(self) -> str:
        """For notebooks."""
        return html_of(self.record, self.outcomes)


@dataclass(frozen=True, kw_only=True, slots=True)
class BadRow:
    """A row that could not be read, or holds what no record can."""

    row: int
    """Of the table's data, counted from 1."""
    reason: str
    """For people. It quotes nothing of the row's texts."""
    line: int | None = None
    """Where the row begins in the file, counted from 1; None where the data have no lines."""

    @property
    def place(self) -> str:
        return f"row {self.row}" if self.line is None else f"row {self.row} (line {self.line})"

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultRow:
    """One record and one metric, as a result file has them; the fields are its columns."""

    row: int
    """Of the table's data, counted from 1."""
    record_id: str
    metric: str
    outcome: Literal["score", "not_applicable", "failure"] | None = None
    score: float | None = None
    """From 0 to 1; None if there is none, and then `reason` says why."""
    label: Label | None = None
    cause: CauseKind | None = None
    """Why a score fails, where it is known; see `ragspan.outcomes.Cause`."""
    explanation: str | None = None
    reason: str | None = None
    """Why there is no score: the reason of a `NotApplicable`, or the type of a failure."""
    detail: str | None = None
    """More about the reason; for a score, why another judge than the metric's own gave it."""
    judge: str | None = None
    prompt_version: str | None = None
    requests: int | None = None
    """To a judge over the network, and so on: None where none was asked."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None
    """US dollars; None where nothing was paid, or the price is not known."""

    @classmethod
    def from_outcome(cls, outcome: Outcome, *, row: int, record_id: str, metric: str) -> ResultRow:
        """The line of one outcome."""
        usage = outcome.usage or Usage()
        paid: dict[str, Any] = {
            "requests": usage.requests,
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
        }
        line = partial(
            cls,
            row=row,
            record_id=record_id,
            metric=metric,
            usd=usage.usd,
            **(paid if outcome.usage is not None else {}),
        )
        if isinstance(outcome, NotApplicable):
            return line(outcome="not_applicable", reason=outcome.reason, detail=outcome.detail)
        if isinstance(outcome, MetricFailure):
            return line(outcome="failure", reason=outcome.error_type, detail=outcome.message)
        return line(
            outcome="score",
            score=float(outcome.value),
            label=outcome.label,
            cause=outcome.cause,
            explanation=outcome.explanation,
            detail=outcome.fallback,
            judge=outcome.judge,
            prompt_version=outcome.prompt_version,
        )


RESULT_COLUMNS: tuple[str, ...] = tuple(item.name for item in fields(ResultRow))
"""The columns of a result file, in their order."""
_INTEGERS = ("row", "requests", "input_tokens", "output_tokens")
_FLOATS = ("score", "usd")
cells_of = attrgetter(*RESULT_COLUMNS)


def column_types(integer: Any, real: Any, text: Any) -> dict[str, Any]:
    """The type of each column, of the three that there are."""
    return dict.fromkeys(RESULT_COLUMNS, text) | dict.fromkeys(_INTEGERS, integer) | dict.fromkeys(_FLOATS, real)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Evaluation:
    """The outcome of evaluating a table. It holds eight bytes a score in memory; `results()` streams the rest."""

    metrics: tuple[str, ...]
    rows: int
    """Records that were evaluated: the table's rows but for the bad ones, and for those that are not done."""
    summary: Mapping[str, MetricSummary]
    worst: Sequence[EvaluatedRow] = field(default=(), repr=False)
    """The rows with the lowest scores of any of the metrics, in the order of the table, with texts and evidence: at most
    `WORST_KEPT` a metric. See `worst_by`."""
    bad_rows: Sequence[BadRow] = ()
    """The first `BAD_ROWS_KEPT` of them, in the order of the table."""
    bad_row_count: int = 0
    resumed: int = 0
    """Rows that an earlier run did, of these and the bad ones."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rows without a score that they should have, by the first reason: one of `SKIPPED_REASONS`, the type of a failure,
    or `unreadable` for bad rows."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """What failures said, by their type: the first of each."""
    failing: int = 0
    """Rows that fail at least one metric."""
    special: Mapping[str, int] = field(default_factory=dict)
    """Rows by what they are, and no metric's fault: `refusal` (the response declines, rightly), `cannot_tell` (the judge is
    unsure), `no_contexts`."""
    by_dimension: Mapping[str, Mapping[str, Mapping[str, MetricSummary]]] = field(default_factory=dict, repr=False)
    """By dimension (`RAGSPAN_DIMENSIONS`), value and metric; at most 50 values of a dimension, then `_OTHER`."""
    data: Any = field(default=None, repr=False)
    """The table, where it can be read again; else None."""
    of_file: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """How it is read, if it is a file."""
    limit: int | None = None
    """The rows that were to be evaluated; None is all."""
    source: str | None = None
    """The file's name; None for data in memory."""
    labels: Mapping[int, bool] = field(default_factory=dict, repr=False)
    """Whether people say that a response is good, by its row; of the rows that have a label."""
    columns: str = ""
    """What was read as what, in a line."""
    usage: Usage = field(default_factory=Usage)
    """Of all judging, also that of an earlier run that this one resumed."""
    seconds: float = 0.0
    """The duration of this run."""
    is_complete: bool = True
    """False if it was interrupted: what is here is what was done by then."""
    scores: Mapping[str, array[float]] = field(default_factory=dict, repr=False)
    """By metric, in the order of the table; rows without a score are left out."""
    stream: Callable[[], Iterator[ResultRow]] = field(default=lambda: iter(()), repr=False)

    def __str__(self) -> str:
        """The figures of each metric as a table, and what was done."""
        from ragspan.datasets.shown import as_text

        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [(*summary.cells(), summary.reasons) for summary in self.summary.values()]
        title = f"{self.source or 'Evaluation'}: {self.rows:,} rows, {sum(self.skipped.values()):,} skipped"
        title += "" if self.is_complete else " (interrupted)"
        return table(title, rows, header=(*SUMMARY_HEADER, "not scored"))

    @property
    def is_scored(self) -> bool:
        """Whether any metric has a score, or finds a refusal right: then the judge works."""
        return any(summary.scored + summary.refusals for summary in self.summary.values())

    @property
    def why_not_scored(self) -> str:
        """Why rows have no score, in words: what failures said, and the reasons that are none."""
        reasons: Counter[str] = Counter()
        for summary in self.summary.values():
            for reason, count in summary.not_scored.items():
                reasons[reason] = max(reasons[reason], count)
        if self.bad_row_count:
            reasons["unreadable"] = self.bad_row_count
        told = [
            f"{reason} {count:,}" + (f" ({self.failures[reason]})" if self.failures.get(reason) else "")
            for reason, count in reasons.most_common()
        ]
        return ", ".join(told) or "the table has no rows"

    @property
    def judges(self) -> tuple[str, ...]:
        """Who judged the worst rows, with the versions of the prompts."""
        scores = [outcome for row in self.worst for outcome in row.outcomes.values() if isinstance(outcome, Score)]
        named = (named_judge(score) for score in scores)
        return tuple(dict.fromkeys(filter(None, named)))

    @property
    def worst_responses(self) -> list[EvaluatedRow]:
        """Of `worst`, the rows that fail a metric, those that fail most first, and each response once."""
        first: dict[str | None, EvaluatedRow] = {}
        for row in sorted((row for row in self.worst if row.failing), key=lambda row: row.badness):
            first.setdefault(row.record.response, row)
        return list(first.values())

    def worst_by(self, metric: str) -> list[EvaluatedRow]:
        """Of `worst`, the rows that have a score of this metric, the lowest first, and of equals the earlier row."""
        rated = [(evaluated.outcomes.get(metric), evaluated) for evaluated in self.worst]
        values = [(score.value, row.row, row) for score, row in rated if isinstance(score, Score)]
        return [row for _, _, row in sorted(values, key=lambda rated: rated[:2])[:WORST_KEPT]]

    def results(self) -> Iterator[ResultRow]:
        """Each record and metric, in the order of the table and of the metrics."""
        return self.stream()

    def to_pandas(self, *, long: bool = False) -> Any:
        """The table as a pandas data frame, with columns of the scores beside its own.

        Each metric has three: `faithfulness`, `faithfulness_label` and `faithfulness_reason` (the judge's words, or why there
        is not a score). What is missing is `NA`.

        Args:
            long: a line for each record and metric, as in a result file, in place of that.

        Raises:
            ImportError: pandas is not installed.
        """
        from ragspan.datasets import frames

        return frames.long_pandas(self) if long else frames.wide_pandas(self)

    def to_polars(self, *, long: bool = False) -> Any:
        """As `to_pandas`, in polars; what is missing is `null`.

        Raises:
            ImportError: polars is not installed.
        """
        from ragspan.datasets import frames

        return frames.long_polars(self) if long else frames.wide_polars(self)


def named_judge(score: Score | ResultRow) -> str | None:
    """Who gave the score, with the version of the prompts."""
    return f"{score.judge} (prompts {score.prompt_version})" if score.prompt_version else score.judge
