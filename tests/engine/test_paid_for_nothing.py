"""No judge is paid for a score that nothing would hold."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from ragspan import RagRecord, Score, ScoringEngine
from ragspan.records import SpanAnchor
from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.emitter_protocols import ScoreEmitter
from ragspan.tools.writer import ScoreWriter

try:
    from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter as LogsInMemory
except ImportError:  # before 1.39
    from opentelemetry.sdk._logs.export import InMemoryLogExporter as LogsInMemory

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


class NamesSpan(ScoreEmitter):
    """An emitter of one's own, that names a span of the application's and keeps nothing itself."""

    def __init__(self, span):
        self.span = span

    def start(self, record):
        return SimpleNamespace(
            span=self.span,
            retrieval_spans=(),
            holds_scores=False,
            finish=lambda *_: None,
            late=lambda *_: None,
            abandon=lambda *_: None,
        )


@pytest.mark.parametrize("is_sampled", [True, False])
def test_a_writer_to_a_span_of_others_has_scores_where_that_span_is_sampled(is_sampled):
    span = SpanAnchor(trace_id=1, span_id=2, trace_flags=int(is_sampled))

    assert asked_by([NamesSpan(span), Writer()], score_unsampled=True) == int(is_sampled)


def asked_by(emitters, **options):
    metric = PaidMetric()
    with ScoringEngine(metrics=[metric], emitters=emitters, judging="thread", **options) as engine:
        engine.submit(RECORD)
        engine.flush(60)  # False of a provider that was shut down
        assert engine.stats().finished == 1
    return metric.judge.asked


def exporting(processor=SimpleSpanProcessor, **options):
    provider = TracerProvider(shutdown_on_exit=False, **options)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(processor(exporter))
    return provider, exporter


def metered():
    return MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)


def with_logs(processor):
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(processor)
    return provider


def shut_down(provider):
    provider.shutdown()
    return provider


@pytest.mark.filterwarnings("ignore:A shutdown `MeterProvider`")
@pytest.mark.parametrize(
    "emitters",
    [
        list,
        lambda: [OTelEmitter()],
        lambda: [OTelEmitter(tracer_provider=TracerProvider(shutdown_on_exit=False))],
        lambda: [OTelEmitter(meter_provider=MeterProvider(shutdown_on_exit=False))],
        lambda: [OTelEmitter(logger_provider=LoggerProvider(shutdown_on_exit=False))],
        lambda: [OTelEmitter(), Writer()],
        lambda: [OTelEmitter(tracer_provider=exporting(sampler=ALWAYS_OFF)[0]), Writer()],
        lambda: [OTelEmitter(meter_provider=shut_down(metered()))],
        lambda: [OTelEmitter(logger_provider=shut_down(with_logs(SimpleLogRecordProcessor(LogsInMemory()))))],
        lambda: [OTelEmitter(logger_provider=shut_down(with_logs(BatchLogRecordProcessor(LogsInMemory()))))],
    ],
    ids=[
        *("no emitter", "no provider", "no exporter", "no reader", "no processor of logs", "a writer without a span"),
        "a writer whose span is sampled out",
        *("metrics were shut down", "logs were shut down", "batches of logs were shut down"),
    ],
)
def test_where_nothing_holds_the_score_nobody_is_asked(emitters):
    assert asked_by(emitters()) == 0


def test_with_the_sdk_switched_off_nobody_is_asked_and_that_is_said(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")

    assert asked_by([OTelEmitter(tracer_provider=exporting()[0])]) == 0
    assert "OTEL_SDK_DISABLED is true, so there are no spans for scores" in caplog.text
    assert "configure()" not in caplog.text


@pytest.mark.parametrize(
    "emitters",
    [
        lambda: [OTelEmitter(tracer_provider=exporting()[0])],
        lambda: [OTelEmitter(meter_provider=metered())],
        lambda: [OTelEmitter(logger_provider=with_logs(SimpleLogRecordProcessor(LogsInMemory())))],
        lambda: [OTelEmitter(logger_provider=with_logs(BatchLogRecordProcessor(LogsInMemory())))],
        lambda: [Kept()],
        lambda: [OTelEmitter(tracer_provider=exporting()[0]), Writer()],
    ],
    ids=["spans", "metrics", "logs", "batches of logs", "an emitter of one's own", "a writer with a span"],
)
def test_where_one_of_the_emitters_holds_it_the_judge_is_asked(emitters):
    assert asked_by(emitters()) == 1


async def test_who_awaits_a_record_gets_it_scored():
    metric = PaidMetric()
    with ScoringEngine(metrics=[metric], judging="thread") as engine:
        scored = await engine.score(RECORD)

    assert scored.outcomes["paid"] == Score(value=1.0)


def test_an_application_that_shuts_its_provider_down_gets_its_spans_first():
    provider, exporter = exporting(BatchSpanProcessor)
    metric = PaidMetric()
    with ScoringEngine(metrics=[metric], emitters=[OTelEmitter(tracer_provider=provider)], judging="thread") as engine:
        engine.submit(RECORD)
        provider.shutdown()

        (span,) = exporter.get_finished_spans()
        assert span.attributes["ragspan.score.paid"] == 1.0
        engine.submit(RECORD)
    assert engine.stats().finished == 2
    assert metric.judge.asked == 1


def test_engines_share_the_time_that_the_end_of_their_provider_waits():
    class Hanging:
        exit_timeout = 0.05

        def flush(self, timeout):
            given.append(timeout)
            return threading.Event().wait(timeout)

    given = []
    engines = [Hanging() for _ in range(3)]
    provider, _ = exporting()
    emitter = OTelEmitter(tracer_provider=provider)
    for engine in engines:
        emitter.is_used_by(engine)

    provider.shutdown()

    assert len(given) == 3
    assert sum(given) < 2 * Hanging.exit_timeout


def test_what_cannot_be_scored_before_the_provider_ends_is_said_once(caplog):
    provider, _ = exporting(BatchSpanProcessor)

    class Never(PaidMetric):
        async def score(self, record):
            import asyncio

            await asyncio.Event().wait()

    engine = ScoringEngine(
        metrics=[Never()], emitters=[OTelEmitter(tracer_provider=provider)], judging="thread", exit_timeout=0.2
    )
    engine.submit(RECORD)
    provider.shutdown()
    provider.shutdown()
    engine.shutdown(0.2)

    assert [line for line in caplog.messages if "TracerProvider was shut down before" in line] == [
        "the TracerProvider was shut down before the scores of all answers were there: shut ragspan down first, or call flush()"
    ]


def test_ragspans_writers_say_that_they_need_a_span():
    assert ScoreWriter.__dataclass_fields__["needs_span"].default is True
