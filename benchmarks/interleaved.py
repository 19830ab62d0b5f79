"""Measures what a handler adds to a program, by turns with a handler that does nothing.

A round takes every variant of the program a number of times, one after the other and in changing order, so that what
slows the machine for a moment slows all of them. The median of a variant's turns is its time of the round, and the
difference of two variants in one round is one measurement. Processor time of the whole process is counted, not wall
time. Before each round, everything that is alive is put out of the collector's sight: a handler pays for its own
garbage, not for the framework's modules.
"""

from __future__ import annotations

import gc
import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ragspan.records import Capture

Handlers: TypeAlias = list[Any]


@dataclass(slots=True)
class CountingSink:
    """Counts captures, asks for their size, as a queue does, and lets go of them, but for the first."""

    captures: int = 0
    bytes: int = 0
    first: Capture | None = None

    def submit(self, capture: Capture) -> None:
        if self.captures == 0:
            self.first = capture
        self.captures += 1
        self.bytes += capture.size_hint


@dataclass(frozen=True, kw_only=True, slots=True)
class Scenario:
    """One program."""

    name: str
    unit: str
    units: int = 1
    """How many of the unit one run has."""
    target: float | None = None
    """Microseconds per unit above the no-op handler."""
    turns: int
    """Runs of each variant in a round: as many as make the noise small beside the target."""
    run: Callable[[Handlers], object]
    """Runs the program once with these handlers and no others."""
    check: Callable[[], None] = field(default=lambda: None)
    """Raises unless the program is what its name says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Framework:
    """A framework's handlers, and the programs to run with them."""

    name: str
    no_op: Callable[[], Any]
    """Makes a handler that listens to everything and does nothing."""
    ragspan: Handlers
    sink: CountingSink
    """What `ragspan` submits to."""
    scenarios: Sequence[Scenario]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Microseconds per unit of one scenario."""

    framework: str
    scenario: str
    unit: str
    target_us: float | None
    ragspan_us: float
    """Median of ragspan above the no-op handler."""
    ragspan_quartiles_us: tuple[float, float]
    noise_us: float
    """Median of the no-op handler above itself."""
    noise_quartiles_us: tuple[float, float]
    bare_us: float
    """Median of the program without any handler."""
    rounds: int


def measure(framework: Framework, scenario: Scenario, *, rounds: int) -> Result:
    """Measure one scenario.

    Raises:
        RuntimeError: ragspan did not submit one answer for each of its runs.
    """
    variants = {
        "bare": [],
        "no-op": [framework.no_op()],
        "no-op again": [framework.no_op()],
        "ragspan": framework.ragspan,
    }
    warm_up(framework, scenario, variants)
    orders = itertools.cycle(itertools.permutations(variants))
    measured = [one_round(scenario, variants, orders) for _ in range(rounds)]
    gc.unfreeze()
    runs, captures = 1 + rounds * scenario.turns, framework.sink.captures
    if captures != runs:  # a handler that sees nothing costs nothing
        raise RuntimeError(f"{framework.name}, {scenario.name}: {captures} captures of {runs} runs")
    ours = [times["ragspan"] - times["no-op"] for times in measured]
    noise = [times["no-op again"] - times["no-op"] for times in measured]
    return Result(
        framework=framework.name,
        scenario=scenario.name,
        unit=scenario.unit,
        target_us=scenario.target,
        ragspan_us=statistics.median(ours),
        ragspan_quartiles_us=quartiles(ours),
        noise_us=statistics.median(noise),
        noise_quartiles_us=quartiles(noise),
        bare_us=statistics.median(times["bare"] for times in measured),
        rounds=rounds,
    )


def warm_up(framework: Framework, scenario: Scenario, variants: dict[str, Handlers]) -> None:
    """Run every variant once, and see that ragspan's made a record."""
    scenario.check()
    framework.sink.captures = 0
    for handlers in variants.values():
        scenario.run(handlers)
    capture, framework.sink.first = framework.sink.first, None
    if capture is None or capture.to_record() is None:
        raise RuntimeError(f"{framework.name}, {scenario.name}: there is no record")


def one_round(scenario: Scenario, variants: dict[str, Handlers], orders: Iterator[tuple[str, ...]]) -> dict[str, float]:
    """Microseconds per unit of every variant."""
    times: dict[str, list[int]] = {name: [] for name in variants}
    gc.collect()
    gc.freeze()
    for _ in range(scenario.turns):
        for name in next(orders):
            started = time.process_time_ns()
            scenario.run(variants[name])
            times[name].append(time.process_time_ns() - started)
    return {name: statistics.median(turns) / scenario.units / 1000 for name, turns in times.items()}


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The first and the third."""
    first, _, third = statistics.quantiles(values, n=4)
    return first, third
