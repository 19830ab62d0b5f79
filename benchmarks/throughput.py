"""Records a second against what the judge's latency allows.

    python benchmarks/throughput.py [--quick] [--json FILE]

An OpenAI-compatible endpoint in a process of its own answers each request after 200 ms, however many come. Each contender
has a process of its own, too, and is given a backlog of answers, all at once and after a warm-up. With one request a record
no more than `concurrency / 0.2 s` records a second are possible; ragspan's four metrics take one as well. The bare client is a loop that sends
prepared requests and reads the replies: it shows what the endpoint and the machine can do at the time. Everybody's processor time is that of the
contender's process.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from rich.console import Console
from rich.table import Table
from serving.processes import HOST, running
from serving.processor_time import MachineTime

LATENCY = 0.2
TARGET = 0.95
CONCURRENCIES, QUICK_CONCURRENCIES = (8, 16, 64), (16,)
ROUNDS, QUICK_ROUNDS = 50, 3
"""Answers, in multiples of the concurrency."""
NAMES = ("bare-client", "ragspan", "ragspan-four-metrics")
"""As `judging.contest` knows them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """One contender at one concurrency."""

    contender: str
    concurrency: int
    limit: float
    """Records a second."""
    answers: int
    judged: int
    """Those that got a verdict."""
    per_second: float
    share: float
    """Of the limit."""
    cpu_ms: float
    """Processor time of a record."""
    machine_share: float
    """How busy the processors were, everything that ran included."""


def one_run(contender: str, concurrency: int, *, rounds: int) -> Result:
    answers = rounds * concurrency
    with running("judging.endpoint", "--latency", LATENCY) as endpoint:
        options = (
            "--base-url",
            f"http://{HOST}:{endpoint.port}/v1",
            "--concurrency",
            concurrency,
            "--answers",
            answers,
        )
        with running("judging.contest", contender, *options) as contest:
            before = MachineTime.now()
            done = contest.read_line()
            after = MachineTime.now()
    limit = concurrency / LATENCY
    per_second = done["judged"] / done["seconds"]
    return Result(
        contender=contender,
        concurrency=concurrency,
        limit=limit,
        answers=answers,
        judged=done["judged"],
        per_second=per_second,
        share=per_second / limit,
        cpu_ms=done["cpu_seconds"] / answers * 1000,
        machine_share=(after.busy - before.busy) / (after.total - before.total),
    )


def show(results: Sequence[Result]) -> None:
    table = Table(title=f"Records a second, with a judge that takes {LATENCY * 1000:g} ms")
    for heading in ("contender", "concurrency", "limit", "reached", "share", "target", "judged", "CPU ms", "machine"):
        table.add_column(heading, justify="left" if heading == "contender" else "right")
    for result in results:
        table.add_row(*cells(result))
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def cells(result: Result) -> list[str]:
    return [
        result.contender,
        str(result.concurrency),
        f"{result.limit:.0f}",
        f"{result.per_second:.1f}",
        f"{result.share:.1%}",
        f"{TARGET:.0%}" if (result.contender, result.concurrency) == ("ragspan", max(CONCURRENCIES)) else "",
        f"{result.judged} of {result.answers}",
        f"{result.cpu_ms:.2f}",
        f"{result.machine_share:.0%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Records a second against what the judge's latency allows.")
    parser.add_argument("--quick", action="store_true", help="one concurrency, few answers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--concurrency", type=int, action="append", help="only this one; may be given several times")
    parser.add_argument("--only", action="append", choices=NAMES, help="only this contender")
    arguments = parser.parse_args()
    concurrencies = arguments.concurrency or (QUICK_CONCURRENCIES if arguments.quick else CONCURRENCIES)
    rounds = QUICK_ROUNDS if arguments.quick else ROUNDS
    pairs = product(arguments.only or NAMES, concurrencies)
    results = [one_run(contender, concurrency, rounds=rounds) for contender, concurrency in pairs]
    show(results)
    if arguments.json:
        report = {
            "latency_s": LATENCY,
            "target": TARGET,
            "results": [asdict(result) for result in results],
        }
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
