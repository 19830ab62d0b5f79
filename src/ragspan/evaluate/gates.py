"""What the scores of a table should be at least: for `ragspan evaluate` and `ragspan.testing.assert_scores`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragspan.arguments import SHARE, wrong
from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.summaries import MetricSummary
from ragspan.metrics.metric_catalogue import require_known

Kind: TypeAlias = Literal["mean", "passing", "none_below"]

_MIN_SCORED = 0.5
"""The share of the rows that should have a score; below it, a gate speaks for a few rows only."""
_KINDS: Mapping[Kind, tuple[str, str]] = {
    "mean": ("--fail-under", "have a mean of at least {:g}"),
    "passing": ("--min-passing", "pass {:.0%} of the labelled rows"),
    "none_below": ("--none-below", "have no score below {:g}"),
}
"""The option, and what should be."""


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
        return f"{self.metric} should {_KINDS[self.kind][1].format(self.minimum)}"

    def reached(self, summary: MetricSummary) -> tuple[float | None, str]:
        """What the scores reach, None if nothing was scored or can pass; and by whom, where a judge is asked about a share of the rows.

        Then a share that passes is what that judge would say of all rows, where it can be estimated; all else is what the embedded
        judge says of them. It never mixes the two.
        """
        asked = summary.asked
        if asked is not None and asked.failures is not None and self.kind == "passing":
            scored = f"estimated from {asked.scored:,} of {summary.settled:,} rows"
            return 1 - asked.failures.value, f" by {asked.judge}, {scored}"
        passing = summary.passed / summary.labelled if summary.labelled else None
        embedded = {"mean": summary.mean, "passing": passing, "none_below": summary.minimum}[self.kind]
        few = f": {asked.judge or 'the judge'} scored too few rows at random for an estimate" if asked else ""
        return embedded, f" by the embedded judge{few if self.kind == 'passing' else ''}" if asked else ""


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
            raise wrong(_KINDS[kind][0], text, "a metric and a number, such as faithfulness=0.8") from None
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
        why = next(_troubles(gate, evaluation, reached, judged_by, min_scored), None)
        trouble = None if why is None else f"{gate}, {why}"
        results.append(GateResult(gate=gate, reached=reached, trouble=trouble, judged_by=judged_by))
    return results


def _troubles(
    gate: Gate, evaluation: Evaluation, reached: float | None, judged_by: str, accepted: float | None
) -> Iterator[str]:
    summary = evaluation.summary[gate.metric]
    least = _MIN_SCORED if accepted is None else accepted
    rows, settled = evaluation.rows + evaluation.bad_row_count, summary.settled
    skipped = summary.skipped + evaluation.bad_row_count
    if settled == summary.refusals and settled and settled >= least * rows:
        return  # all that could be scored rightly decline
    if settled == summary.refusals:
        yield f"but nothing was scored: {summary.reasons or 'there are no rows'}"
    elif summary.silence is not None:
        yield f"but {summary.silence}"
    elif reached is None:
        yield f"but none of {summary.scored:,} scores has a label: the judge cannot tell, or only ranks"
    elif reached < gate.minimum:
        yield f"but {_missed(gate, summary, reached, judged_by)}"
    elif settled < least * rows:
        have = f"only {settled:,} of {rows:,} rows have a score ({settled / rows:.0%})"
        yield f"and does, but {have}, and --min-scored is {least:.0%}: {summary.reasons or 'the others are unreadable'}"
    elif skipped and accepted is None:
        yield (
            f"and does over {summary.scored:,} scored rows, but {skipped:,} more had to be skipped:"
            " complete them, or say with --min-scored what share of the rows is enough"
        )


def _missed(gate: Gate, summary: MetricSummary, reached: float, judged_by: str) -> str:
    if gate.kind == "none_below":
        return f"the lowest is {reached:.4g}{judged_by}"
    if gate.kind == "mean":
        return f"has {reached:.4g}{judged_by or f' over {summary.scored:,} scored rows'}"
    if summary.asked is not None and (rate := summary.asked.failures) is not None:
        return f"passes {reached:.1%}{judged_by} (95 % interval {1 - rate.upper:.1%} to {1 - rate.lower:.1%})"
    open_ones = f"; {summary.unlabelled}" if summary.unlabelled else ""
    return f"passes {summary.passed:,} of {summary.labelled:,} ({reached:.1%}){judged_by}{open_ones}"


def lowest(evaluation: Evaluation, metric: str) -> Iterator[str]:
    """The rows with the lowest scores of a metric, in lines."""
    for row in evaluation.worst_by(metric)[:3]:
        yield from (line.plain for line in row.described(metric))
