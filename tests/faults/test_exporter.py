"""An OTLP endpoint in trouble: the real exporter and batch processor, and what the application notices."""

from __future__ import annotations

import logging
import statistics
import threading
import time

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from ragspan.telemetry import OTelEmitter

RECORDS = 300

TROUBLES = {
    "down": {"listening": False},
    "slow": {},
    "overloaded": {"status": 503},
    "limiting rates": {"status": 429},
    "broken": {"status": 500},
    "refusing": {"status": 400},
    "unauthorised": {"status": 401},
}
GIVEN_UP_AT_ONCE = {"broken", "refusing", "unauthorised"}
"""What OTLP does not allow to try again: these spans are lost when the flush is over, and nothing is left to send."""


@pytest.fixture
def exporting_to():
    """Makes tracer providers as an application has them, with an exporter to this endpoint."""
    made = []

    def make(collector):
        exporter = OTLPSpanExporter(endpoint=f"{collector.endpoint}/v1/traces", timeout=60)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=20))
        made.append((collector, exporter, provider))
        return provider

    yield make
    for collector, exporter, provider in made:
        collector.answers.set()
        exporter.shutdown()  # it gives up trying again
        provider.shutdown()


@pytest.fixture
def in_trouble(make_collector, request):
    collector = make_collector(**TROUBLES[request.param])
    if request.param == "slow":
        collector.answers.clear()
    collector.trouble = request.param
    return collector


@pytest.mark.parametrize("in_trouble", TROUBLES, indirect=True)
def test_an_exporter_in_trouble_costs_neither_records_nor_time_of_the_application(
    fakes, make_engine, exporting_to, assert_conserved, in_trouble, caplog
):
    caplog.set_level(logging.DEBUG, logger="ragspan")
    counting = fakes.Counting(RECORDS)
    engine = make_engine(fakes.Constant(), emitters=[OTelEmitter(tracer_provider=exporting_to(in_trouble)), counting])
    taken = []
    for _ in range(RECORDS):
        record = fakes.a_record(question="the question of a user")
        began = time.perf_counter()
        engine.submit(record)
        taken.append(time.perf_counter() - began)
    assert counting.all_here.wait(fakes.PATIENCE)

    began = time.monotonic()
    flushed = engine.flush(0.5)
    elapsed = time.monotonic() - began

    assert elapsed < 0.5 + fakes.GRACE
    assert flushed is (in_trouble.trouble in GIVEN_UP_AT_ONCE)
    stats = assert_conserved(engine)
    assert (stats.scored, stats.dropped) == (RECORDS, {})
    assert statistics.median(taken) < 200e-6
    lines = [entry.getMessage() for entry in caplog.records if entry.name.startswith("ragspan")]
    assert len(lines) <= 1
    assert "the question of a user" not in caplog.text


@pytest.mark.parametrize("in_trouble", ["down", "slow", "overloaded"], indirect=True)
def test_shutdown_keeps_its_time_and_abandons_nothing_that_was_scored(
    fakes, make_engine, exporting_to, assert_conserved, in_trouble
):
    counting = fakes.Counting(1)
    engine = make_engine(fakes.Constant(), emitters=[OTelEmitter(tracer_provider=exporting_to(in_trouble)), counting])
    engine.submit(fakes.a_record())
    assert counting.all_here.wait(fakes.PATIENCE)

    began = time.monotonic()
    report = engine.shutdown(0.5)
    elapsed = time.monotonic() - began

    assert elapsed < 0.5 + fakes.GRACE
    assert report.abandoned == 0
    assert assert_conserved(engine).scored == 1


def test_a_slow_exporter_loses_nothing_once_it_answers(fakes, make_engine, exporting_to, make_collector):
    collector = make_collector()
    collector.answers.clear()
    engine = make_engine(fakes.Constant(), emitters=[OTelEmitter(tracer_provider=exporting_to(collector))])
    for _ in range(RECORDS):
        engine.submit(fakes.a_record())
    assert collector.asked.wait(fakes.PATIENCE)
    assert not engine.flush(0.1)

    collector.answers.set()

    assert engine.flush(fakes.PATIENCE)
    scores = [attributes["ragspan.score.constant"] for _, attributes in collector.received()]
    assert scores == [1.0] * RECORDS


def test_an_exporter_that_hangs_costs_a_bounded_number_of_threads(fakes, make_engine, exporting_to, make_collector):
    collector = make_collector()
    collector.answers.clear()
    engine = make_engine(fakes.Constant(), emitters=[OTelEmitter(tracer_provider=exporting_to(collector))])
    engine.submit(fakes.a_record())
    assert collector.asked.wait(fakes.PATIENCE)
    before = threading.active_count()

    for _ in range(30):
        assert not engine.flush(0)

    assert threading.active_count() <= before + 3  # two that ask the emitter, and one that flushes the provider
