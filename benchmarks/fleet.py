"""Records a second that a fleet scores with one, two and four workers, and what one worker can do at most.

    python benchmarks/fleet.py [--quick] [--json FILE] [--part scaling] [--part ceiling] [--rounds 10] [--records 500]

Workers are `ragspan worker` processes with all four metrics, 16 records at a time, on a real nats-server; they export by OTLP
to an endpoint that counts. Scaling: the judge is an OpenAI-compatible endpoint that answers each request after 200 ms, however
many come, so that one worker can do 16 / (2 · 0.2 s) = 40 records a second: the longest metric makes two requests one after
the other. A round takes 1, 2 and 4 workers in turn, with `--records` for each worker, and its ratios are those of its own
rates. Ceiling: one worker whose judge answers at once, and one with the embedded judge; their records for each second of
processor time are what a fleet is sized by.

Workers are ready before anything is published. The rate is counted between a tenth and nine tenths of the records, by what the
stream no longer holds: a record leaves it when its worker has acknowledged it, which it does after its scores are exported. A
run counts only if every record was acknowledged once, and every score arrived; anything else ends the program with an error.

Needs Linux, for the processor times. Where everything that runs is near to the machine's processors, these are what limits the
fleet; the table tells how busy they were, and with what that is not ours. A round in which that was more than `--max-foreign` of
the machine in any run is left out, whatever its ratios, and taken again. The judge's endpoint is a single process: were it
near to one processor, it would be what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from serving import processor_time
from serving.fleet_run import CONCURRENCY, Load, Run, one_run
from serving.processes import end_on_sigterm

WORKERS, QUICK_WORKERS = (1, 2, 4), (1, 2)
LATENCY = 0.2
TITLES = {
    "scaling": f"Records a second, with a judge that takes {LATENCY * 1000:g} ms, on {os.cpu_count()} processors",
    "ceiling": "What one worker can do, with a judge that takes no time, and with the embedded one",
}
SEQUENTIAL_REQUESTS = 2
"""Of the metric that makes the most of them one after the other."""
CEILING_RECORDS, QUICK_CEILING_RECORDS = 3000, 1000
TARGET = 1.9
"""Two workers against one."""
ATTEMPTS = 3
"""How often a round is taken at most before the machine counts as too busy."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """What the rounds of one part brought."""

    kept: Sequence[Sequence[Run]]
    left_out: Sequence[Sequence[Run]]
    """Others took too much of the machine."""

    @property
    def runs(self) -> list[Run]:
        return [run for each in self.kept for run in each]


def measured(loads: Sequence[Load], *, rounds: int, max_foreign: float) -> Part:
    """Take all of the loads in turn, so many times that enough rounds are kept, if that can be."""
    kept: list[list[Run]] = []
    left_out: list[list[Run]] = []
    while len(kept) < rounds and len(kept) + len(left_out) < rounds * ATTEMPTS:
        runs = [told(one_run(load)) for load in loads]
        is_kept = max(run.foreign_share for run in runs) <= max_foreign
        (kept if is_kept else left_out).append(runs)
        print(f"round {len(kept) + len(left_out)}{'' if is_kept else ': left out'}", file=sys.stderr, flush=True)
    return Part(kept=kept, left_out=left_out)


def scaling(workers: Sequence[int], records: int) -> list[Load]:
    return [Load(judge="endpoint", latency=LATENCY, workers=one, records=records * one) for one in workers]


def ceiling(records: int) -> list[Load]:
    return [Load(judge=judge, latency=0.0, workers=1, records=records) for judge in ("endpoint", "overlap")]


def ratios(runs: Sequence[Run], number: int) -> list[float]:
    """Of the rate with so many workers to that with one, in each round."""
    rates = {workers: [run.per_second for run in runs if run.workers == workers] for workers in (1, number)}
    return [many / one for one, many in zip(rates[1], rates[number], strict=True)]


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The first, the median and the third."""
    several = [*values, *values] if len(values) == 1 else values
    first, middle, third = statistics.quantiles(several, n=4, method="inclusive")
    return first, middle, third


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    """Medians of runs that differ in nothing but their turn."""
    figures = ("per_second", "worker_cpu", "broker_cpu", "judge_cpu", "sink_cpu")
    shares = ("judge_share", "machine_share", "foreign_share")
    middles = {name: statistics.median(getattr(run, name) for run in runs) for name in (*figures, *shares)}
    first, _, third = quartiles([run.per_second for run in runs])
    per_cpu_second = statistics.median(run.per_cpu_second for run in runs)
    about = {"judge": runs[0].judge, "workers": runs[0].workers, "runs": len(runs)}
    return {**about, **middles, "per_second_quartiles": (first, third), "per_cpu_second": per_cpu_second}


def by_kind(runs: Sequence[Run]) -> list[list[Run]]:
    kinds: dict[tuple[str, int], list[Run]] = {}
    for run in runs:
        kinds.setdefault((run.judge, run.workers), []).append(run)
    return list(kinds.values())


def show(title: str, runs: Sequence[Run]) -> None:
    table = Table(title=title)
    for heading in (
        "judge",
        "workers",
        "runs",
        "records a second",
        "limit",
        "of it",
        "CPU ms: worker",
        "broker",
        "judge",
    ):
        table.add_column(heading, justify="left" if heading == "judge" else "right")
    for heading in ("records per CPU s", "judge's process", "machine", "of it others"):
        table.add_column(heading, justify="right")
    for same in by_kind(runs):
        found, latency = summary(same), same[0].latency
        limit = found["workers"] * CONCURRENCY / (latency * SEQUENTIAL_REQUESTS) if latency else None
        first, third = found["per_second_quartiles"]
        table.add_row(
            found["judge"],
            str(found["workers"]),
            str(found["runs"]),
            f"{found['per_second']:.1f} ({first:.1f} … {third:.1f})",
            "" if limit is None else f"{limit:.0f}",
            "" if limit is None else f"{found['per_second'] / limit:.1%}",
            *(f"{found[name] * 1000:.2f}" for name in ("worker_cpu", "broker_cpu", "judge_cpu")),
            f"{found['per_cpu_second']:.0f}",
            *(f"{found[name]:.0%}" for name in ("judge_share", "machine_share", "foreign_share")),
        )
    Console(width=None if sys.stdout.isatty() else 170).print(table)


def show_ratios(runs: Sequence[Run]) -> None:
    for number in sorted({run.workers for run in runs} - {1}):
        first, middle, third = quartiles(ratios(runs, number))
        target = f"; the target is {TARGET:g}" if number == WORKERS[1] else ""
        print(f"{number} workers to 1: {middle:.3f} ({first:.3f} … {third:.3f}){target}", flush=True)


def report(parts: Mapping[str, Part]) -> str:
    machine = {"processors": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
    scaled = parts["scaling"].runs if "scaling" in parts else []
    numbers = sorted({run.workers for run in scaled} - {1})
    return json.dumps(
        {
            "machine": machine,
            "latency_s": LATENCY,
            "concurrency": CONCURRENCY,
            "target": TARGET,
            "ratios": {str(number): quartiles(ratios(scaled, number)) for number in numbers},
            "summaries": {name: [summary(same) for same in by_kind(part.runs)] for name, part in parts.items()},
            "runs": {name: [asdict(run) for run in part.runs] for name, part in parts.items()},
            "left_out": {name: [asdict(run) for runs in part.left_out for run in runs] for name, part in parts.items()},
        },
        indent=2,
    )


def told(run: Run) -> Run:
    """The same, with a line about it."""
    print(
        f"{run.judge:9} {run.workers} workers  {run.per_second:7.1f} records a second  {run.worker_cpu * 1000:5.2f} ms each"
        f"  machine {run.machine_share:4.0%}  others {run.foreign_share:4.0%}",
        file=sys.stderr,
        flush=True,
    )
    return run


def arguments_of_program() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Records a second that a fleet scores.")
    parser.add_argument("--quick", action="store_true", help="one short round: whether it runs, not what it can do")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--part", action="append", choices=("scaling", "ceiling"), help="only this one")
    parser.add_argument("--workers", type=int, action="append", help="so many, beside one; may be given several times")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--records", type=int, default=500, help="for each worker in a run of the part scaling")
    parser.add_argument("--max-foreign", type=float, default=0.1, metavar="SHARE", help="of the machine, 0..1")
    arguments = parser.parse_args()
    if not processor_time.is_measurable():
        parser.error("processor times are read from /proc, which this system does not have")
    if arguments.quick:
        arguments.rounds, arguments.records, arguments.max_foreign = 1, 60, 1.0
    arguments.ceiling_records = QUICK_CEILING_RECORDS if arguments.quick else CEILING_RECORDS
    usual = QUICK_WORKERS if arguments.quick else WORKERS
    arguments.workers = sorted({1, *arguments.workers}) if arguments.workers else usual
    return arguments


def main() -> None:
    end_on_sigterm()
    arguments = arguments_of_program()
    loads = {"scaling": scaling(arguments.workers, arguments.records), "ceiling": ceiling(arguments.ceiling_records)}
    parts = {
        name: measured(loads[name], rounds=arguments.rounds, max_foreign=arguments.max_foreign)
        for name in arguments.part or loads
    }
    for name, part in parts.items():
        if part.kept:
            show(TITLES[name], part.runs)
    if "scaling" in parts and parts["scaling"].kept:
        show_ratios(parts["scaling"].runs)
    if arguments.json:
        arguments.json.write_text(report(parts) + "\n")
    missing = sum(arguments.rounds - len(part.kept) for part in parts.values())
    if missing:
        sys.exit(f"other programs kept the machine too busy: {missing} rounds are missing")


if __name__ == "__main__":
    main()
