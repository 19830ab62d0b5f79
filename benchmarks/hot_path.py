"""What a handler costs the request: processor time above a no-op handler, in interleaved runs.

    python benchmarks/hot_path.py [--quick] [--json FILE] [--framework langchain|llama-index] [--table programs|peers]

The first table has ragspan's handler alone, on many programs. Each runs with no handler, with a handler that does nothing,
with the same once more (the noise of the measurement), and with ragspan's, whose sink throws captures away. The table
shows medians and quartiles of the rounds' differences; `interleaved.py` says how a round is measured. A figure is worth
as much as the noise beside it is small: where the quartiles of the no-op against itself are not clearly below the target,
the machine is too busy.

The second has ragspan beside its peers, for one request of a program. Each handler has a process of its own and is
attached as its documentation says for production, its background export on and directed to an endpoint on this machine;
`peers/` says how. The thread's time is what the request itself waits for. The process's time goes on until everything is
exported, and so has what runs in background threads too, which takes the processor and the interpreter's lock from other
requests. ragspan with its engine scores in a helper process, which another processor runs, if there is one: the time of all
processes together is what a scored answer costs, from callback to export, with four metrics of the embedded judge.
`make peers` installs the peers; what is not installed, or could not be kept from the network, is left out with the reason.

LlamaIndex is left to find its own caches: `TIKTOKEN_CACHE_DIR` and `NLTK_DATA` must not be set.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from interleaved import Framework, Result, measure
from peers.contest import CONTESTS, Cost, LeftOut, measured
from peers.turns import FRAMEWORKS
from rich.console import Console
from rich.table import Table

ROUNDS, QUICK_ROUNDS = 40, 2
PEER_ROUNDS, QUICK_PEER_ROUNDS = 20, 2
PEER_TARGET = 1 / 3
"""Of what the cheapest peer adds."""


def show(framework: str, results: Sequence[Result]) -> None:
    table = Table(title=f"{framework}: processor time above a no-op handler, microseconds, median (quartiles)")
    for heading in ("program", "per", "program alone", "no-op against itself", "ragspan", "target"):
        table.add_column(heading, justify="left" if heading in {"program", "per"} else "right")
    for result in results:
        table.add_row(
            result.scenario,
            result.unit,
            f"{result.bare_us:.1f}",
            f"{result.noise_us:+.2f} ({result.noise_quartiles_us[0]:+.2f} … {result.noise_quartiles_us[1]:+.2f})",
            f"{result.ragspan_us:.2f} ({result.ragspan_quartiles_us[0]:.2f} … {result.ragspan_quartiles_us[1]:.2f})",
            "" if result.target_us is None else f"{result.target_us:g}",
        )
    console().print(table)


def show_peers(framework: str, results: Sequence[Cost | LeftOut]) -> None:
    """A table for each program, and who is not in them."""
    costs = [result for result in results if isinstance(result, Cost)]
    for scenario in dict.fromkeys(cost.scenario for cost in costs):
        console().print(peer_table(framework, scenario, [cost for cost in costs if cost.scenario == scenario]))
    for absent in dict.fromkeys(result for result in results if isinstance(result, LeftOut)):
        console().print(f"{framework}, {absent.contestant}: left out, {absent.reason}")


def peer_table(framework: str, scenario: str, costs: Sequence[Cost]) -> Table:
    title = f"{framework}, {scenario}: microseconds of a request above a no-op handler, median (quartiles)"
    table = Table(title=title, caption=f"Without a handler: {min(cost.bare_us for cost in costs):.0f} in the thread.")
    of_peer = "of the cheapest peer"
    for heading in ("handler", "calling thread", of_peer, "process", of_peer, "all processes", "exported"):
        table.add_column(heading, justify="left" if heading == "handler" else "right")
    thread, process = cheapest(costs, "thread_us"), cheapest(costs, "process_us")
    for cost in costs:
        table.add_row(
            f"{cost.contestant} {cost.version}",
            figure(cost.thread_us, cost.thread_quartiles_us),
            ratio(cost.thread_us, thread),
            figure(cost.process_us, cost.process_quartiles_us),
            ratio(cost.process_us, process),
            figure(cost.all_us, cost.all_quartiles_us),
            f"{cost.exported_bytes / 1000:.1f} kB",
        )
    return table


def cheapest(costs: Iterable[Cost], figure: str) -> float | None:
    return min((getattr(cost, figure) for cost in costs if cost.is_peer), default=None)


def figure(median: float, quartiles: tuple[float, float]) -> str:
    return f"{median:.0f} ({quartiles[0]:.0f} … {quartiles[1]:.0f})"


def ratio(value: float, peer: float | None) -> str:
    return f"{value / peer:.2f}" if peer else ""


def console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 150)


def programs(framework_name: str, *, quick: bool) -> list[Result]:
    """ragspan's handler on all programs of a framework."""
    with closing(asyncio.new_event_loop()) as loop:
        framework: Framework = importlib.import_module(FRAMEWORKS[framework_name]).framework(loop)
        rounds = QUICK_ROUNDS if quick else ROUNDS
        results = [measure(framework, scenario, rounds=rounds) for scenario in framework.scenarios]
    show(framework.name, results)
    return results


def beside_peers(framework_name: str, *, quick: bool) -> list[Cost | LeftOut]:
    """ragspan's handler and those of its peers on a few programs."""
    rounds = QUICK_PEER_ROUNDS if quick else PEER_ROUNDS
    contests = [contest for contest in CONTESTS if contest.framework == framework_name]
    if quick:
        contests = [contest for contest in contests if contest is CONTESTS[0]]
    if not contests:
        return []
    results = list(measured(contests, rounds=rounds, quick=quick))
    show_peers(framework_name, results)
    return results


def report(results: Sequence[Result], peers: Sequence[Cost | LeftOut]) -> dict[str, Any]:
    return {
        "programs": [asdict(result) for result in results],
        "peers": [asdict(cost) for cost in peers if isinstance(cost, Cost)],
        "left_out": [asdict(absent) for absent in dict.fromkeys(peers) if isinstance(absent, LeftOut)],
        "peer_target": PEER_TARGET,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="What the handler costs the request.")
    parser.add_argument("--quick", action="store_true", help="a few rounds only: whether it runs, not what it costs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--framework", choices=FRAMEWORKS, help="this one only")
    parser.add_argument("--table", choices=("programs", "peers"), help="this one only")
    arguments = parser.parse_args()
    results: list[Result] = []
    peers: list[Cost | LeftOut] = []
    for name in [arguments.framework] if arguments.framework else FRAMEWORKS:
        if arguments.table != "peers":
            results += programs(name, quick=arguments.quick)
        if arguments.table != "programs":
            peers += beside_peers(name, quick=arguments.quick)
    if arguments.json:
        arguments.json.write_text(json.dumps(report(results, peers), indent=2) + "\n")


if __name__ == "__main__":
    main()
