"""What the scores of a table should be at least: for `ragspan evaluate` and `ragspan.testing.assert_scores`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragspan.arguments import SHARE, wrong
from ragspan.evaluate.evaluated import Evaluation
from ragspan.evaluate.summaries import MetricSummary
from ragspan.metrics.metric_catalogue import require_known

Kind: TypeAlias = Literal["mean", "passing", "none_below"]

MIN_SCORED = 0.5
"""The share of the rows that should have a score; below it, a gate speaks for a few rows only."""
_ROWS_SHOWN = 3
_OPTIONS: Mapping[Kind, str] = {"mean": "--fail-under", "passing": "--min-passing", "none_below": "--none-below"}
_SHOULD: Mapping[Kind, str] = {
    "mean": "have a mean of at least {minimum:g}",
    "passing": "pass {minimum:.0%} of the labelled rows",
    "none_below": "have no score below {minimum:g}",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """One thing that the scores of a metric should reach.

    Raises:
        ConfigurationError: the minimum is not a number from 0 to 1.
    """

    metric: str
    kind: Kind
    minimum: float

    def __post_init__(self) -> None:
        SHARE.check(f"the minimum of {self.metric}", self.minimum)

    def __str__(self) -> str:
        return f"{self.metric} should {_SHOULD[self.kind].format(minimum=self.minimum)}"

    def reached(self, summary: MetricSummary) -> float | None:
        """What the scores reach; None if nothing was scored, or nothing can pass.

        Where a judge is asked about a share of the rows it is what that judge would say of all rows, as far as it can be estimated,
        and the lowest of its own scores; where it has none, what the embedded judge says. It never mixes the two.
        """
        asked = summary.asked
        if self.kind == "none_below":
            return summary.minimum if asked is None or asked.lowest is None else asked.lowest
        if self.kind == "mean":
            return summary.mean if asked is None or asked.mean is None else asked.mean
        if asked is not None and asked.failures is not None:
            return 1 - asked.failures.value
        return summary.passed / summary.labelled if summary.labelled else None

    def judged_by(self, summary: MetricSummary) -> str | None:
        """Whose scores `reached` goes by, where a judge is asked about a share of the rows; else None."""
        asked = summary.asked
        if asked is None:
            return None
        seen = f"{asked.scored:,} of {summary.settled:,} rows"
        if self.kind == "none_below":
            return "the embedded judge" if asked.lowest is None else f"{asked.judge}, which scored {seen}"
        is_estimated = (asked.mean if self.kind == "mean" else asked.failures) is not None
        if is_estimated:
            return f"{asked.judge}, estimated from {seen}"
        return f"the embedded judge: {asked.judge or 'the judge'} scored too few rows at random for an estimate"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateResult:
    """Whether a gate held."""

    gate: Gate
    reached: float | None
    trouble: str | None
    """Why it did not hold, as a sentence; None where it held."""
    judged_by: str | None = None
    """Whose scores it goes by, where a judge is asked about a share of the rows."""

    def __str__(self) -> str:
        return f"{self.gate}, by {self.judged_by}" if self.judged_by else str(self.gate)


def parse_gates(kind: Kind, texts: Iterable[str]) -> list[Gate]:
    """Gates from texts such as `faithfulness=0.8`.

    Raises:
        ConfigurationError: a text is none.
    """
    gates = []
    for text in texts:
        metric, _, value = map(str.strip, text.partition("="))
        try:
            minimum = float(value if metric else "")
        except ValueError:
            raise wrong(_OPTIONS[kind], text, "a metric and a number, such as faithfulness=0.8") from None
        gates.append(Gate(metric=metric, kind=kind, minimum=minimum))
    return gates


def require_metrics(gates: Iterable[Gate], metrics: Sequence[str]) -> None:
    """Raise a `ConfigurationError` unless each gate is about one of these metrics."""
    for gate in gates:
        require_known(gate.metric, metrics)


def check_gates(evaluation: Evaluation, gates: Iterable[Gate], *, min_scored: float | None = None) -> list[GateResult]:
    """Whether each gate held.

    Args:
        evaluation: of the table.
        gates: about metrics of the evaluation.
        min_scored: the share of the rows that should have a score, from 0 to 1. Refusals that the judge finds right count as
            scored, rows that could not be read as not scored. None is half of them, and none may have been skipped.
    """
    if min_scored is not None:
        SHARE.check("min_scored", min_scored)
    return [_result(gate, evaluation, min_scored) for gate in gates]


def _result(gate: Gate, evaluation: Evaluation, accepted: float | None) -> GateResult:
    min_scored = MIN_SCORED if accepted is None else accepted
    summary = evaluation.summary[gate.metric]
    rows = evaluation.rows + evaluation.bad_row_count
    settled, skipped = summary.settled, summary.skipped + evaluation.bad_row_count
    reached = gate.reached(summary)
    trouble = None
    if summary.settled == summary.refusals:
        why = summary.reasons or "there are no rows"
        trouble = None if settled and settled >= min_scored * rows else f"{gate}, but nothing was scored: {why}"
    elif summary.silence is not None:
        trouble = f"{gate}, but {summary.silence}"
    elif reached is None:
        trouble = f"{gate}, but none of {summary.scored:,} scores has a label: the judge cannot tell, or only ranks"
    elif reached < gate.minimum:
        trouble = f"{gate}, but {_falls_short(gate, summary, reached)}"
    elif settled < min_scored * rows:
        trouble = (
            f"{gate}, and does, but only {settled:,} of {rows:,} rows have a score ({settled / rows:.0%}), and"
            f" --min-scored is {min_scored:.0%}: {summary.reasons or 'the others are unreadable'}"
        )
    elif skipped and accepted is None:
        trouble = (
            f"{gate}, and does over {summary.scored:,} scored rows, but {skipped:,} more had to be skipped:"
            " complete them, or say with --min-scored what share of the rows is enough"
        )
    return GateResult(gate=gate, reached=reached, trouble=trouble, judged_by=gate.judged_by(summary))


def _falls_short(gate: Gate, summary: MetricSummary, reached: float) -> str:
    asked, judged_by = summary.asked, gate.judged_by(summary)
    by = f" by {judged_by}" if judged_by else ""
    if gate.kind == "none_below":
        return f"the lowest is {reached:.4g}{by}"
    if gate.kind == "mean" and asked is not None and asked.mean is not None:
        return f"has {reached:.4g}{by}"
    if gate.kind == "passing" and asked is not None and asked.failures is not None:
        low, high = 1 - asked.failures.upper, 1 - asked.failures.lower
        return f"passes {reached:.1%}{by} (95 % interval {low:.1%} to {high:.1%})"
    if gate.kind == "mean":
        return f"has {reached:.4g} over {summary.scored:,} scored rows{by}"
    without = f"; {summary.unlabelled}" if summary.unlabelled else ""
    return f"passes {summary.passed:,} of {summary.labelled:,} ({reached:.1%}){by}{without}"


def lowest(evaluation: Evaluation, metric: str) -> Iterator[str]:
    """The rows with the lowest scores of a metric, in lines."""
    for row in evaluation.worst_by(metric)[:_ROWS_SHOWN]:
        yield from (line.plain for line in row.described(metric))
