"""Records a second of a fleet with one, two and four workers, and what a record costs a worker.

    python benchmarks/fleet.py [--quick] [--part scaling|ceiling] [--json FILE] [--rounds 5]

Records of ten passages of a kilobyte are published by `NatsSink` to a real nats-server before the workers start, so that there
is always enough to do. Workers are processes of `ragspan worker`, with all four metrics and an exporter that sends to an
endpoint which counts the scores. What is timed is the middle of the work: from when a fifth of the records has left the
stream until nine tenths have. A record leaves when it is scored, exported and acknowledged. Afterwards each record must be
scored once: anything else ends the program with an error.

`scaling`: a judge over HTTP that answers after 200 ms, 8 records at a time in each worker: so few that four workers, the broker
and the endpoints do not fill two processors, which would be measured then. With four metrics a record takes at
least two requests one after the other. The counts of workers take turns; the table shows the median and the quartiles of the rates,
and those of the ratios to one worker in the same round.

`ceiling`: one worker with 64 records at a time, whose judge answers at once, and one with the embedded judge: processor time a
record, of the worker and its helper process, and so what one processor can do.

Needs Linux, and nats-server.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from serving import broker as brokers
from serving import processor_time
from serving.passages import passages, question
from serving.processes import HOST, PATIENCE, Program, end_on_sigterm, running
from serving.processor_time import MachineTime

from ragspan import RagRecord
from ragspan_nats import NatsSink

TARGET = 1.9
WORKERS, QUICK_WORKERS = (1, 2, 4), (1, 2)
CONCURRENCY, CEILING_CONCURRENCY = 8, 64
LATENCY = 0.2
RECORDS_OF_A_WORKER, QUICK_RECORDS = 250, 60
CEILING_RECORDS = 1500
METRICS = 4
FIRST, LAST = 0.2, 0.9
"""Shares of the records that have left the stream where the time begins and ends."""
LOOK = 0.02  # seconds between two looks at the stream
LONGEST = 300.0  # seconds for one measurement


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """What is measured."""

    workers: int
    concurrency: int
    judge: str
    """`openai:…` at an endpoint, or `overlap`."""
    latency: float
    """Seconds that the endpoint takes."""
    records: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One fleet at work."""

    workers: int
    judge: str
    latency: float
    records: int
    per_second: float
    worker_ms: float
    """Processor time of a record, in all workers and their helpers together."""
    broker_ms: float
    judge_ms: float
    """Of the endpoint that judges."""
    machine_share: float
    """How busy the processors were, everything that ran included."""
    message_bytes: float
    """Of a record in the stream, headers included."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """All runs with so many workers."""

    workers: int
    per_second: float
    quartiles: tuple[float, float]
    ratio: float
    """To one worker in the same round."""
    ratio_quartiles: tuple[float, float]
    worker_ms: float
    machine_share: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Seconds of processor time until a moment."""

    at: float
    left: int
    """Records in the stream."""
    workers: float
    broker: float
    judge: float
    machine: MachineTime


def measure(fleet: Fleet) -> Run:
    """Publish, let the workers work, and time the middle of it."""
    with ExitStack() as programs:
        broker = programs.enter_context(running("serving.broker"))
        endpoint = programs.enter_context(running("judging.endpoint", "--latency", fleet.latency))
        collector = programs.enter_context(running("serving.sink"))
        message_bytes = publish(broker, fleet.records)
        workers = [programs.enter_context(worker(fleet, broker, endpoint, collector)) for _ in range(fleet.workers)]

        def usage() -> Usage:
            return Usage(
                at=time.monotonic(),
                left=brokers.messages_in(broker),
                workers=sum(time_of(process.pid) for process in workers),
                broker=time_of(broker.pid),
                judge=time_of(endpoint.pid),
                machine=MachineTime.now(),
            )

        first = wait_until(broker, workers, fleet.records * (1 - FIRST), usage)
        last = wait_until(broker, workers, fleet.records * (1 - LAST), usage)
        wait_until(broker, workers, 0, usage)
        check(fleet, collector)
    done = first.left - last.left
    return Run(
        workers=fleet.workers,
        judge=fleet.judge,
        latency=fleet.latency,
        records=fleet.records,
        per_second=done / (last.at - first.at),
        worker_ms=1000 * (last.workers - first.workers) / done,
        broker_ms=1000 * (last.broker - first.broker) / done,
        judge_ms=1000 * (last.judge - first.judge) / done,
        machine_share=(last.machine.busy - first.machine.busy) / (last.machine.total - first.machine.total),
        message_bytes=message_bytes,
    )


def publish(broker: Program, count: int) -> float:
    """Fill the stream; bytes of a record in it."""
    texts = passages(500)
    with NatsSink(brokers.client_url(broker), queue_size=count, queue_bytes=1 << 32) as sink:
        for number in range(count):
            first = number * 10 % len(texts)
            found = texts[first : first + 10]
            answer = " ".join(text.partition(". ")[0] + "." for text in found[:3])
            sink.submit(RagRecord(question=question(number), contexts=found, response=answer))
        if not sink.flush(PATIENCE) or sink.stats().published != count:
            raise RuntimeError(f"not everything was published: {sink.stats()}")
    return brokers.bytes_in(broker) / count


@contextmanager
def worker(fleet: Fleet, broker: Program, endpoint: Program, collector: Program) -> Iterator[subprocess.Popen[bytes]]:
    """A `ragspan worker`, and its end with the block."""
    environment = {
        **{name: text for name, text in os.environ.items() if not name.startswith(("OTEL_", "RAGSPAN_", "OPENAI_"))},
        "NO_PROXY": HOST,
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{HOST}:{collector.port}",
        "RAGSPAN_JUDGE": fleet.judge,
        "RAGSPAN_JUDGE_BASE_URL": f"http://{HOST}:{endpoint.port}/v1",
        "RAGSPAN_JUDGE_API_KEY": "none",
    }
    command = [sys.executable, "-m", "ragspan.cli", "worker", "--broker", brokers.client_url(broker)]
    process = subprocess.Popen(
        [*command, "--concurrency", str(fleet.concurrency)], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(PATIENCE)


def wait_until(
    broker: Program, workers: Sequence[subprocess.Popen[bytes]], left: float, usage: Callable[[], Usage]
) -> Usage:
    """What had been used when no more than so many records were left."""
    limit = time.monotonic() + LONGEST
    while brokers.messages_in(broker) > left:
        ended = [process.returncode for process in workers if process.poll() is not None]
        if ended or time.monotonic() > limit:
            raise RuntimeError(f"the workers did not get on; ended with: {ended}")
        time.sleep(LOOK)
    return usage()


def check(fleet: Fleet, collector: Program) -> None:
    """Raise unless every record was scored by every metric, once."""
    scores = collector.get("/counts")["scores"]
    if scores != fleet.records * METRICS:
        raise RuntimeError(f"{scores} scores instead of {fleet.records * METRICS}")


def time_of(pid: int) -> float:
    """Processor time of a process and of those that it has started."""
    return sum(map(processor_time.of_process, [pid, *processor_time.descendants(pid)]))


def scaling(counts: Sequence[int], rounds: int, records: int) -> Iterator[list[Run]]:
    """A run with each count of workers, so many times."""
    for number in range(rounds):
        order = counts if number % 2 == 0 else counts[::-1]
        runs = []
        for count in order:
            fleet = Fleet(
                workers=count,
                concurrency=CONCURRENCY,
                judge="openai:fixed-latency",
                latency=LATENCY,
                records=records * count,
            )
            runs.append(measure(fleet))
            tell(runs[-1])
        yield sorted(runs, key=lambda run: run.workers)


def ceiling(records: int) -> list[Run]:
    """What one worker is able to do."""
    runs = []
    for judge in ("openai:at-once", "overlap"):
        fleet = Fleet(workers=1, concurrency=CEILING_CONCURRENCY, judge=judge, latency=0.0, records=records)
        runs.append(measure(fleet))
        tell(runs[-1])
    return runs


def tell(run: Run) -> None:
    print(
        f"{run.workers} workers, {run.judge}: {run.per_second:.1f} records a second, {run.worker_ms:.1f} ms of processor "
        f"time each (broker {run.broker_ms:.2f}, judge {run.judge_ms:.2f}), machine {run.machine_share:.0%} busy",
        file=sys.stderr,
        flush=True,
    )


def summaries(rounds: Sequence[Sequence[Run]]) -> list[Summary]:
    found = []
    for place, first in enumerate(rounds[0]):
        runs = [runs[place] for runs in rounds]
        rates = [run.per_second for run in runs]
        ratios = [runs[place].per_second / runs[0].per_second for runs in rounds]
        found.append(
            Summary(
                workers=first.workers,
                per_second=statistics.median(rates),
                quartiles=quartiles(rates),
                ratio=statistics.median(ratios),
                ratio_quartiles=quartiles(ratios),
                worker_ms=statistics.median(run.worker_ms for run in runs),
                machine_share=statistics.median(run.machine_share for run in runs),
            )
        )
    return found


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    first, _, third = statistics.quantiles([*values, *values] if len(values) == 1 else values, n=4, method="inclusive")
    return first, third


def show(found: Sequence[Summary]) -> None:
    table = Table(title=f"Records a second: a judge of {LATENCY * 1000:.0f} ms, {CONCURRENCY} at a time in each worker")
    for heading in ("workers", "records a second", "times one worker", "target", "ms of processor", "machine"):
        table.add_column(heading, justify="right")
    for one in found:
        table.add_row(
            str(one.workers),
            f"{one.per_second:.1f} ({one.quartiles[0]:.1f} … {one.quartiles[1]:.1f})",
            f"{one.ratio:.2f} ({one.ratio_quartiles[0]:.2f} … {one.ratio_quartiles[1]:.2f})",
            f"{TARGET:g}" if one.workers == QUICK_WORKERS[1] else "",
            f"{one.worker_ms:.1f}",
            f"{one.machine_share:.0%}",
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def arguments_of_program() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Records a second of one, two and four workers.")
    parser.add_argument("--quick", action="store_true", help="whether it runs, not what it costs")
    parser.add_argument("--part", choices=("scaling", "ceiling"), help="only this one")
    parser.add_argument("--rounds", type=int, default=5, help="of each count of workers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    arguments = parser.parse_args()
    if brokers.server_program() is None:
        parser.error("nats-server is not installed (Debian and Ubuntu: apt install nats-server)")
    if not processor_time.is_measurable():
        parser.error("processor times are read from /proc, which this system does not have")
    return arguments


def main() -> None:
    end_on_sigterm()
    arguments = arguments_of_program()
    rounds: list[list[Run]] = []
    ceilings: list[Run] = []
    if arguments.part != "ceiling":
        counts, records = (QUICK_WORKERS, QUICK_RECORDS) if arguments.quick else (WORKERS, RECORDS_OF_A_WORKER)
        rounds = list(scaling(counts, 1 if arguments.quick else arguments.rounds, records))
    if arguments.part != "scaling":
        ceilings = ceiling(2 * QUICK_RECORDS if arguments.quick else CEILING_RECORDS)
    found = summaries(rounds) if rounds else []
    if found:
        show(found)
    if arguments.json:
        machine = {"processors": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
        figures = {
            "machine": machine,
            "target": TARGET,
            "summaries": [asdict(one) for one in found],
            "rounds": [[asdict(run) for run in runs] for runs in rounds],
            "ceilings": [asdict(run) for run in ceilings],
        }
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
