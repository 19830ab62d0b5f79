"""What scoring does to the slowest answers of a web application.

    python benchmarks/tail_latency.py [--quick] [--json FILE] [--mode MODE ...] [--rate 100] [--pairs 10] [--seconds 20]

An application (`serving/application.py`: LangChain, Starlette, uvicorn, one process, real HTTP) answers at a steady
rate, ten passages of a kilobyte and 30 ms of waiting for a model each. It runs with scoring (all four metrics, the
embedded judge, a real OTLP exporter with the batches that the documentation recommends) and without, one right after
the other, in fresh processes, and in changing order. Load and spans' endpoint are processes of their own.

In the mode `nats` nothing is scored: records are published to a NATS server, which is a process of its own as well, and a run
counts only if the stream holds all of them.

Latency counts from the time at which a request was due, so that a stall hits all requests that it delays. The figure is
the ratio of the 99th percentiles of such a pair; the table shows the median and the quartiles of all pairs. A run counts
only if everything was scored and every span arrived: anything else ends the program with an error.

Needs Linux, for the processor times: they say how busy the whole machine was, and how much of that was not ours. A pair
in which other programs took more than `--max-foreign` of the machine tells of them and not of ragspan; it is left out,
whatever its ratio, and measured again. The target holds at rates that use at most half of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from serving import broker as brokers
from serving import processor_time
from serving.application import ENGINES, MODES, PUBLISHING
from serving.processes import HOST, Program, end_on_sigterm, running
from serving.processor_time import MachineTime

TARGETS = {"helper": 1.15, PUBLISHING: 1.10}
SPANS_OF_REQUEST = 1
SPANS_OF_RECORD = 3
"""The answer, its search and its model call."""
METRICS = 4
ATTEMPTS = 3
"""How often a pair is measured at most before the machine counts as too busy."""

EXPORT = {
    "OTEL_SERVICE_NAME": "tail-latency",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_METRICS_EXPORTER": "none",
    "OTEL_LOGS_EXPORTER": "none",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "16",
    "OTEL_BSP_SCHEDULE_DELAY": "50",
    "RAGSPAN_METRICS": "context_adherence,completeness,context_utilization,faithfulness",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What is asked of the application."""

    rate: float
    """Requests a second."""
    warm_up: float
    """Seconds that are not measured."""
    seconds: float
    """Seconds that are measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """One process of the application under load. Shares are of all processors together."""

    mode: str
    p50_ms: float
    p99_ms: float
    sent_late_p99_ms: float
    """How late the load generator itself was."""
    application_share: float
    helper_share: float
    load_share: float
    machine_share: float
    """Of everything that ran on the machine."""
    foreign_share: float
    """Of everything that ran and was not ours."""
    requests: int
    """With those of the warm-up."""
    scored: int
    published: int
    """In the stream."""
    spans: int
    """Received by the endpoint, the application's own included."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two runs in a row."""

    off: Run
    on: Run

    @property
    def ratio(self) -> float:
        return self.on.p99_ms / self.off.p99_ms

    @property
    def foreign_share(self) -> float:
        return max(self.off.foreign_share, self.on.foreign_share)


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """All pairs of a mode."""

    mode: str
    pairs: int
    off_p50_ms: float
    off_p99_ms: float
    p50_ms: float
    p99_ms: float
    ratio: float
    """Median of the pairs' ratios of 99th percentiles."""
    quartiles: tuple[float, float]
    machine_share: float
    off_machine_share: float
    foreign_share: float
    load_share: float
    sent_late_p99_ms: float
    scored: int
    published: int
    spans: int


def measured_pairs(modes: Sequence[str], load: Load, *, pairs: int, max_foreign: float) -> Iterator[Pair]:
    """Pairs of all modes in turn, so that an hour of the machine is shared by all of them."""
    missing = Counter(dict.fromkeys(modes, pairs))
    for turn in range(pairs * ATTEMPTS):
        for mode in modes:
            if not missing[mode]:
                continue
            order = ("off", mode) if turn % 2 == 0 else (mode, "off")
            runs = {each: one_run(each, load) for each in order}
            pair = Pair(off=runs["off"], on=runs[mode])
            missing[mode] -= pair.foreign_share <= max_foreign
            yield pair


def one_run(mode: str, load: Load) -> Run:
    with ExitStack() as programs:
        sink = programs.enter_context(running("serving.sink"))
        broker = programs.enter_context(running("serving.broker")) if mode == PUBLISHING else None
        environment = EXPORT | {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{HOST}:{sink.port}"}
        broker_options = () if broker is None else ("--broker", brokers.client_url(broker))
        application = programs.enter_context(
            running("serving.application", mode, *broker_options, environment=environment)
        )
        beside = [sink] if broker is None else [sink, broker]
        options = ("--rate", load.rate, "--warm-up", load.warm_up, "--seconds", load.seconds)
        with running("serving.load", application.port, *options) as generator:
            generator.read_line()  # warmed up
            usage = Usage.now(application, beside)
            done = generator.read_line()
            usage = Usage.now(application, beside) - usage
        stats = application.get("/report")
        counts = sink.get("/counts") | {"in the stream": 0 if broker is None else brokers.messages_in(broker)}
    check(mode, done, stats, counts, has_helper=usage.helper > 0)
    return Run(
        mode=mode,
        p50_ms=percentile(done["latencies_ms"], 50),
        p99_ms=percentile(done["latencies_ms"], 99),
        sent_late_p99_ms=percentile(done["lateness_ms"], 99),
        application_share=usage.application / usage.total,
        helper_share=usage.helper / usage.total,
        load_share=done["cpu_seconds"] / usage.total,
        machine_share=usage.busy / usage.total,
        foreign_share=max(0.0, usage.busy - usage.ours - done["cpu_seconds"]) / usage.total,
        requests=done["requests"],
        scored=stats.get("scored", 0),
        published=counts["in the stream"],
        spans=counts["spans"],
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """Seconds of processor time."""

    busy: float
    total: float
    application: float
    helper: float
    beside: float
    """Of what is at the other end: the endpoint of spans, the broker."""

    @classmethod
    def now(cls, application: Program, beside: Sequence[Program]) -> Usage:
        machine = MachineTime.now()
        return cls(
            busy=machine.busy,
            total=machine.total,
            application=processor_time.of_process(application.pid),
            helper=sum(map(processor_time.of_process, processor_time.descendants(application.pid))),
            beside=sum(
                processor_time.of_process(pid)
                for program in beside
                for pid in (program.pid, *processor_time.descendants(program.pid))
            ),
        )

    def __sub__(self, earlier: Usage) -> Usage:
        return Usage(**{name: figure - getattr(earlier, name) for name, figure in asdict(self).items()})

    @property
    def ours(self) -> float:
        return self.application + self.helper + self.beside


def check(mode: str, done: dict[str, Any], stats: dict[str, Any], counts: dict[str, Any], *, has_helper: bool) -> None:
    """Raise unless all was answered, scored or published, and received, and scored where the mode says: an engine without a
    helper process makes do with threads."""
    requests = done["requests"]
    scored = requests if mode in ENGINES else 0
    published = requests if mode == PUBLISHING else 0
    expected = {
        "a helper process at work": mode in ENGINES and ENGINES[mode]["judging"] == "helper",
        "failed requests": [],
        "dropped": {},
        "errors": {},
        "scored": scored,
        "published": published,
        "in the stream": published,
        "spans": requests * SPANS_OF_REQUEST + scored * SPANS_OF_RECORD,
        "scores on spans": scored * METRICS,
    }
    seen = {
        "a helper process at work": has_helper,
        "failed requests": done["errors"],
        "dropped": stats.get("dropped", {}),
        "errors": stats.get("errors", {}),
        "scored": stats.get("scored", 0),
        "published": stats.get("published", 0),
        "in the stream": counts["in the stream"],
        "spans": counts["spans"],
        "scores on spans": counts["scores"],
    }
    wrong = [f"{name}: {seen[name]} instead of {value}" for name, value in expected.items() if seen[name] != value]
    if wrong:
        raise RuntimeError(f"{mode}: {'; '.join(wrong)}")


def percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def summary(mode: str, pairs: Sequence[Pair]) -> Summary:
    offs, ons = [pair.off for pair in pairs], [pair.on for pair in pairs]
    ratios = [pair.ratio for pair in pairs]
    first, ratio, third = statistics.quantiles(ratios * 2 if len(ratios) == 1 else ratios, n=4, method="inclusive")
    return Summary(
        mode=mode,
        pairs=len(pairs),
        off_p50_ms=median(offs, "p50_ms"),
        off_p99_ms=median(offs, "p99_ms"),
        p50_ms=median(ons, "p50_ms"),
        p99_ms=median(ons, "p99_ms"),
        ratio=ratio,
        quartiles=(first, third),
        machine_share=median(ons, "machine_share"),
        off_machine_share=median(offs, "machine_share"),
        foreign_share=median(ons, "foreign_share"),
        load_share=median(ons, "load_share"),
        sent_late_p99_ms=median(ons, "sent_late_p99_ms"),
        scored=sum(on.scored for on in ons),
        published=sum(on.published for on in ons),
        spans=sum(on.spans for on in ons),
    )


def median(runs: Sequence[Run], name: str) -> float:
    return float(statistics.median(getattr(run, name) for run in runs))


def show(summaries: Sequence[Summary], load: Load) -> None:
    table = Table(
        title=f"{load.rate:g} requests a second on {os.cpu_count()} processors: latency without scoring and with it, ms"
    )
    headings = ("mode", "pairs", "p50", "p99", "p99 ratio", "target", "machine", "of it others")
    for heading in (*headings, "scored", "published", "spans"):
        table.add_column(heading, justify="left" if heading == "mode" else "right")
    for one in summaries:
        table.add_row(
            one.mode,
            str(one.pairs),
            f"{one.off_p50_ms:.1f} … {one.p50_ms:.1f}",
            f"{one.off_p99_ms:.1f} … {one.p99_ms:.1f}",
            f"{one.ratio:.3f} ({one.quartiles[0]:.3f} … {one.quartiles[1]:.3f})",
            f"{TARGETS[one.mode]:.2f}" if one.mode in TARGETS else "",
            f"{one.off_machine_share:.0%} … {one.machine_share:.0%}",
            f"{one.foreign_share:.0%}",
            str(one.scored),
            str(one.published),
            str(one.spans),
        )
    Console(width=None if sys.stdout.isatty() else 150).print(table)
    for one in summaries:
        print(
            f"{one.mode}: the load itself took {one.load_share:.1%}; it sent {one.sent_late_p99_ms:.1f} ms late (p99)"
        )


def report(summaries: Sequence[Summary], kept: Sequence[Pair], left_out: Sequence[Pair], load: Load) -> str:
    machine = {"processors": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}
    return json.dumps(
        {
            "machine": machine,
            "load": asdict(load),
            "targets": TARGETS,
            "summaries": [asdict(one) for one in summaries],
            "pairs": [asdict(pair) for pair in kept],
            "left_out": [asdict(pair) for pair in left_out],
        },
        indent=2,
    )


def arguments_of_program() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What scoring does to the slowest answers of a web application.")
    parser.add_argument(
        "--quick", action="store_true", help="a short pair of two modes: whether it runs, not what it costs"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument("--mode", action="append", choices=MODES[1:], help="only this one; may be given several times")
    parser.add_argument("--rate", type=float, default=100.0, help="requests a second")
    parser.add_argument("--pairs", type=int, default=10, help="of each mode")
    parser.add_argument("--seconds", type=float, default=20.0, help="of load that are measured in each run")
    parser.add_argument("--max-foreign", type=float, default=0.1, metavar="SHARE", help="of the machine, 0..1")
    arguments = parser.parse_args()
    if not processor_time.is_measurable():
        parser.error("processor times are read from /proc, which this system does not have")
    arguments.warm_up = 4.0
    if arguments.quick:
        arguments.warm_up, arguments.seconds, arguments.pairs, arguments.max_foreign = 0.5, 1.5, 1, 1.0
    arguments.modes = arguments.mode or (["helper"] if arguments.quick else list(MODES[1:]))
    if PUBLISHING in arguments.modes and brokers.server_program() is None:
        parser.error(f"the mode {PUBLISHING} needs nats-server (Debian and Ubuntu: apt install nats-server)")
    return arguments


def main() -> None:
    end_on_sigterm()
    arguments = arguments_of_program()
    load = Load(rate=arguments.rate, warm_up=arguments.warm_up, seconds=arguments.seconds)
    kept: list[Pair] = []
    left_out: list[Pair] = []
    for pair in measured_pairs(arguments.modes, load, pairs=arguments.pairs, max_foreign=arguments.max_foreign):
        is_kept = pair.foreign_share <= arguments.max_foreign
        (kept if is_kept else left_out).append(pair)
        print(
            f"{pair.on.mode:12} p99 {pair.off.p99_ms:6.1f} … {pair.on.p99_ms:6.1f} ms  ratio {pair.ratio:.3f}"
            f"  others {pair.foreign_share:4.0%}{'' if is_kept else '  left out'}",
            file=sys.stderr,
            flush=True,
        )
    by_mode = {mode: [pair for pair in kept if pair.on.mode == mode] for mode in arguments.modes}
    summaries = [summary(mode, pairs) for mode, pairs in by_mode.items() if pairs]
    show(summaries, load)
    if arguments.json:
        arguments.json.write_text(report(summaries, kept, left_out, load) + "\n")
    if len(kept) < arguments.pairs * len(arguments.modes):
        sys.exit(f"other programs kept the machine too busy: {len(left_out)} pairs were left out")


if __name__ == "__main__":
    main()
