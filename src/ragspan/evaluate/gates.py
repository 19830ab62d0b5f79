"""What the scores of a table should be at least: for `ragspan evaluate` and `ragspan.testing.assert_scores`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragspan.arguments import SHARE, counted, wrong
from ragspan.evaluate.evaluation import Evaluation, described
from ragspan.evaluate.summaries import MetricSummary, named_counts
from ragspan.metrics.metric_catalogue import require_known

Kind: TypeAlias = Literal["mean", "passing", "none_below"]

_MIN_SCORED = 0.5
"""The share of the rows that should have a score; below it, a gate speaks for a few rows only."""
KINDS: Mapping[Kind, tuple[str, str]] = {
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
        return f"{self.metric} should {KINDS[self.kind][1].format(self.minimum)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class GateResult:
    """Whether a gate held."""

    gate: Gate
    reached: float | None
    """What the scores reach; None if nothing was scored or can pass."""
    figure: str
    """The same in words, with who judged."""
    trouble: str | None
    """Why it did not hold, as a sentence; None where it held."""


def parse_gates(asked: Mapping[Kind, Iterable[str]], metrics: Sequence[str]) -> list[Gate]:
    """Gates of these metrics from texts such as `faithfulness=0.8`, by kind; a `ConfigurationError` for a text that is none."""
    gates = []
    for kind, text in ((kind, text) for kind, texts in asked.items() for text in texts):
        metric, _, value = map(str.strip, text.partition("="))
        try:
            minimum = float(value if metric else "")
        except ValueError:
            raise wrong(KINDS[kind][0], text, "a metric and a number, such as faithfulness=0.8") from None
        gates.append(Gate(metric=metric, kind=kind, minimum=minimum))
        require_known(metric, metrics, of="a gate needs a metric of this run (--metrics): ")
    return gates


def check_gates(evaluation: Evaluation, gates: Iterable[Gate], *, min_scored: float | None = None) -> list[GateResult]:
    """Whether each gate held.

    Where a judge is asked about a share of the rows, a share that passes is what that judge would say of all rows, if it can be
    estimated; all else is what the embedded judge says of them. A figure never mixes the two.

    `min_scored` is the share of the rows that should have a score, from 0 to 1. Refusals that the judge finds right count as
    scored, rows that could not be read as not scored. None is half of them, and none may have been skipped.
    """
    share = _MIN_SCORED if min_scored is None else min_scored
    rows = evaluation.rows + evaluation.bad_row_count
    results = []
    for gate in gates:
        summary, why = evaluation.summary[gate.metric], None
        reached, figure = _reached(gate.kind, summary)
        if summary.settled == summary.refusals:
            if not summary.settled or summary.settled < share * rows:  # else all that could be scored rightly decline
                reasons = {**summary.not_scored, **(summary.asked.fallbacks if summary.asked else {})}
                why = f"nothing was scored: {named_counts(reasons) or 'there are no rows'}"
        elif reached is None:
            why = f"none of {summary.scored:,} scores has a label: the judge cannot tell, or only ranks"
        elif reached < gate.minimum:
            why = figure + (f"; {summary.unlabelled}" if gate.kind == "passing" and summary.unlabelled else "")
        elif summary.settled < share * rows:
            why = f"only {summary.settled:,} of {rows:,} rows have a score, and --min-scored is {share:.0%}"
        elif min_scored is None and (skipped := summary.skipped + evaluation.bad_row_count):
            lack = f"{counted(skipped, 'row', grouped=True)} had to be skipped, because a cell is missing or wrong, or the judge failed"
            why = f"{lack}: say with --min-scored what share of the rows is enough"
        results.append(GateResult(gate=gate, reached=reached, figure=figure, trouble=why and f"{gate}, but {why}"))
    return results


def _reached(kind: Kind, summary: MetricSummary) -> tuple[float | None, str]:
    """What the scores reach, and that in words."""
    asked = summary.asked
    passing = summary.passed / summary.labelled if summary.labelled else None
    reached = {"mean": summary.mean, "passing": passing, "none_below": summary.minimum}[kind]
    if asked is not None and asked.failures is not None and kind == "passing":
        rate, reached = asked.failures, 1 - asked.failures.value
        judged_by = f" by {asked.judge}, estimated from {asked.scored:,} of {summary.settled:,} rows"
        interval = f"(95 % interval {1 - rate.upper:.1%} to {1 - rate.lower:.1%})"
        return reached, f"passes {reached:.1%}{judged_by} {interval}"
    if reached is None:
        return None, ""
    judged_by = " by the embedded judge" if asked is not None else ""
    if kind == "mean":
        return reached, f"has {reached:.4g}{judged_by or f' over {summary.scored:,} scored rows'}"
    if kind == "none_below":
        return reached, f"the lowest is {reached:.4g}{judged_by}"
    few = f": {asked.judge or 'the judge'} scored too few rows at random for an estimate" if asked else ""
    return reached, f"passes {summary.passed:,} of {summary.labelled:,} ({reached:.1%}){judged_by}{few}"


def lowest(evaluation: Evaluation, gate: Gate) -> Iterator[str]:
    """How many scores are below the minimum of a gate, and the rows with the lowest ones, in lines."""
    metric, minimum = gate.metric, gate.minimum
    scored = sorted((row.scores[metric].value, row.row, row) for row in evaluation.all_rows() if metric in row.scores)
    if scored and gate.kind != "passing":
        below = sum(value < minimum for value, *_ in scored)
        yield f"scores below {minimum:g}: {below:,} of {len(scored):,}; the lowest:"
    yield from (line.plain for *_, row in scored[:3] for line in described(row, metric))
