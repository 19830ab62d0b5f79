"""How many of ragspan's own functions one record enters in the application's process.

    python benchmarks/call_depth.py [--quick] [--json FILE] [--functions]

One record with one metric (adherence by the embedded judge, which computes in the helper process) goes from `submit` to
the exporter of its span. A profile hook on all threads notes each named function of ragspan's that is entered; lambdas and
comprehensions are not counted. What happens only once in a process, such as imports and the start of threads, is left out:
records go ahead that are not counted. The figure is what is entered in most of the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from rich.console import Console
from rich.table import Table

import ragspan
from ragspan import RagRecord, ScoringEngine
from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence
from ragspan.telemetry import OTelEmitter

ROUNDS, QUICK_ROUNDS = 20, 3
WARM_UP = 3
TIMEOUT = 60.0  # seconds
SOURCE = Path(ragspan.__file__).parent


class Calls:
    """The functions that are entered while it is open."""

    def __init__(self) -> None:
        self._is_open = False
        self._entered: set[tuple[str, str]] = set()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def open(self) -> None:
        self._entered = set()
        self._is_open = True

    def close(self) -> frozenset[tuple[str, str]]:
        """Pairs of module and function."""
        self._is_open = False
        return frozenset(self._entered)

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if not self._is_open or event != "call":
            return
        code = frame.f_code
        if not code.co_name.startswith("<") and code.co_filename.startswith(str(SOURCE)):
            module = Path(code.co_filename).relative_to(SOURCE).with_suffix("").as_posix()
            self._entered.add((module, getattr(code, "co_qualname", code.co_name)))


def rounds(number: int) -> list[frozenset[tuple[str, str]]]:
    """What each record enters, one record after the other."""
    calls = Calls()
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    entered = []
    emitters = [OTelEmitter(tracer_provider=provider)]
    with ScoringEngine(metrics=[ContextAdherence(OverlapJudge(), polls=1)], emitters=emitters) as engine:
        for place in range(WARM_UP + number):
            record = RagRecord(
                question=f"How long is river {place}?",
                contexts=[f"River {place} is {place} km long.", "Bread is baked of flour."],
                response=f"River {place} is {place} km long.",
            )
            scored_before = engine.stats().finished
            calls.open()
            engine.submit(record)
            if not finished(engine, scored_before + 1):
                raise SystemExit("the record was not scored in time")
            entered.append(calls.close())
            if len(exporter.get_finished_spans()) != place + 1:
                raise SystemExit("the record has no span")
    return entered[WARM_UP:]


def finished(engine: ScoringEngine, scored: int) -> bool:
    """Wait without entering anything of the engine's."""
    queue = engine._queue  # noqa: SLF001 - `stats` would be counted
    paused = threading.Event()
    for _ in range(int(TIMEOUT / 0.01)):
        if queue.stats.finished >= scored:
            paused.wait(0.01)  # the worker sets itself to rest
            return True
        paused.wait(0.01)
    return False


def usual(entered: Sequence[frozenset[tuple[str, str]]]) -> list[tuple[str, str]]:
    """What most of the records enter."""
    times = Counter(function for functions in entered for function in functions)
    return sorted(function for function, count in times.items() if count * 2 > len(entered))


def by_package(functions: Sequence[tuple[str, str]]) -> dict[str, dict[str, int]]:
    packages: dict[str, list[tuple[str, str]]] = {}
    for module, function in functions:
        packages.setdefault("/".join(module.split("/")[:-1]) or "(root)", []).append((module, function))
    return {
        package: {"functions": len(theirs), "modules": len({module for module, _ in theirs})}
        for package, theirs in packages.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--functions", action="store_true", help="name each function")
    options = parser.parse_args()

    entered = rounds(QUICK_ROUNDS if options.quick else ROUNDS)
    functions = usual(entered)
    packages = by_package(functions)
    table = Table("package", "functions", "modules", title="One record with one metric, from submit to exported span")
    for package, figures in packages.items():
        table.add_row(package, str(figures["functions"]), str(figures["modules"]))
    table.add_section()
    modules = len({module for module, _ in functions})
    table.add_row("all", str(len(functions)), str(modules))
    console = Console()
    console.print(table)
    console.print(f"a round: {statistics.mean(map(len, entered)):.0f} functions on average")
    if options.functions:
        console.print("\n".join(f"{module}: {function}" for module, function in functions), highlight=False)
    if options.json is not None:
        report = {"functions": len(functions), "modules": modules, "packages": packages, "entered": functions}
        options.json.write_text(json.dumps(report, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
