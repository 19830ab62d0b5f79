"""Where the handler's time goes in one request: what each of its callbacks takes in the caller's thread.

    python benchmarks/callbacks.py [--framework langchain] [--program query] [--requests 400] [--json FILE]

One row a callback, in the order of the request; those of tokens are one row. A figure is microseconds, the least and the median
of all requests. The least is that of warm caches, and the same on a busy machine. `hot_path.py` measures the sum above a no-op
handler, on cold caches. A clock that is read around each callback and the call itself are in every figure; the row "no callback"
says how much that is.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from time import perf_counter_ns
from typing import Any, TypeAlias

from interleaved import Scenario
from peers.turns import FRAMEWORKS

SPANS = ("span_enter", "span_exit", "span_drop", "event")
UUID_LENGTH = 37
TOKENS = ("on_llm_new_token", "event")
EVERY = 10  # requests without a look between the programs

Times: TypeAlias = dict[tuple[str, int], list[int]]
"""Nanoseconds in each request of each callback, by its name and which of this name it is."""


def timed(callback: Callable[..., None], name: str, times: list[tuple[str, int]]) -> Callable[..., None]:
    """The callback, which notes its time; of a span with the name of the span."""

    def call(*given: Any, **named: Any) -> None:
        started = perf_counter_ns()
        callback(*given, **named)
        taken = perf_counter_ns() - started
        times.append((f"{name} {named['id_'][:-UUID_LENGTH]}" if "id_" in named else name, taken))

    return call


def watch(handler: Any, times: list[tuple[str, int]]) -> None:
    """Time all callbacks of a handler."""
    names = [name for name in dir(type(handler)) if name.startswith("on_")] or [
        name for name in SPANS if name in handler.__dict__ or hasattr(type(handler), name)
    ]
    for name in names:
        handler.__dict__[name] = timed(getattr(handler, name), name, times)


def times_of(program: Scenario, handlers: list[Any], seen: list[tuple[str, int]], requests: int) -> Times:
    """Run a program so many times."""
    times: Times = defaultdict(list)
    program.run(handlers)
    gc.collect()
    gc.freeze()
    for _ in range(requests):
        seen.clear()
        program.run(handlers)
        counted: Counter[str] = Counter()
        for name, taken in seen:
            counted[name] += 1
            times[name, 0 if name in TOKENS else counted[name]].append(taken)
    return times


def show(name: str, times: list[int]) -> tuple[float, float]:
    least, median = min(times) / 1000, statistics.median(times) / 1000
    print(f"{name:65} {least:6.2f} {median:6.2f}")
    return least, median


def show_all(program: str, times: Times, requests: int) -> Mapping[str, Any]:
    """The rows of one program; its sums with a callback of tokens as often as it is called."""
    print(f"{program:65} {'least':>6} {'median':>6}")
    sums = [0.0, 0.0]
    for (name, _), taken in times.items():
        calls = len(taken) / requests
        for place, figure in enumerate(show(name, taken)):
            sums[place] += calls * figure
    print(f"{'all':65} {sums[0]:6.2f} {sums[1]:6.2f}\n")
    return {"program": program, "least_us": sums[0], "median_us": sums[1]}


def measured(framework_name: str, only: str | None, requests: int) -> Iterator[Mapping[str, Any]]:
    with closing(asyncio.new_event_loop()) as loop:
        framework = importlib.import_module(FRAMEWORKS[framework_name]).framework(loop)
        seen: list[tuple[str, int]] = []
        for handler in framework.ragspan:
            watch(handler, seen)
        for program in framework.scenarios:
            if only is None or program.name == only:
                runs = max(10, requests // program.units) if program.unit == "token" else requests
                yield show_all(program.name, times_of(program, framework.ragspan, seen, runs), runs)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="What each callback of the handler takes in a request, in microseconds."
    )
    parser.add_argument("--framework", choices=FRAMEWORKS, default="llama-index")
    parser.add_argument("--program", help="this one only")
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the sums there as well")
    options = parser.parse_args()
    sums = list(measured(options.framework, options.program, options.requests))
    empty: list[tuple[str, int]] = []
    call = timed(lambda **_: None, "", empty)
    for _ in range(options.requests):
        call(bound_args=None, instance=None, parent_id=None, tags=None)
    show("no callback", [time for _, time in empty])
    if options.json:
        options.json.write_text(json.dumps({"programs": sums}, indent=2) + "\n")


if __name__ == "__main__":
    main()
