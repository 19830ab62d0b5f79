"""The rows of an evaluated table: with their outcomes, as a line for each metric, and those that cannot be read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from ragspan.outcomes import Asked, CauseKind, Label, MetricFailure, NotApplicable, Outcome, Score, html_of
from ragspan.records import RagRecord
from ragspan.usage import Usage

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
    asked: Asked | None = None
    """Why the judge was asked, where it is asked about a share of the rows; None if it was not, or is asked about all."""
    doubt: float | None = None
    """How doubtful the row is by the embedded judge, from 0 to 1, where the judge is asked about a share of the rows."""
    screened: Mapping[str, Outcome] = field(default_factory=dict)
    """What the embedded judge has said of the row by metric, as long as it is not known whether the judge is asked."""

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

    def described(self, *metrics: str) -> Iterator[Text]:
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
    asked: Asked | None = None
    """Why the judge was asked about the row, where it is asked about a share of the rows."""
    screen_score: float | None = None
    """The embedded judge's, where `score` is that of a judge that was asked about a share of the rows."""
    screen_label: Label | None = None

    @classmethod
    def from_outcome(
        cls, outcome: Outcome, *, row: int, record_id: str, metric: str, asked: Asked | None = None
    ) -> ResultRow:
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
            asked=asked,
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
            screen_score=None if outcome.screen is None else float(outcome.screen.value),
            screen_label=None if outcome.screen is None else outcome.screen.label,
        )


RESULT_COLUMNS: tuple[str, ...] = tuple(item.name for item in fields(ResultRow))
"""The columns of a result file, in their order."""
_INTEGERS = ("row", "requests", "input_tokens", "output_tokens")
_FLOATS = ("score", "usd", "screen_score")
cells_of = attrgetter(*RESULT_COLUMNS)


def column_types(integer: Any, real: Any, text: Any) -> dict[str, Any]:
    """The type of each column, of the three that there are."""
    return dict.fromkeys(RESULT_COLUMNS, text) | dict.fromkeys(_INTEGERS, integer) | dict.fromkeys(_FLOATS, real)


def named_judge(score: Score | ResultRow) -> str | None:
    """Who gave the score, with the version of the prompts."""
    return f"{score.judge} (prompts {score.prompt_version})" if score.prompt_version else score.judge
