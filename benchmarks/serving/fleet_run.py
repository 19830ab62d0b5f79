"""One fleet at work: its programs, what it is given, and what that took."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from judging.job import KEY, MODEL, answers

from ragspan import RagRecord
from serving import processor_time
from serving.broker import client_url, messages_in
from serving.processes import HOST, PATIENCE, Program, running
from serving.processor_time import MachineTime
from serving.worker import publish, running_workers

CONCURRENCY = 16
METRICS = 4
FIRST, LAST = 0.1, 0.9
"""Shares of the records between which the rate is counted."""
_LOOK = 0.2  # seconds; each look costs the broker a little
_LONGEST = 600.0  # seconds of one run


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What a fleet is given."""

    judge: str
    """`endpoint` or `overlap`."""
    latency: float
    """Seconds that the endpoint takes."""
    workers: int
    records: int
    """Of all workers together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One fleet at work. Processor times are in seconds for each record."""

    judge: str
    latency: float
    workers: int
    records: int
    seconds: float
    """Between a tenth and nine tenths of the records."""
    per_second: float
    worker_cpu: float
    """Of all workers, with their helper processes."""
    broker_cpu: float
    judge_cpu: float
    sink_cpu: float
    judge_share: float
    """Of one processor."""
    machine_share: float
    """Of all processors, everything that ran included."""
    foreign_share: float
    """Of all processors, by what is not ours."""

    @property
    def per_cpu_second(self) -> float:
        """Records for each second of the workers' processor time."""
        return 1 / self.worker_cpu if self.worker_cpu else float("inf")


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """How far a run is, and what it has taken so far."""

    at: float
    done: int
    busy: float
    total: float
    workers: float
    broker: float
    judge: float
    sink: float

    def since(self, earlier: Moment) -> Moment:
        then = asdict(earlier)
        return Moment(**{name: figure - then[name] for name, figure in asdict(self).items()})


@dataclass(frozen=True, kw_only=True, slots=True)
class Fleet:
    """The programs of one run."""

    broker: Program
    judge: Program
    sink: Program
    workers: Sequence[Program]

    def now(self, done: int) -> Moment:
        machine = MachineTime.now()
        return Moment(
            at=time.monotonic(),
            done=done,
            busy=machine.busy,
            total=machine.total,
            workers=sum(processor_seconds(worker) for worker in self.workers),
            broker=processor_seconds(self.broker),
            judge=processor_seconds(self.judge),
            sink=processor_seconds(self.sink),
        )


def processor_seconds(program: Program) -> float:
    """Of the program and of what it has started."""
    return sum(map(processor_time.of_process, [program.pid, *processor_time.descendants(program.pid)]))


def one_run(load: Load) -> Run:
    records = [
        RagRecord(question=one.question, contexts=one.passages, response=one.response) for one in answers(load.records)
    ]
    with (
        running("serving.sink") as sink,
        running("serving.broker") as broker,
        running("judging.endpoint", "--latency", load.latency) as judge,
    ):
        url, settings = client_url(broker), settings_of(load, judge, sink)
        with running_workers(load.workers, url, "--concurrency", CONCURRENCY, environment=settings) as workers:
            fleet = Fleet(broker=broker, judge=judge, sink=sink, workers=workers)
            publish(url, records)
            first = wait_for_share(fleet, load.records, FIRST)
            last = wait_for_share(fleet, load.records, LAST)
            wait_for_share(fleet, load.records, 1.0)
            check(load, fleet)
    return run_of(load, last.since(first))


def settings_of(load: Load, judge: Program, sink: Program) -> Mapping[str, str]:
    export = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{HOST}:{sink.port}", "OTEL_TRACES_EXPORTER": "otlp"}
    if load.judge == "overlap":
        return {**export, "RAGSPAN_JUDGE": "overlap"}
    return {
        **export,
        "RAGSPAN_JUDGE": f"openai:{MODEL}",
        "RAGSPAN_JUDGE_BASE_URL": f"http://{HOST}:{judge.port}/v1",
        "RAGSPAN_JUDGE_API_KEY": KEY,
    }


def wait_for_share(fleet: Fleet, records: int, share: float) -> Moment:
    """Wait until this share of the records has been acknowledged.

    Raises:
        RuntimeError: a worker ended, or it takes too long.
    """
    limit = time.monotonic() + _LONGEST
    while (done := records - messages_in(fleet.broker)) < share * records:
        ended = [worker.process.returncode for worker in fleet.workers if worker.process.poll() is not None]
        if ended or time.monotonic() > limit:
            raise RuntimeError(f"{done} of {records} records are scored; workers that ended: {ended}")
        time.sleep(_LOOK)
    return fleet.now(done)


def check(load: Load, fleet: Fleet) -> None:
    """Raise unless every record was acknowledged once and every score has arrived."""
    expected = {"acknowledged": load.records, "given back": 0, "put aside": 0, "spans": load.records}
    expected["scores"] = load.records * METRICS
    limit = time.monotonic() + PATIENCE
    while (seen := counted(fleet)) != expected:  # a worker counts a record a moment after the stream has let go of it
        if time.monotonic() > limit:
            raise RuntimeError(f"{seen} instead of {expected}")
        time.sleep(_LOOK)


def counted(fleet: Fleet) -> dict[str, int]:
    figures: list[dict[str, Any]] = [worker.get("/healthz") for worker in fleet.workers]
    counts = fleet.sink.get("/counts")
    return {
        "acknowledged": sum(one["acknowledged"] for one in figures),
        "given back": sum(sum(one["nacked"].values()) for one in figures),
        "put aside": sum(sum(one["dead_lettered"].values()) for one in figures),
        "spans": counts["spans"],
        "scores": counts["scores"],
    }


def run_of(load: Load, taken: Moment) -> Run:
    if not taken.done:
        raise RuntimeError(f"{load.records} records are too few to see how quickly they are scored")
    ours = taken.workers + taken.broker + taken.judge + taken.sink
    return Run(
        judge=load.judge,
        latency=load.latency,
        workers=load.workers,
        records=load.records,
        seconds=taken.at,
        per_second=taken.done / taken.at,
        worker_cpu=taken.workers / taken.done,
        broker_cpu=taken.broker / taken.done,
        judge_cpu=taken.judge / taken.done,
        sink_cpu=taken.sink / taken.done,
        judge_share=taken.judge / taken.at,
        machine_share=taken.busy / taken.total,
        foreign_share=max(0.0, taken.busy - ours) / taken.total,
    )
