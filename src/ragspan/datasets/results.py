"""What comes out of an evaluated table: a line for each record and metric, a summary, and the worst answers.

No figure here is NaN: where nothing was scored there is None.
"""

from __future__ import annotations

import importlib
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from functools import partial
from typing import Any, Literal

from ragspan.notebook import table
from ragspan.outcomes import Label, MetricFailure, NotApplicable, Outcome, Score, Usage, html_of
from ragspan.records import RagRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluatedRow:
    """A row of the table with its texts and all its outcomes."""

    row: int
    """Of the table's data, counted from 1."""
    record: RagRecord
    outcomes: Mapping[str, Outcome]
    """By metric, in the order of the metrics."""

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

    def __str__(self) -> str:
        place = f"row {self.row}" if self.line is None else f"row {self.row} (line {self.line})"
        return f"{place}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultRow:
    """One record and one metric, as it stands in the result file; the fields are its columns."""

    row: int
    """Of the table's data, counted from 1."""
    record_id: str
    metric: str
    outcome: Literal["score", "not_applicable", "failure"] | None = None
    score: float | None = None
    """From 0 to 1; None if there is none, and then `reason` says why."""
    label: Label | None = None
    explanation: str | None = None
    reason: str | None = None
    """Why there is no score: the reason of a `NotApplicable`, or the type of a failure."""
    detail: str | None = None
    """More about the reason; for a score, why another judge stood in for the metric's own."""
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
        line = partial(cls, row=row, record_id=record_id, metric=metric)
        if isinstance(outcome, NotApplicable):
            return line(outcome="not_applicable", reason=outcome.reason, detail=outcome.detail)
        if isinstance(outcome, MetricFailure):
            return line(outcome="failure", reason=outcome.error_type, detail=outcome.message)
        usage = outcome.usage
        return line(
            outcome="score",
            score=outcome.value,
            label=outcome.label,
            explanation=outcome.explanation,
            detail=outcome.fallback,
            judge=outcome.judge,
            prompt_version=outcome.prompt_version,
            requests=usage.requests if usage else None,
            input_tokens=usage.input_tokens if usage else None,
            output_tokens=usage.output_tokens if usage else None,
            usd=usage.usd if usage else None,
        )


RESULT_COLUMNS: tuple[str, ...] = tuple(item.name for item in fields(ResultRow))
"""The columns of a result file, in their order."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSummary:
    """The distribution of one metric's scores, and why rows have none.

    The figures are over the scores alone: what was not scored is counted, by its reason, and is in no mean.
    """

    metric: str
    scored: int = 0
    passed: int = 0
    """Of the scored ones, those labelled `pass`."""
    not_scored: Mapping[str, int] = field(default_factory=dict)
    """Rows without a score by reason, the most frequent first."""
    failed: int = 0
    """Of those, the ones on which the metric failed: it should have had a score."""
    mean: float | None = None
    median: float | None = None
    minimum: float | None = None
    maximum: float | None = None
    standard_deviation: float | None = None
    """Of a sample (divided by n - 1); None for fewer than two scores."""
    threshold: float | None = None
    """Values from here on pass; None where the metric has no threshold."""

    @property
    def skipped(self) -> int:
        """Rows that lack a score because a cell is missing, the metric failed, or the budget is spent."""
        return self.failed + sum(self.not_scored.get(reason, 0) for reason in SKIPPED_REASONS)

    def cells(self) -> tuple[str, ...]:
        """The figures as people read them, under `SUMMARY_HEADER`."""
        figures = (self.mean, self.median, self.minimum, self.maximum, self.standard_deviation)
        passed = f"{self.passed / self.scored:.0%}" if self.scored and self.threshold is not None else "-"
        return (
            self.metric,
            *("-" if figure is None else f"{figure:.3f}" for figure in figures),
            f"{self.scored:,}",
            passed,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The outcome of evaluating a table.

    What grows with the table is kept outside of memory, but for eight bytes a score: `results()` streams.
    """

    metrics: tuple[str, ...]
    rows: int
    """Records that were evaluated: the table's rows but for the bad ones, and for those that are not done."""
    summary: Mapping[str, MetricSummary]
    worst: Sequence[EvaluatedRow] = ()
    """The rows with the lowest scores of any of the metrics, in the order of the table, with texts and evidence: at most
    `WORST_KEPT` a metric. See `worst_by`."""
    bad_rows: Sequence[BadRow] = ()
    """The first `BAD_ROWS_KEPT` of them, in the order of the table."""
    bad_row_count: int = 0
    resumed: int = 0
    """Rows that an earlier run did, of these and the bad ones."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Rows that lack a score they should have, by the first reason: one of `SKIPPED_REASONS`, the type of a failure, or
    `unreadable` for the bad ones."""
    source: str | None = None
    """The file's name; None for data in memory."""
    columns: str = ""
    """What was read as what, in a line."""
    usage: Usage = field(default_factory=Usage)
    """What all judging took, that of earlier runs included where this one resumed them."""
    seconds: float = 0.0
    """That this run took."""
    is_complete: bool = True
    """False if it was interrupted: what is here is what was done by then."""
    scores: Mapping[str, array[float]] = field(default_factory=dict, repr=False)
    stream: Callable[[], Iterator[ResultRow]] = field(default=lambda: iter(()), repr=False)

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [
            (*summary.cells(), ", ".join(f"{reason} {count:,}" for reason, count in summary.not_scored.items()))
            for summary in self.summary.values()
        ]
        title = f"{self.source or 'Evaluation'}: {self.rows:,} rows, {sum(self.skipped.values()):,} skipped"
        title += "" if self.is_complete else " (interrupted)"
        return table(title, rows, header=(*SUMMARY_HEADER, "not scored"))

    @property
    def judges(self) -> tuple[str, ...]:
        """Who judged, with the versions of the prompts, as far as the worst rows tell."""
        scores = [outcome for row in self.worst for outcome in row.outcomes.values() if isinstance(outcome, Score)]
        named = (
            f"{score.judge} (prompts {score.prompt_version})" if score.prompt_version else score.judge
            for score in scores
        )
        return tuple(dict.fromkeys(filter(None, named)))

    def values(self, metric: str) -> Sequence[float]:
        """All scores of a metric, in the order of the table; rows without a score are left out."""
        return self.scores[metric]

    def worst_by(self, metric: str) -> list[EvaluatedRow]:
        """Of `worst`, the rows that have a score of this metric, the lowest first, and of equals the earlier row."""
        rated = [(_value(evaluated.outcomes.get(metric)), evaluated) for evaluated in self.worst]
        chosen = [(value, evaluated) for value, evaluated in rated if value is not None]
        return [evaluated for _, evaluated in sorted(chosen, key=lambda pair: (pair[0], pair[1].row))[:WORST_KEPT]]

    def results(self) -> Iterator[ResultRow]:
        """Each record and metric, in the order of the table and of the metrics."""
        return self.stream()

    def to_pandas(self) -> Any:
        """The results as a pandas data frame, with pandas' nullable types: what is missing is `NA`.

        Raises:
            ImportError: pandas is not installed.
        """
        pandas = importlib.import_module("pandas")
        columns = zip(*map(_as_tuple, self.results()), strict=True)
        values = dict(zip(RESULT_COLUMNS, columns, strict=True)) if self.rows and self.metrics else {}
        return pandas.DataFrame(
            {name: pandas.array(list(values.get(name, ())), dtype=kind) for name, kind in _PANDAS_TYPES.items()}
        )

    def to_polars(self) -> Any:
        """The results as a polars data frame; what is missing is `null`.

        Raises:
            ImportError: polars is not installed.
        """
        polars = importlib.import_module("polars")
        schema = {name: getattr(polars, kind) for name, kind in _POLARS_TYPES.items()}
        return polars.DataFrame(list(map(_as_tuple, self.results())), schema=schema, orient="row")


SUMMARY_HEADER = ("metric", "mean", "median", "min", "max", "std", "scored", "passed")
SKIPPED_REASONS = frozenset({"no_question", "no_response", "contexts_unknown", "budget_exhausted"})
"""Reasons that lie in the table or the budget, and not in the answer: a mean over the other rows hides them."""
WORST_KEPT = 20
"""Rows of a metric that are kept with their texts."""
BAD_ROWS_KEPT = 10_000

INTEGERS = ("row", "requests", "input_tokens", "output_tokens")
FLOATS = ("score", "usd")


def _typed(integer: str, real: str, text: str) -> dict[str, str]:
    kinds = dict.fromkeys(INTEGERS, integer) | dict.fromkeys(FLOATS, real)
    return {name: kinds.get(name, text) for name in RESULT_COLUMNS}


_PANDAS_TYPES = _typed("Int64", "Float64", "string")
_POLARS_TYPES = _typed("Int64", "Float64", "String")


def _as_tuple(result: ResultRow) -> tuple[Any, ...]:
    return astuple(result)


def _value(outcome: Outcome | None) -> float | None:
    return outcome.value if isinstance(outcome, Score) else None
