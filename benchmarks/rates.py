"""How often the interval around the true rate of failures holds it, and how wide it is, where people label a random part.

    python benchmarks/rates.py [DIRECTORY] [--draws 2000] [--rows N] [--seed 1] [--quick] [--json FILE]

DIRECTORY holds the sets of human judgements that `agreement.py` reads. The embedded judge scores their answers. Each draw takes
answers of one set at random and shows the labels of some of them; `ragspan.evaluate.estimates` estimates the share that people call
unsupported. Coverage is how many of the draws have an interval that holds the share of the whole set: it should be near .95.
Each set is drawn from as it is, and with most of its unsupported answers left out. Without DIRECTORY the answers are made up.

The last two columns compare with the labels alone: how wide Wilson's interval of the same labels is, and how often it holds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from agreeing.judgements import read_sets
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from ragspan.evaluate.estimates import Stratum, estimate_rate, rate_by_labels
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence, Faithfulness
from ragspan.outcomes import Score

LABELS = (50, 100, 300, 1000)
ANSWERS_A_LABEL = 20
GOOD = (0.93, 0.97)
"""The coverage that is wanted."""
RATES = (None, 0.05, 0.02)
"""The shares of unsupported answers; None leaves them as they are."""

Shares: TypeAlias = tuple[float, float, float, float]
"""Of a set's answers: failing by both, by the metric only, by the label only, by neither."""


@dataclass(frozen=True, kw_only=True)
class Population:
    """What people and a metric say of one set's answers."""

    name: str
    metric: str
    shares: Shares

    @property
    def rate(self) -> float:
        return self.shares[0] + self.shares[2]

    def with_rate(self, rate: float) -> Population:
        """The same, with so many unsupported answers; the metric errs on each kind as often as before."""
        wrong, right = rate / self.rate, (1 - rate) / (1 - self.rate)
        both, metric_only, label_only, neither = self.shares
        return Population(
            name=f"{self.name}, {rate:.0%}",
            metric=self.metric,
            shares=(both * wrong, metric_only * right, label_only * wrong, neither * right),
        )


@dataclass(frozen=True, kw_only=True)
class Row:
    """What many draws of one population with so many labels gave."""

    population: str
    metric: str
    rate: float
    by_metric: float
    labels: int
    coverage: float
    width: float
    bias: float
    coverage_of_labels: float
    width_of_labels: float


def row_of(population: Population, labels: int, draws: int, random: np.random.Generator) -> Row:
    shares, rate = population.shares, population.rate
    flagged = shares[0] + shares[1]
    labelled: NDArray[np.int64] = random.multinomial(labels, shares, size=draws)
    others = labels * (ANSWERS_A_LABEL - 1)
    failing = random.binomial(others, flagged, size=draws)
    held, widths, values, plain_held, plain_widths = 0, 0.0, 0.0, 0, 0.0
    for (both, metric_only, label_only, _), count in zip(labelled.tolist(), failing.tolist(), strict=True):
        flags = both + metric_only
        failed = Stratum(answers=flags + count, labels=flags, failing=both)
        passed = Stratum(answers=labels - flags + others - count, labels=labels - flags, failing=label_only)
        found, alone = rate_by_labels(failed, passed), estimate_rate([failed + passed])
        assert found is not None
        assert alone is not None
        held += found.lower <= rate <= found.upper
        widths += found.upper - found.lower
        values += found.value
        plain_held += alone.lower <= rate <= alone.upper
        plain_widths += alone.upper - alone.lower
    return Row(
        population=population.name,
        metric=population.metric,
        rate=rate,
        by_metric=flagged,
        labels=labels,
        coverage=held / draws,
        width=widths / draws,
        bias=values / draws - rate,
        coverage_of_labels=plain_held / draws,
        width_of_labels=plain_widths / draws,
    )


async def populations_of(directory: Path, rows: int | None) -> list[Population]:
    judge = OverlapJudge()
    found = []
    for judged in read_sets(directory, rows=rows):
        for metric in (ContextAdherence(judge), Faithfulness(judge)):
            outcomes = [(one.supported, await metric.score(one.record)) for one in judged.judgements]
            pairs = [
                (outcome.label == "fail", not supported)
                for supported, outcome in outcomes
                if isinstance(outcome, Score) and outcome.label
            ]
            found.append(Population(name=judged.name, metric=metric.name, shares=_shares(pairs)))
    return found


def _shares(pairs: Sequence[tuple[bool, bool]]) -> Shares:
    both, metric_only, label_only, neither = (
        pairs.count(kind) / len(pairs) for kind in ((True, True), (True, False), (False, True), (False, False))
    )
    return both, metric_only, label_only, neither


def made_up() -> list[Population]:
    """A judge that finds 75 of 100 unsupported answers, with 20 % false alarms, and one that knows nothing."""
    return [
        Population(name="made up", metric="a fair judge", shares=(0.225, 0.14, 0.075, 0.56)),
        Population(name="made up", metric="a coin", shares=(0.15, 0.35, 0.15, 0.35)),
    ]


def with_rare(populations: Iterable[Population]) -> list[Population]:
    return [one if rate is None else one.with_rate(rate) for one in populations for rate in RATES]


def main() -> None:
    arguments = parsed()
    random = np.random.default_rng(arguments.seed)
    measured = asyncio.run(populations_of(arguments.directory, arguments.rows)) if arguments.directory else made_up()
    rows = [
        row_of(population, labels, arguments.draws, random) for population in with_rare(measured) for labels in LABELS
    ]
    show(rows, arguments.draws)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def show(rows: Sequence[Row], draws: int) -> None:
    console = Console(width=None if Console().is_terminal else 130)
    table = Table(title=f"95 % intervals of the true rate, {draws} draws a row, {ANSWERS_A_LABEL} answers a label")
    columns = ("answers", "metric", "true rate", "by metric", "labels", "coverage", "width", "bias")
    for column in (*columns, "labels alone: width", "coverage"):
        table.add_column(column, justify="left" if column in {"answers", "metric"} else "right")
    for row in rows:
        table.add_row(
            row.population,
            row.metric,
            f"{row.rate:.1%}",
            f"{row.by_metric:.1%}",
            str(row.labels),
            f"{row.coverage:.3f}",
            f"{row.width:.3f}",
            f"{row.bias:+.3f}",
            f"{row.width_of_labels:.3f}",
            f"{row.coverage_of_labels:.3f}",
        )
    console.print(table)
    coverages = [row.coverage for row in rows]
    within = sum(GOOD[0] <= one <= GOOD[1] for one in coverages)
    console.print(
        f"Coverage: mean {sum(coverages) / len(coverages):.3f}, from {min(coverages):.3f} to {max(coverages):.3f};"
        f" {within} of {len(rows)} rows from .93 to .97"
    )


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How often the interval around the true rate holds it.")
    parser.add_argument("directory", type=Path, nargs="?", help="sets of human judgements, as NAME.jsonl.gz")
    parser.add_argument("--draws", type=int, default=2000, help="of each row")
    parser.add_argument("--rows", type=int, help="about as many rows of each set")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="100 draws, 60 rows of each set")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.draws, arguments.rows = 100, arguments.rows or 60
    return arguments


if __name__ == "__main__":
    main()
