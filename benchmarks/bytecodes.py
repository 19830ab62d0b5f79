"""What a handler does in the request, counted: bytecodes of ragspan's own code, and its calls, in the programs of `hot_path.py`.

    python benchmarks/bytecodes.py [--functions] [--json FILE] [PROGRAM ...]
    python benchmarks/against.py --pairs 1 --this-program ../before bytecodes.py

A count is the same on a machine that has much else to do, where no time can be measured. It knows nothing of what C code takes.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from interleaved import Framework, Handlers, Scenario
from rich.console import Console
from rich.table import Table

import ragspan
import ragspan_langchain
import ragspan_llama_index

RUNS = 2
FRAMEWORKS = ("scenarios.langchain_rag", "scenarios.llama_index_rag")
SOURCES = tuple(folder for package in (ragspan, ragspan_langchain, ragspan_llama_index) for folder in package.__path__)


class Counting:
    """Counts by code object while it is switched on, in all threads that begin then."""

    def __init__(self) -> None:
        self.bytecodes: Counter[CodeType] = Counter()
        self.calls: Counter[CodeType] = Counter()

    @contextmanager
    def on(self) -> Iterator[None]:
        before = threading.gettrace(), sys.gettrace()  # those of whatever measures the coverage of tests
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            yield
        finally:
            sys.settrace(before[1])
            threading.settrace(before[0])

    def _enter(self, frame: FrameType, _: str, __: Any) -> Any:
        if not frame.f_code.co_filename.startswith(SOURCES):
            return None
        self.calls[frame.f_code] += 1
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "opcode":
            self.bytecodes[frame.f_code] += 1
        return self._step


def count(scenario: Scenario, handlers: Handlers) -> Counting:
    """One program, after it has run a few times: what is looked up once is known then."""
    for _ in range(3):
        scenario.run(handlers)
    counting = Counting()
    with counting.on():
        scenario.run(handlers)  # Python 3.13 does not tell of the bytecodes of the first call
        counting.bytecodes.clear()
        counting.calls.clear()
        for _ in range(RUNS):
            scenario.run(handlers)
    return counting


def name_of(code: CodeType) -> str:
    return f"{Path(code.co_filename).stem}.{code.co_name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--functions", action="store_true", help="the functions of each program as well")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="these only")
    options = parser.parse_args()
    table = Table(title="ragspan's own code, in one run of the program")
    for heading in ("program", "bytecodes", "calls"):
        table.add_column(heading, justify="left" if heading == "program" else "right")
    figures: dict[str, dict[str, float]] = {}
    with closing(asyncio.new_event_loop()) as loop:
        frameworks: list[Framework] = [importlib.import_module(name).framework(loop) for name in FRAMEWORKS]
        for framework in frameworks:
            for scenario in framework.scenarios:
                if options.programs and scenario.name not in options.programs:
                    continue
                counting = count(scenario, framework.ragspan)
                found = {"bytecodes": counting.bytecodes.total() / RUNS, "calls": counting.calls.total() / RUNS}
                figures[scenario.name] = found
                table.add_row(scenario.name, f"{found['bytecodes']:.0f}", f"{found['calls']:.0f}")
                for code, bytecodes in counting.bytecodes.most_common() if options.functions else ():
                    table.add_row(f"  {name_of(code)}", f"{bytecodes / RUNS:.0f}", f"{counting.calls[code] / RUNS:.0f}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
