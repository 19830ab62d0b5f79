from __future__ import annotations

import threading
from importlib.metadata import entry_points

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanContext, TraceFlags
from waiting import until

from ragspan.engine import ScoringEngine
from ragspan.records import RagRecord
from ragspan.telemetry import OTelEmitter
from ragspan.tools.spans import RetryingOTLPSpanExporter, RetryingSpanExporter

PATIENCE_MILLIS = 60_000


class FailingAtFirst(SpanExporter):
    """Fails a number of times, and then takes everything but spans that are called poison."""

    def __init__(self, failures=0):
        self.failures = failures
        self.tries = []
        self.taken = []

    def export(self, spans):
        self.tries.append([span.name for span in spans])
        if self.failures or "poison" in self.tries[-1]:
            self.failures = max(0, self.failures - 1)
            return SpanExportResult.FAILURE
        self.taken += self.tries[-1]
        return SpanExportResult.SUCCESS


class Hanging(SpanExporter):
    """Never answers before it is shut down."""

    def __init__(self):
        self.entered = threading.Event()
        self._let_go = threading.Event()

    def export(self, spans):
        self.entered.set()
        self._let_go.wait()
        return SpanExportResult.FAILURE

    def shutdown(self):
        self._let_go.set()

    @property
    def is_shut_down(self):
        return self._let_go.is_set()


def a_span(name, number=1, *, events=(), **attributes):
    context = SpanContext(trace_id=1, span_id=number, is_remote=False, trace_flags=TraceFlags(1))
    return ReadableSpan(name=name, context=context, attributes=attributes, events=events)


def spans(*names):
    return [a_span(name, number) for number, name in enumerate(names, start=1)]


@pytest.fixture
def make_exporter():
    made = []

    def make(inner, **options):
        made.append(RetryingSpanExporter(inner, **options))
        return made[-1]

    yield make
    for exporter in made:
        exporter.shutdown(0)


def test_what_could_not_be_sent_is_sent_later(make_exporter):
    inner = FailingAtFirst(failures=2)
    exporter = make_exporter(inner)

    assert exporter.export(spans("one", "two")) is SpanExportResult.SUCCESS

    assert exporter.force_flush(PATIENCE_MILLIS)
    assert sorted(inner.taken) == ["one", "two"]
    assert len(inner.tries) > 2
    assert exporter.stats().delivered == 2


def test_an_exporter_that_hangs_delays_neither_exports_nor_the_shutdown(make_exporter):
    inner = Hanging()
    exporter = make_exporter(inner, exit_timeout=0.0)

    exporter.export(spans("one"))
    assert inner.entered.wait(30)
    exporter.export([a_span("two", 2)])

    assert not exporter.force_flush(0)
    assert exporter.stats().waiting == 2
    exporter.shutdown()
    assert exporter.export(spans("three")) is SpanExportResult.FAILURE
    until(lambda: exporter.stats().dropped == {"shutdown": 3}, what="the end of the try that was under way")
    assert inner.is_shut_down


def test_flushing_an_engine_reaches_what_waits_in_the_exporter(make_exporter):
    inner = FailingAtFirst(failures=1)
    exporter = make_exporter(inner)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    engine = ScoringEngine(metrics=[], emitters=[OTelEmitter(tracer_provider=provider)])
    engine.submit(RagRecord(question="Why?", contexts=["Because."], response="Because.", name="reasons"))

    assert engine.flush(30)

    assert inner.taken == ["invoke_workflow reasons"]
    engine.shutdown(30)
    provider.shutdown()


def test_an_engine_that_ends_says_how_many_spans_the_exporter_still_keeps(make_exporter, caplog):
    inner = Hanging()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(make_exporter(inner, exit_timeout=0.0), schedule_delay_millis=1))
    engine = ScoringEngine(metrics=[], emitters=[OTelEmitter(tracer_provider=provider)])
    engine.submit(RagRecord(question="Why?", contexts=["Because."], response="Because.", name="reasons"))
    assert inner.entered.wait(30)

    engine.shutdown(0.1)

    assert "1 span not sent yet: lost if the process ends now" in caplog.messages
    provider.shutdown()


def test_it_can_be_chosen_by_name_and_sends_where_the_standard_variables_say(make_otlp_listener, monkeypatch):
    listener = make_otlp_listener()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", listener.url)
    (entry,) = entry_points(group="opentelemetry_traces_exporter", name="ragspan_otlp")
    assert entry.load() is RetryingOTLPSpanExporter
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(entry.load()()))

    provider.get_tracer("test").start_span("one").end()
    provider.shutdown()

    assert [span.name for span in listener.spans] == ["one"]
