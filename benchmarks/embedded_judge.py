"""How many records a second the embedded judge scores on one processor.

    python benchmarks/embedded_judge.py [--quick] [--against CHECKOUT] [--json FILE]

A record has ten contexts of a kilobyte and an answer of six sentences, and all four default metrics are asked: of the judge
alone, where they are called, and in an engine, whose helper process judges; its processor time counts as well. Either all
texts are different, or the contexts are drawn from a collection of 2,000, the most popular ones most often (Zipf's law).

`--against` names another checkout of ragspan. Both take turns in processes of their own with the same records, so that what
slows the machine slows both. Processor time counts, not the time that passes; other work on the machine makes it longer all
the same, and so the ratio says more than the rates. The first rounds, in which a process learns its words, do not count.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from serving.processes import Program, running

ROUNDS, QUICK_ROUNDS = 9, 2
RECORDS, QUICK_RECORDS = 100, 10
WARM_UP, QUICK_WARM_UP = 10, 1
"""Rounds."""
TARGETS = {("alone", "all different"): 1000, ("alone", "repeated"): 2500}
"""Records a second."""
CASES = [(place, traffic) for place in ("alone", "in an engine") for traffic in ("all different", "repeated")]
HERE = "this checkout"


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Records a second of processor time."""

    checkout: str
    place: str
    traffic: str
    rates: list[float]
    """Of each round."""

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    @property
    def quartiles(self) -> tuple[float, float]:
        low, _, high = statistics.quantiles(self.rates, n=4, method="inclusive")
        return low, high


def measured(checkouts: Mapping[str, Path], *, rounds: int, records: int, warm_up: int) -> Iterator[Result]:
    for place, traffic in CASES:
        with ExitStack() as stack:
            programs = {
                name: stack.enter_context(running("judging.embedded", environment={"PYTHONPATH": path_to(root)}))
                for name, root in checkouts.items()
            }
            rates: dict[str, list[float]] = {name: [] for name in programs}
            for number in range(warm_up + rounds):
                for name, program in programs.items():
                    rate = records / seconds(program, place, traffic, records)
                    if number >= warm_up:
                        rates[name].append(rate)
        for name in programs:
            yield Result(checkout=name, place=place, traffic=traffic, rates=rates[name])


def path_to(checkout: Path) -> str:
    """Where a process finds that checkout's ragspan before the one that is installed."""
    return os.pathsep.join(filter(None, [str(checkout / "src"), os.environ.get("PYTHONPATH")]))


def seconds(program: Program, place: str, traffic: str, records: int) -> float:
    program.tell(place=place, traffic=traffic, records=records)
    taken: float = program.read_line()["seconds"]
    return taken


def show(results: list[Result]) -> None:
    table = Table(title="Records a second of processor time: ten contexts of a kilobyte, four metrics")
    for heading in ("judge", "texts", "checkout", "median", "quartiles", "slowest", "target", "times the other"):
        table.add_column(heading, justify="left" if heading in {"judge", "texts", "checkout"} else "right")
    for result in results:
        others = [one for one in results if one.place == result.place and one.traffic == result.traffic]
        low, high = result.quartiles
        target = TARGETS.get((result.place, result.traffic)) if result.checkout == HERE else None
        ratio = result.median / others[-1].median if len(others) > 1 and result is others[0] else None
        table.add_row(
            result.place,
            result.traffic,
            result.checkout,
            f"{result.median:.0f}",
            f"{low:.0f} ... {high:.0f}",
            f"{min(result.rates):.0f}",
            f"{target:,}" if target else "",
            f"{ratio:.1f}" if ratio else "",
        )
    Console(width=None if sys.stdout.isatty() else 130).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="How many records a second the embedded judge scores.")
    parser.add_argument("--quick", action="store_true", help="few records, few rounds")
    parser.add_argument("--against", type=Path, metavar="CHECKOUT", help="take turns with this checkout of ragspan")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    checkouts = {HERE: Path(__file__).parents[1]}
    if arguments.against:
        checkouts[arguments.against.name] = arguments.against.resolve()
    amounts = (QUICK_ROUNDS, QUICK_RECORDS, QUICK_WARM_UP) if arguments.quick else (ROUNDS, RECORDS, WARM_UP)
    rounds, records, warm_up = amounts
    results = list(measured(checkouts, rounds=rounds, records=records, warm_up=warm_up))
    show(results)
    if arguments.json:
        targets = [{"place": place, "traffic": traffic, "rate": rate} for (place, traffic), rate in TARGETS.items()]
        report = {"targets": targets, "results": [asdict(result) for result in results]}
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
