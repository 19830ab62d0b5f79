"""No judge is paid for a score that nothing would hold."""

from __future__ import annotations

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from ragspan import RagRecord, Score, ScoringEngine
from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.emitter_protocols import ScoreEmitter

RECORD = RagRecord(question="q", contexts=["c"], response="r")


class Paid:
    """Counts what it is asked for; `price` makes it one that spends."""

    name = "paid"
    price = None

    def __init__(self):
        self.asked = 0


class PaidMetric:
    name = "paid"

    def __init__(self):
        self.judge = Paid()

    async def score(self, record):
        self.judge.asked += 1
        return Score(value=1.0)


class Kept(ScoreEmitter):
    def __init__(self):
        self.scored = []

    def emit(self, scored):
        self.scored.append(scored)


class Writer(Kept):
    needs_span = True


def exporting(**options):
    provider = TracerProvider(shutdown_on_exit=False, **options)
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    return provider


def metered():
    return MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)


def with_logs(processor):
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(processor)
    return provider


@pytest.mark.parametrize(
    ("emitters", "asked"),
    [
        (list, 0),
        (lambda: [OTelEmitter()], 0),
        (lambda: [OTelEmitter(tracer_provider=TracerProvider(shutdown_on_exit=False))], 0),
        (lambda: [OTelEmitter(), Writer()], 0),
        (lambda: [OTelEmitter(tracer_provider=exporting(sampler=ALWAYS_OFF)), Writer()], 0),
        (lambda: [OTelEmitter(tracer_provider=exporting())], 1),
        (lambda: [OTelEmitter(meter_provider=metered())], 1),
        (lambda: [OTelEmitter(logger_provider=with_logs(SimpleLogRecordProcessor(InMemoryLogRecordExporter())))], 1),
        (lambda: [Kept()], 1),
        (lambda: [OTelEmitter(tracer_provider=exporting()), Writer()], 1),
    ],
    ids=[
        *("no emitter", "no provider", "no exporter", "a writer without a span", "a writer whose span is sampled out"),
        *("spans", "metrics", "logs", "an emitter of one's own", "a writer with a span"),
    ],
)
def test_a_judge_is_asked_where_one_of_the_emitters_holds_the_score(emitters, asked):
    metric = PaidMetric()
    with ScoringEngine(metrics=[metric], emitters=emitters(), judging="thread") as engine:
        engine.submit(RECORD)
        assert engine.flush(60)

    assert metric.judge.asked == asked
