"""What the scores of a table should be at least: for `ragspan evaluate` and `ragspan.testing.assert_scores`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragspan.arguments import SHARE, wrong
from ragspan.counted import counted
from ragspan.evaluate.evaluation import Evaluation
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
    """One thing that the scores of a metric should reach, from 0 to 1."""

    metric: str
    kind: Kind
    minimum: float

    def __post_init__(self) -> None:
        SHARE.check(f"the minimum of {self.metric}", self.minimum)

    def __str__(self) -> str:
        return f"{self.metric} should {_KINDS[self.kind][1].format(self.minimum)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateResult:
    """Whether a gate held."""

    gate: Gate
    reached: float | None
    """What the scores reach; None if nothing was scored or can pass."""
    trouble: str | None
    """Why it did not hold, as a sentence; None where it held."""


def parse_gates(kind: Kind, texts: Iterable[str]) -> list[Gate]:
    """Gates from texts such as `faithfulness=0.8`; a `ConfigurationError` for a text that is none."""
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

    Where a judge is asked about a share of the rows, a share that passes is what that judge would say of all rows, if it can be
    estimated; all else is what the embedded judge says of them. A figure never mixes the two.

    Args:
        evaluation: of the table.
        gates: about metrics of the evaluation.
        min_scored: the share of the rows that should have a score, from 0 to 1. Refusals that the judge finds right count as
            scored, rows that could not be read as not scored. None is half of them, and none may have been skipped.
    """
    SHARE.or_none().check("min_scored", min_scored)
    results = []
    for gate in gates:
        summary = evaluation.summary[gate.metric]
        asked, figure, judged_by = summary.asked, "", ""
        passing = summary.passed / summary.labelled if summary.labelled else None
        reached = {"mean": summary.mean, "passing": passing, "none_below": summary.minimum}[gate.kind]
        if asked is not None and asked.failures is not None and gate.kind == "passing":
            rate, reached = asked.failures, 1 - asked.failures.value
            judged_by = f" by {asked.judge}, estimated from {asked.scored:,} of {summary.settled:,} rows"
            figure = f"passes {reached:.1%}{judged_by} (95 % interval {1 - rate.upper:.1%} to {1 - rate.lower:.1%})"
        elif reached is not None:
            few = f": {asked.judge or 'the judge'} scored too few rows at random for an estimate" if asked else ""
            judged_by = f" by the embedded judge{few if gate.kind == 'passing' else ''}" if asked else ""
            figure = {
                "mean": f"has {reached:.4g}{judged_by or f' over {summary.scored:,} scored rows'}",
                "passing": f"passes {summary.passed:,} of {summary.labelled:,} ({reached:.1%}){judged_by}",
                "none_below": f"the lowest is {reached:.4g}{judged_by}",
            }[gate.kind]
        why = next(_troubles(gate, evaluation, reached, figure, min_scored), None)
        trouble = None if why is None else f"{gate}, but {why}"
        results.append(GateResult(gate=gate, reached=reached, trouble=trouble))
    return results


def _troubles(
    gate: Gate, evaluation: Evaluation, reached: float | None, figure: str, accepted: float | None
) -> Iterator[str]:
    summary = evaluation.summary[gate.metric]
    least = _MIN_SCORED if accepted is None else accepted
    rows, skipped = evaluation.rows + evaluation.bad_row_count, summary.skipped + evaluation.bad_row_count
    if summary.settled == summary.refusals and summary.settled and summary.settled >= least * rows:
        return  # all that could be scored rightly decline
    if summary.settled == summary.refusals:
        yield f"nothing was scored: {summary.reasons or 'there are no rows'}"
    elif reached is None:
        yield f"none of {summary.scored:,} scores has a label: the judge cannot tell, or only ranks"
    elif reached < gate.minimum:
        yield figure + (f"; {summary.unlabelled}" if gate.kind == "passing" and summary.unlabelled else "")
    elif summary.settled < least * rows:
        yield f"only {summary.settled:,} of {rows:,} rows have a score, and --min-scored is {least:.0%}"
    elif skipped and accepted is None:
        had = counted(skipped, "row", grouped=True)
        yield f"{had} had to be skipped: say with --min-scored what share of the rows is enough"


def lowest(evaluation: Evaluation, metric: str) -> Iterator[str]:
    """The rows with the lowest scores of a metric, in lines."""
    for row in evaluation.worst_by(metric)[:3]:
        yield from (line.plain for line in row.described(metric))
