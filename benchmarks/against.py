"""Runs a benchmark in this checkout and in another one by turns, and compares every figure.

    python benchmarks/against.py [--pairs 3] [--only TEXT] [--this-program] CHECKOUT PROGRAM [ARGUMENT ...]
    python benchmarks/against.py ../before hot_path.py --framework langchain

Each checkout runs its own copy of the program, or this one's with `--this-program`, on its own sources, with the Python that
runs this one. Which of the two goes first changes with each pair, so that what slows the machine for a while slows both. The
program must know `--json FILE`. A row is a figure of that file: the medians of both checkouts, and the median and the range of
the pairs' ratios. Figures that one of the two lacks, and figures that never change, are left out; so are those whose path lacks
the text that `--only` gives.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent.parent


def figures(value: object, name: tuple[str, ...] = ()) -> Iterator[tuple[str, float]]:
    """The numbers in a JSON document, each with its path; an object in a list goes by its texts."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from figures(inner, (*name, str(key)))
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                yield from figures(item, (*name, *(text for text in item.values() if isinstance(text, str))))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield " ".join(name), float(value)


def run(checkout: Path, programs: Path, program: str, arguments: list[str]) -> dict[str, float]:
    """The figures of one run, with the packages of that checkout before the installed ones."""
    sources = [checkout / "src", *sorted(checkout.glob("integrations/*/src"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, sources))}
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "figures.json")
        command = [sys.executable, f"benchmarks/{program}", *arguments, "--json", str(result)]
        subprocess.run(command, cwd=programs, env=environment, check=True, stdout=subprocess.DEVNULL)
        return dict(figures(json.loads(result.read_text())))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--this-program", action="store_true")
    parser.add_argument("checkout", type=Path)
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    sides = (options.checkout.resolve(), HERE)
    runs: dict[Path, list[dict[str, float]]] = {side: [] for side in sides}
    for pair in range(options.pairs):
        for side in sides if pair % 2 == 0 else sides[::-1]:
            programs = HERE if options.this_program else side
            runs[side].append(run(side, programs, options.program, options.arguments))
    other, here = (runs[side] for side in sides)
    table = Table(title=f"{options.program} {' '.join(options.arguments)}, {options.pairs} pairs")
    for heading in ("figure", options.checkout.name, "here", "ratio", "least", "most"):
        table.add_column(heading, justify="left" if heading == "figure" else "right", overflow="fold")
    for name in other[0]:
        if options.only not in name or not all(name in one for one in (*other, *here)):
            continue
        if len({one[name] for one in (*other, *here)}) == 1:
            continue
        ratios = [now[name] / before[name] for before, now in zip(other, here, strict=True) if before[name]]
        medians = [statistics.median(one[name] for one in side) for side in (other, here)]
        if ratios:
            shown = (*medians, statistics.median(ratios), min(ratios), max(ratios))
            table.add_row(name, *(f"{number:.4g}" for number in shown))
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    main()
