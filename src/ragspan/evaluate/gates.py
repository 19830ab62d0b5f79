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

_MIN_SCORED = 0.5
"""The share of the rows that should have a score; below it, a gate speaks for a few rows only."""
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

    def reached(self, summary: MetricSummary) -> tuple[float | None, str]:
        """What the scores reach, None if nothing was scored or can pass; and by whom, where a judge is asked about a share of the rows.

        Then it is what that judge would say of all rows, as far as it can be estimated, and the lowest of its own scores; where
        it has none, what the embedded judge says. It never mixes the two.
        """
        passing = summary.passed / summary.labelled if summary.labelled else None
        embedded = {"mean": summary.mean, "passing": passing, "none_below": summary.minimum}[self.kind]
        asked = summary.asked
        if asked is None:
            return embedded, ""
        rate = None if asked.failures is None else 1 - asked.failures.value
        own = {"mean": asked.mean, "passing": rate, "none_below": asked.lowest}[self.kind]
        if own is None:
            return (
                embedded,
                f" by the embedded judge: {asked.judge or 'the judge'} scored too few rows at random for an estimate",
            )
        words = "which scored" if self.kind == "none_below" else "estimated from"
        return own, f" by {asked.judge}, {words} {asked.scored:,} of {summary.settled:,} rows"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateResult:
    """Whether a gate held."""

    gate: Gate
    reached: float | None
    trouble: str | None
    """Why it did not hold, as a sentence; None where it held."""
    judged_by: str = ""
    """Whose scores it goes by, where a judge is asked about a share of the rows."""

    def __str__(self) -> str:
        return f"{self.gate}{self.judged_by}"


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
    results = []
    for gate in gates:
        reached, judged_by = gate.reached(evaluation.summary[gate.metric])
        trouble = _trouble(gate, evaluation, reached, judged_by, min_scored)
        results.append(GateResult(gate=gate, reached=reached, trouble=trouble, judged_by=judged_by))
    return results


def _trouble(  # noqa: PLR0911 - one for each way to fail
    gate: Gate, evaluation: Evaluation, reached: float | None, judged_by: str, accepted: float | None
) -> str | None:
    min_scored = _MIN_SCORED if accepted is None else accepted
    summary = evaluation.summary[gate.metric]
    rows = evaluation.rows + evaluation.bad_row_count
    settled, skipped = summary.settled, summary.skipped + evaluation.bad_row_count
    if settled == summary.refusals:
        is_refused = settled and settled >= min_scored * rows
        return None if is_refused else f"{gate}, but nothing was scored: {summary.reasons or 'there are no rows'}"
    if summary.silence is not None:
        return f"{gate}, but {summary.silence}"
    if reached is None:
        return f"{gate}, but none of {summary.scored:,} scores has a label: the judge cannot tell, or only ranks"
    if reached < gate.minimum:
        if gate.kind == "none_below":
            return f"{gate}, but the lowest is {reached:.4g}{judged_by}"
        if gate.kind == "mean":
            return f"{gate}, but has {reached:.4g}{judged_by or f' over {summary.scored:,} scored rows'}"
        if summary.asked is not None and (rate := summary.asked.failures) is not None:
            interval = f"95 % interval {1 - rate.upper:.1%} to {1 - rate.lower:.1%}"
            return f"{gate}, but passes {reached:.1%}{judged_by} ({interval})"
        passes = f"passes {summary.passed:,} of {summary.labelled:,} ({reached:.1%}){judged_by}"
        return f"{gate}, but {passes}{f'; {summary.unlabelled}' if summary.unlabelled else ''}"
    if settled < min_scored * rows:
        return (
            f"{gate}, and does, but only {settled:,} of {rows:,} rows have a score ({settled / rows:.0%}), and"
            f" --min-scored is {min_scored:.0%}: {summary.reasons or 'the others are unreadable'}"
        )
    if skipped and accepted is None:
        return (
            f"{gate}, and does over {summary.scored:,} scored rows, but {skipped:,} more had to be skipped:"
            " complete them, or say with --min-scored what share of the rows is enough"
        )
    return None


def lowest(evaluation: Evaluation, metric: str) -> Iterator[str]:
    """The rows with the lowest scores of a metric, in lines."""
    for row in evaluation.worst_by(metric)[:3]:
        yield from (line.plain for line in row.described(metric))
