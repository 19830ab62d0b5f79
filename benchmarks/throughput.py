"""Records a second against what the judge's latency allows, and memory while the judge has stopped.

    python benchmarks/throughput.py [--quick] [--json FILE] [--peers-python FILE]

An OpenAI-compatible endpoint in a process of its own answers each request after 200 ms, however many come. Each contender
has a process of its own, too, and is given a backlog of answers, all at once and after a warm-up. With one request a record
no more than `concurrency / 0.2 s` records a second are possible; ragspan's four metrics take one as well. The bare client is a loop that sends prepared requests and reads the
replies: it shows what the endpoint and the machine can do at the time.

The peers do the job in the way closest to ragspan's that they have, each with its own prompt and one request a record;
`judging/` tells what that is. They need older versions of some libraries, and so have an environment of their own, which
`make peers` makes. Everybody's processor time is that of the contender's process.

With a judge that never answers, ten times the bytes that the queue may hold are submitted. The process may grow by that
bound and by `BASE` for what is around it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
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
QUEUE_BYTES = 32 << 20
TIMES_THE_QUEUE = 10
BASE = 16 << 20
"""Bytes by which a process may grow beside what waits in the queue: what is in work, and what the allocator keeps."""
PEERS_PYTHON = Path(__file__).parents[1] / ".venv-judging-peers" / "bin" / "python"


@dataclass(frozen=True, kw_only=True, slots=True)
class Contender:
    """Somebody who has answers judged."""

    name: str
    """As `judging.contest` knows it."""
    distribution: str | None = None
    """What has to be installed; None for what this environment has anyway."""
    sequential_requests: int = 1
    """Of one record."""


CONTENDERS = [
    Contender(name="bare-client"),
    Contender(name="ragspan"),
    Contender(name="ragspan-four-metrics"),
    Contender(name="ragas", distribution="ragas"),
    Contender(name="pydantic-evals", distribution="pydantic-evals"),
    Contender(name="splunk", distribution="splunk-otel-util-genai-evals"),
]
NAMES = [contender.name for contender in CONTENDERS]


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """One contender at one concurrency."""

    contender: str
    version: str | None
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Absent:
    """A peer that was left out."""

    contender: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """The process while the judge has stopped, in bytes."""

    queue_bytes: int
    submitted_bytes: int
    before: int
    after: int
    base: int
    in_flight: int
    queued: int
    dropped: int

    @property
    def grown(self) -> int:
        return self.after - self.before

    @property
    def is_bounded(self) -> bool:
        return self.grown <= self.queue_bytes + self.base


def measured(
    contenders: Sequence[Contender], concurrencies: Sequence[int], *, rounds: int, peers_python: str
) -> Iterator[Result | Absent]:
    for contender in contenders:
        python = peers_python if contender.distribution else sys.executable
        version = version_of(contender.distribution, python) if contender.distribution else None
        if contender.distribution and version is None:
            yield Absent(contender=contender.name, reason="not installed")
            continue
        for concurrency in concurrencies:
            yield attempted(contender, version, concurrency, rounds=rounds, python=python)


def attempted(
    contender: Contender, version: str | None, concurrency: int, *, rounds: int, python: str
) -> Result | Absent:
    try:
        return one_run(contender, version, concurrency, rounds=rounds, python=python)
    except RuntimeError as error:  # a peer that has changed since; what it printed stands above the table
        return Absent(contender=contender.name, reason=str(error))


def one_run(contender: Contender, version: str | None, concurrency: int, *, rounds: int, python: str) -> Result:
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
        with running("judging.contest", contender.name, *options, python=python) as contest:
            before = MachineTime.now()
            done = contest.read_line()
            after = MachineTime.now()
    limit = concurrency / (LATENCY * contender.sequential_requests)
    per_second = done["judged"] / done["seconds"]
    return Result(
        contender=contender.name,
        version=version,
        concurrency=concurrency,
        limit=limit,
        answers=answers,
        judged=done["judged"],
        per_second=per_second,
        share=per_second / limit,
        cpu_ms=done["cpu_seconds"] / answers * 1000,
        machine_share=(after.busy - before.busy) / (after.total - before.total),
    )


def version_of(distribution: str, python: str) -> str | None:
    """What is installed there; None if it is not."""
    program = f"import importlib.metadata; print(importlib.metadata.version({distribution!r}))"
    try:
        found = subprocess.run([python, "-c", program], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def measured_memory() -> Memory:
    """Memory of a process whose judge has stopped."""
    with running("judging.endpoint", "--latency", "inf") as endpoint:
        options = ("--base-url", f"http://{HOST}:{endpoint.port}/v1", "--concurrency", 16)
        queue = ("--queue-bytes", QUEUE_BYTES, "--times", TIMES_THE_QUEUE)
        with running("judging.stopped", *options, *queue) as stopped:
            seen = stopped.read_line()
    return Memory(
        queue_bytes=QUEUE_BYTES,
        submitted_bytes=QUEUE_BYTES * TIMES_THE_QUEUE,
        before=seen["before"],
        after=seen["after"],
        base=BASE,
        in_flight=seen["in_flight"],
        queued=seen["queued"],
        dropped=sum(seen["dropped"].values()),
    )


def show(results: Sequence[Result | Absent], memory: Memory) -> None:
    table = Table(title=f"Records a second, with a judge that takes {LATENCY * 1000:g} ms")
    for heading in ("contender", "concurrency", "limit", "reached", "share", "target", "judged", "CPU ms", "machine"):
        table.add_column(heading, justify="left" if heading == "contender" else "right")
    for result in results:
        table.add_row(*cells(result))
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    console.print(
        f"Judge stopped, {mebibytes(memory.submitted_bytes)} submitted to a queue of {mebibytes(memory.queue_bytes)}: "
        f"{mebibytes(memory.before)} of memory before, {mebibytes(memory.after)} after; {memory.in_flight} records in work, "
        f"{memory.queued} waiting, {memory.dropped} dropped. It may grow by the queue and {mebibytes(memory.base)}, "
        f"and {'did not' if memory.is_bounded else 'DID'} grow by more."
    )


def cells(result: Result | Absent) -> list[str]:
    if isinstance(result, Absent):
        return [result.contender, result.reason]
    return [
        f"{result.contender} {result.version or ''}".strip(),
        str(result.concurrency),
        f"{result.limit:.0f}",
        f"{result.per_second:.1f}",
        f"{result.share:.1%}",
        f"{TARGET:.0%}" if (result.contender, result.concurrency) == ("ragspan", max(CONCURRENCIES)) else "",
        f"{result.judged} of {result.answers}",
        f"{result.cpu_ms:.2f}",
        f"{result.machine_share:.0%}",
    ]


def mebibytes(count: int) -> str:
    return f"{count / (1 << 20):.0f} MiB"


def main() -> None:
    parser = argparse.ArgumentParser(description="Records a second against what the judge's latency allows.")
    parser.add_argument("--quick", action="store_true", help="one concurrency, few answers, no peers")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--concurrency", type=int, action="append", help="only this one; may be given several times")
    parser.add_argument("--only", action="append", choices=NAMES, help="only this contender")
    parser.add_argument("--peers-python", default=str(PEERS_PYTHON), help="the Python that has the peers")
    arguments = parser.parse_args()
    concurrencies = arguments.concurrency or (QUICK_CONCURRENCIES if arguments.quick else CONCURRENCIES)
    contenders = [one for one in CONTENDERS if one.name in (arguments.only or NAMES)]
    if arguments.quick:
        contenders = [one for one in contenders if one.distribution is None]
    rounds = QUICK_ROUNDS if arguments.quick else ROUNDS
    results = list(measured(contenders, concurrencies, rounds=rounds, peers_python=arguments.peers_python))
    memory = measured_memory()
    show(results, memory)
    if arguments.json:
        report = {
            "latency_s": LATENCY,
            "target": TARGET,
            "results": [asdict(result) for result in results if isinstance(result, Result)],
            "left_out": [asdict(result) for result in results if isinstance(result, Absent)],
            "memory": {**asdict(memory), "is_bounded": memory.is_bounded},
        }
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
