"""The rows of an evaluated table: with all their outcomes, or with what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragspan.outcomes import Asked, Outcome, Score
from ragspan.records import RagRecord

if TYPE_CHECKING:
    from rich.text import Text


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
        found = self.outcomes.items()
        return {name: one for name, one in found if isinstance(one, Score) and one.label == "fail"}

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


def named_judge(score: Score) -> str | None:
    """Who gave the score, with the version of the prompts."""
    return f"{score.judge} (prompts {score.prompt_version})" if score.prompt_version else score.judge
