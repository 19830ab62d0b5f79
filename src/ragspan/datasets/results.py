"""What comes out of an evaluated table: a line for each record and metric, a summary, and the worst answers.

No figure here is NaN: where nothing was scored there is None.
"""

from __future__ import annotations

import importlib
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from ragspan.notebook import table
from ragspan.outcomes import CauseKind, Label, MetricFailure, NotApplicable, Outcome, Score, Usage, html_of
from ragspan.records import RagRecord

if TYPE_CHECKING:
    from rich.text import Text

SKIPPED_REASONS = frozenset({"no_question", "no_response", "contexts_unknown", "budget_exhausted"})
"""Reasons that lie in the table or the budget, and not in the answer: a mean over the other rows hides them."""
WORST_KEPT = 20
"""Rows of a metric that are kept with their texts."""
BAD_ROWS_KEPT = 10_000
SUMMARY_HEADER = ("metric", "mean", "median", "min", "max", "std", "scored", "passed")


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
        line = partial(cls, row=row, record_id=record_id, metric=metric)
        if isinstance(outcome, NotApplicable):
            return line(outcome="not_applicable", reason=outcome.reason, detail=outcome.detail)
        if isinstance(outcome, MetricFailure):
            return line(outcome="failure", reason=outcome.error_type, detail=outcome.message)
        usage = outcome.usage
        return line(
            outcome="score",
            score=float(outcome.value),
            label=outcome.label,
            cause=outcome.cause,
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
_INTEGERS = ("row", "requests", "input_tokens", "output_tokens")
_FLOATS = ("score", "usd")
cells_of = attrgetter(*RESULT_COLUMNS)


def column_types(integer: Any, real: Any, text: Any) -> dict[str, Any]:
    """The type of each column, of the three that there are."""
    return dict.fromkeys(RESULT_COLUMNS, text) | dict.fromkeys(_INTEGERS, integer) | dict.fromkeys(_FLOATS, real)


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricSummary:
    """The distribution of one metric's scores, and why rows have none. Rows without a score are in no figure."""

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
    causes: Mapping[str, int] = field(default_factory=dict)
    """Scores that fail by their cause, where it is known, the most frequent first."""

    @property
    def skipped(self) -> int:
        """Rows that lack a score because a cell is missing, the metric failed, or the budget is spent."""
        return self.failed + sum(self.not_scored.get(reason, 0) for reason in SKIPPED_REASONS)

    @property
    def reasons(self) -> str:
        """Why rows have no score, in words."""
        return ", ".join(f"{reason} {count:,}" for reason, count in self.not_scored.items())

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


class MetricTally:
    """The scores of one metric, eight bytes each, and the reasons where there is none."""

    def __init__(self) -> None:
        self.scores = array("d")
        """In the order in which they were added."""
        self._total = 0.0
        self._passed = 0
        self._threshold: float | None = None
        self._not_scored: Counter[str] = Counter()
        self._causes: Counter[str] = Counter()
        self._failed = 0

    def add(self, outcome: Outcome) -> None:
        if isinstance(outcome, MetricFailure):
            self._not_scored[outcome.error_type] += 1
            self._failed += 1
        elif isinstance(outcome, NotApplicable):
            self._not_scored[outcome.reason] += 1
        else:
            self.scores.append(outcome.value)
            self._total += outcome.value
            self._passed += outcome.label == "pass"
            self._causes.update([outcome.cause] if outcome.cause else ())
            if self._threshold is None:
                self._threshold = outcome.threshold

    @property
    def mean(self) -> float | None:
        """So far, up to the rounding of a running sum."""
        return self._total / len(self.scores) if self.scores else None

    def summary(self, metric: str) -> MetricSummary:
        not_scored = dict(sorted(self._not_scored.items(), key=lambda item: (-item[1], item[0])))
        ordered, count = sorted(self.scores), len(self.scores)
        if not count:
            return MetricSummary(metric=metric, not_scored=not_scored, failed=self._failed)
        # Rounded sums of equal values can be a bit outside of them.
        mean = min(max(math.fsum(ordered) / count, ordered[0]), ordered[-1])
        return MetricSummary(
            metric=metric,
            scored=count,
            passed=self._passed,
            not_scored=not_scored,
            failed=self._failed,
            mean=mean,
            median=(ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
            minimum=ordered[0],
            maximum=ordered[-1],
            standard_deviation=deviation_of(ordered, mean) if count > 1 else None,
            threshold=self._threshold,
            causes=dict(self._causes.most_common()),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
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
    by_dimension: Mapping[str, Mapping[str, Mapping[str, MetricSummary]]] = field(default_factory=dict, repr=False)
    """By dimension (`RAGSPAN_DIMENSIONS`), value and metric; at most 50 values of a dimension, then `_OTHER`."""
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

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = [(*summary.cells(), summary.reasons) for summary in self.summary.values()]
        title = f"{self.source or 'Evaluation'}: {self.rows:,} rows, {sum(self.skipped.values()):,} skipped"
        title += "" if self.is_complete else " (interrupted)"
        return table(title, rows, header=(*SUMMARY_HEADER, "not scored"))

    @property
    def judges(self) -> tuple[str, ...]:
        """Who judged the worst rows, with the versions of the prompts."""
        scores = [outcome for row in self.worst for outcome in row.outcomes.values() if isinstance(outcome, Score)]
        named = (named_judge(score) for score in scores)
        return tuple(dict.fromkeys(filter(None, named)))

    def worst_by(self, metric: str) -> list[EvaluatedRow]:
        """Of `worst`, the rows that have a score of this metric, the lowest first, and of equals the earlier row."""
        rated = [(evaluated.outcomes.get(metric), evaluated) for evaluated in self.worst]
        values = [(score.value, row.row, row) for score, row in rated if isinstance(score, Score)]
        return [row for _, _, row in sorted(values, key=lambda rated: rated[:2])[:WORST_KEPT]]

    def results(self) -> Iterator[ResultRow]:
        """Each record and metric, in the order of the table and of the metrics."""
        return self.stream()

    def to_pandas(self) -> Any:
        """The results as a pandas data frame, with pandas' nullable types: what is missing is `NA`.

        Raises:
            ImportError: pandas is not installed.
        """
        pandas = importlib.import_module("pandas")
        frame = pandas.DataFrame(list(map(cells_of, self.results())), columns=list(RESULT_COLUMNS), dtype=object)
        return frame.astype(column_types("Int64", "Float64", "string"))

    def to_polars(self) -> Any:
        """The results as a polars data frame; what is missing is `null`.

        Raises:
            ImportError: polars is not installed.
        """
        polars = importlib.import_module("polars")
        schema = column_types(polars.Int64, polars.Float64, polars.String)
        return polars.DataFrame(list(map(cells_of, self.results())), schema=schema, orient="row")


def deviation_of(values: Sequence[float], mean: float) -> float:
    """The standard deviation of a sample; `statistics.stdev` computes with fractions, a second for 100,000 values."""
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def named_judge(score: Score | ResultRow) -> str | None:
    """Who gave the score, with the version of the prompts."""
    return f"{score.judge} (prompts {score.prompt_version})" if score.prompt_version else score.judge
