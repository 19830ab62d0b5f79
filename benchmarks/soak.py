"""Minutes of mixed traffic in which everything else goes wrong.

    python benchmarks/soak.py [--quick] [--minutes 5] [--rate 30] [--max-growth 16] [--seed 1] [--json FILE]

LangChain chains and LlamaIndex engines answer, stream, fail, are abandoned and cancelled, in threads and in an event
loop, beside answers of plain Python code. Two metrics ask a language model's endpoint that is slow, refuses, hangs and
hangs up at random; the other two use the embedded judge, whose helper process is killed now and then. The endpoint of
the spans goes down and comes back, the process forks in the middle of its work, and bursts overrun the queue.

All the while the counts have to add up. At the end every answer that the programs gave must have been submitted, each
must have ended in one way, and the handlers must follow nothing any more; memory may grow by `--max-growth` MiB from
the third quarter of the time to the last. Otherwise the exit status is 1. Needs Linux, for the figures about processes.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from serving import processor_time
from serving.processes import HOST, end_on_sigterm, running
from soaking.faults import GOOD_OUTCOMES, Forks, Saboteur, SpansEndpoint, kill_helper
from soaking.programs import asynchronous_programs, burst, synchronous_programs
from soaking.traffic import Tally, Traffic
from soaking.vitals import ConservationWatch, Sample, growth, is_conserved

from ragspan import ScoringEngine
from ragspan.engine import EngineStats, ShutdownReport
from ragspan.judges import OpenAIJudge, OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan_langchain import RagspanCallbackHandler as ChainHandler
from ragspan_llama_index import RagspanCallbackHandler as EngineHandler

ROWS = 20
QUICK_SECONDS = 8.0
SETTLING = 60.0
"""Seconds that the engine has for what is left."""
EXPORT_TIMEOUT = 2.0
FAULT_INTERVAL, QUICK_FAULT_INTERVAL = 5.0, 1.2
"""Seconds. A helper that dies five times a minute is given up: it must not be killed that often."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """How long, how much, and what is allowed."""

    seconds: float
    rate: float
    """Programs a second."""
    seed: int
    fault_interval: float
    max_growth_mib: float | None
    """None where the time is too short to tell growth from warming up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What was seen."""

    samples: list[Sample]
    looks: int
    violations: list[EngineStats]
    answers: int
    runs: Mapping[str, int]
    troubles: Mapping[str, int]
    faults: Mapping[str, int]
    forks: Mapping[str, int]
    """What became of the forked processes."""
    judge_fates: Mapping[str, int]
    log_lines: Mapping[str, int]
    """Warnings and errors, by logger."""
    spans_received: int
    stats: EngineStats
    shutdown: ShutdownReport
    open_runs: int
    open_spans: int


class LogCounter(logging.Handler):
    """Counts lines in place of printing them."""

    def __init__(self) -> None:
        super().__init__(level=logging.WARNING)
        self.lines: Counter[str] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        self.lines[record.name] += 1


@dataclass(kw_only=True, slots=True)
class Subject:
    """The application that is put under stress: an engine, its handlers, and what they say."""

    engine: ScoringEngine
    chains: ChainHandler
    engines: EngineHandler
    log: LogCounter = field(default_factory=LogCounter)

    def sample(self, tally: Tally, seconds: float) -> Sample:
        return Sample.now(
            self.engine.stats(),
            seconds=seconds,
            answers=tally.answers,
            open_runs=self.chains.open_runs,
            open_spans=self.engines.open_spans,
        )

    def settle(self) -> ShutdownReport:
        """Let it finish what is left, and send it out."""
        gc.collect()  # abandoned streams may be part of a cycle
        self.engine.flush(SETTLING)
        report = self.engine.shutdown(SETTLING)
        for provider in (trace.get_tracer_provider(), metrics.get_meter_provider()):
            assert isinstance(provider, (TracerProvider, MeterProvider))
            provider.shutdown()
        return report


def subject(judge_port: int, spans_port: int) -> Subject:
    _export_to(f"http://{HOST}:{spans_port}")
    model = OpenAIJudge(
        "drawn", base_url=f"http://{HOST}:{judge_port}/v1", api_key="none-needed", timeout=2.0, max_retries=1
    )
    embedded = OverlapJudge()
    engine = ScoringEngine(
        metrics=[
            ContextAdherence(model),
            Completeness(model),
            ContextUtilization(embedded),
            Faithfulness(embedded),
        ],
        emitters=[OTelEmitter(score_wait=2.0)],
        queue_size=256,
        queue_bytes=4 * 1024 * 1024,
        concurrency=64,
        metric_timeout=5.0,
        judging="helper",
    )
    made = Subject(engine=engine, chains=ChainHandler(sink=engine), engines=EngineHandler(sink=engine))
    logging.getLogger().addHandler(made.log)
    return made


def _export_to(endpoint: str) -> None:
    tracer_provider = TracerProvider()
    spans = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=EXPORT_TIMEOUT)
    tracer_provider.add_span_processor(BatchSpanProcessor(spans, schedule_delay_millis=500))
    trace.set_tracer_provider(tracer_provider)
    measurements = OTLPMetricExporter(f"{endpoint}/v1/metrics", timeout=EXPORT_TIMEOUT)
    reader = PeriodicExportingMetricReader(measurements, export_interval_millis=2000)
    metrics.set_meter_provider(MeterProvider([reader]))


def soak(settings: Settings) -> Result:
    with closing(SpansEndpoint()) as spans, running("soaking.judge_endpoint", "--seed", settings.seed) as judge:
        under_test = subject(judge.port, spans.port)
        engine = under_test.engine
        traffic = Traffic(
            synchronous_programs(engine, under_test.chains),
            asynchronous_programs(under_test.chains),
            rate=settings.rate,
            seed=settings.seed,
        )
        forks = Forks(engine)
        saboteur = Saboteur(
            [spans.toggle, forks.begin, lambda: overrun(traffic, engine), kill_helper],
            interval=settings.fault_interval,
        )
        watch = ConservationWatch(engine.stats)
        with watch:
            with traffic, saboteur:
                samples = watched(under_test, traffic.tally, settings.seconds)
            spans.bring_back()
            shutdown = under_test.settle()
        children = forks.outcomes()
        fates = judge.get("/counts")
    return Result(
        samples=samples,
        looks=watch.looks,
        violations=watch.violations[:10],
        answers=traffic.tally.answers,
        runs=dict(traffic.tally.runs),
        troubles=dict(traffic.tally.troubles),
        faults=dict(saboteur.done),
        forks=dict(children),
        judge_fates=fates,
        log_lines=dict(under_test.log.lines),
        spans_received=spans.spans,
        stats=engine.stats(),
        shutdown=shutdown,
        open_runs=under_test.chains.open_runs,
        open_spans=under_test.engines.open_spans,
    )


def overrun(traffic: Traffic, engine: ScoringEngine) -> str:
    traffic.run(burst(engine))
    return "burst"


def watched(under_test: Subject, tally: Tally, seconds: float) -> list[Sample]:
    """Samples of every second; a row is printed from time to time."""
    samples: list[Sample] = []
    began = time.monotonic()
    print(Sample.headings())
    while (elapsed := time.monotonic() - began) < seconds:
        samples.append(under_test.sample(tally, elapsed))
        if len(samples) % max(1, round(seconds / ROWS)) == 1 or seconds <= ROWS:
            print(samples[-1].row(), flush=True)
        time.sleep(max(0.0, began + len(samples) - time.monotonic()))
    return samples


def verdict(result: Result, settings: Settings) -> dict[str, bool]:
    """What has to hold."""
    stats = result.stats
    checks = {
        "the counts add up at every look": result.looks > 0 and not result.violations,
        "the counts add up at the end": is_conserved(stats) and stats.queued == stats.in_flight == 0,
        "every answer was submitted": stats.submitted == result.answers > 0,
        "most answers were scored": stats.finished > sum(stats.dropped.values()),
        "the handlers follow nothing any more": result.open_runs == result.open_spans == 0,
        "no program met an error that is not its own": not result.troubles,
        "forks start afresh": result.forks.keys() <= GOOD_OUTCOMES,
    }
    if settings.max_growth_mib is not None:
        checks["memory stays within its bound"] = growth(result.samples, "rss_mib") <= settings.max_growth_mib
    return checks


def show(result: Result, checks: Mapping[str, bool]) -> None:
    stats = result.stats
    print(
        f"\nanswers {result.answers}, submitted {stats.submitted}, scored {stats.finished}, spans {result.spans_received}"
    )
    for title, counts in (
        ("dropped", stats.dropped),
        ("errors", stats.errors),
        ("faults", result.faults),
        ("forks", result.forks),
        ("judge", result.judge_fates),
        ("log lines", result.log_lines),
        ("troubles", result.troubles),
    ):
        print(f"{title:10} {', '.join(f'{name} {count}' for name, count in sorted(counts.items())) or '-'}")
    for name, unit in (("rss_mib", "MiB"), ("blocks", "blocks of Python's memory")):
        print(f"growth in the second half: {growth(result.samples, name):+.1f} {unit}")
    for name, holds in checks.items():
        print(f"{'ok  ' if holds else 'FAIL'}  {name}")


def report(result: Result, settings: Settings, checks: Mapping[str, bool]) -> dict[str, Any]:
    grown = {name: growth(result.samples, name) for name in ("rss_mib", "blocks")}
    seen = asdict(result) | {"stats": result.stats._asdict()}
    return {"settings": asdict(settings), "checks": checks, "growth": grown, **seen}


def main() -> None:
    end_on_sigterm()
    parser = argparse.ArgumentParser(description="Minutes of mixed traffic in which everything else goes wrong.")
    parser.add_argument("--quick", action="store_true", help="some seconds only, too short to judge memory by")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was seen there as well")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rate", type=float, default=30.0, help="programs a second")
    parser.add_argument("--max-growth", type=float, default=16.0, metavar="MIB", help="of memory in the second half")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not processor_time.is_measurable():
        parser.error("the figures about processes are read from /proc, which this system does not have")
    settings = Settings(
        seconds=QUICK_SECONDS if arguments.quick else arguments.minutes * 60,
        rate=arguments.rate,
        seed=arguments.seed,
        fault_interval=QUICK_FAULT_INTERVAL if arguments.quick else FAULT_INTERVAL,
        max_growth_mib=None if arguments.quick else arguments.max_growth,
    )
    result = soak(settings)
    checks = verdict(result, settings)
    show(result, checks)
    if arguments.json:
        arguments.json.write_text(json.dumps(report(result, settings, checks), indent=2) + "\n")
    sys.exit(0 if all(checks.values()) else 1)


if __name__ == "__main__":
    main()
