"""What ragspan's handler costs the request: processor time above a no-op handler, in interleaved runs.

    python benchmarks/hot_path.py [--quick] [--json FILE] [--framework langchain|llama-index]

Each program runs with no handler, with a handler that does nothing, with the same once more (the noise of the measurement), and
with ragspan's, whose sink throws captures away. The table shows medians and quartiles of the rounds' differences;
`interleaved.py` says how a round is measured. A figure is worth as much as the noise beside it is small: where the quartiles of
the no-op against itself are not clearly below the target, the machine is too busy.

LlamaIndex is left to find its own caches: `TIKTOKEN_CACHE_DIR` and `NLTK_DATA` must not be set.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from interleaved import Framework, Result, measure
from rich.console import Console
from rich.table import Table

FRAMEWORKS = {"langchain": "scenarios.langchain_rag", "llama-index": "scenarios.llama_index_rag"}
ROUNDS, QUICK_ROUNDS = 40, 2


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
    Console(width=None if sys.stdout.isatty() else 150).print(table)


def programs(framework_name: str, *, quick: bool) -> list[Result]:
    """ragspan's handler on all programs of a framework."""
    with closing(asyncio.new_event_loop()) as loop:
        framework: Framework = importlib.import_module(FRAMEWORKS[framework_name]).framework(loop)
        rounds = QUICK_ROUNDS if quick else ROUNDS
        results = [measure(framework, scenario, rounds=rounds) for scenario in framework.scenarios]
    show(framework.name, results)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description="What the handler costs the request.")
    parser.add_argument("--quick", action="store_true", help="a few rounds only: whether it runs, not what it costs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--framework", choices=FRAMEWORKS, help="this one only")
    arguments = parser.parse_args()
    names = [arguments.framework] if arguments.framework else FRAMEWORKS
    results = [result for name in names for result in programs(name, quick=arguments.quick)]
    if arguments.json:
        arguments.json.write_text(json.dumps({"programs": [asdict(result) for result in results]}, indent=2) + "\n")


if __name__ == "__main__":
    main()
