"""An OTLP endpoint in trouble: the real exporter and batch processor, and what the application notices."""

from __future__ import annotations

import logging
import socket
import threading
import time

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from ragspan.telemetry import OTelEmitter

RECORDS = 300
TROUBLES = {"down": None, "slow": None, "overloaded": 503, "refusing": 400}
"""What the endpoint answers; one is not there, and one does not answer before it is let go."""
GIVEN_UP_AT_ONCE = {"refusing"}
"""What OTLP does not allow to try again: these spans are lost when the flush is over, and nothing is left to send."""


class SlowAnswers:
    """What an endpoint answers once it is let go."""

    def __init__(self):
        self.asked, self.released = threading.Event(), threading.Event()

    def __call__(self, _path):
        self.asked.set()
        self.released.wait(60)
        return 200, {"Content-Type": "application/x-protobuf"}, b""


@pytest.fixture
def exporting_to():
    """Makes tracer providers as an application has them, with an exporter to this endpoint."""
    made = []

    def make(url):
        exporter = OTLPSpanExporter(endpoint=f"{url}/v1/traces", timeout=60)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=20))
        made.append((exporter, provider))
        return provider

    yield make
    for exporter, provider in made:
        exporter.shutdown()  # it gives up trying again
        provider.shutdown()


@pytest.fixture
def slow(otlp_listener):
    otlp_listener.answer = SlowAnswers()
    yield otlp_listener
    otlp_listener.answer.released.set()


@pytest.fixture
def in_trouble(request, monkeypatch, exporting_to):
    """The provider of an application whose endpoint has this trouble."""
    monkeypatch.setenv("NO_PROXY", "*")
    if request.param == "slow":
        yield exporting_to(request.getfixturevalue("slow").url)
    elif request.param == "down":
        with socket.socket() as nobody_listens:
            nobody_listens.bind(("127.0.0.1", 0))
            yield exporting_to("http://127.0.0.1:{1}".format(*nobody_listens.getsockname()))
    else:
        endpoint = request.getfixturevalue("otlp_listener")
        endpoint.answers(TROUBLES[request.param])
        yield exporting_to(endpoint.url)


@pytest.mark.parametrize("in_trouble", TROUBLES, indirect=True)
def test_an_exporter_in_trouble_costs_neither_records_nor_time_of_the_application(
    fakes, make_engine, assert_conserved, in_trouble, request, caplog
):
    caplog.set_level(logging.DEBUG, logger="ragspan")
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[OTelEmitter(tracer_provider=in_trouble), emitter])
    for _ in range(RECORDS):
        engine.submit(fakes.a_record(question="the question of a user"))
    for _ in range(RECORDS):
        emitter.next()

    began = time.monotonic()
    flushed = engine.flush(0.5)
    elapsed = time.monotonic() - began

    assert elapsed < 0.5 + fakes.GRACE
    assert flushed is (request.node.callspec.params["in_trouble"] in GIVEN_UP_AT_ONCE)
    stats = assert_conserved(engine)
    assert (stats.scored, stats.dropped) == (RECORDS, {})
    lines = [entry.getMessage() for entry in caplog.records if entry.name.startswith("ragspan")]
    assert len(lines) <= 1
    assert "the question of a user" not in caplog.text


def test_a_slow_exporter_costs_a_bounded_number_of_threads_and_loses_nothing_once_it_answers(
    fakes, make_engine, exporting_to, slow
):
    engine = make_engine(fakes.ConstantMetric(), emitters=[OTelEmitter(tracer_provider=exporting_to(slow.url))])
    for _ in range(RECORDS):
        engine.submit(fakes.a_record())
    assert slow.answer.asked.wait(fakes.PATIENCE)
    assert not engine.flush(0.1)
    before = threading.active_count()
    for _ in range(30):
        assert not engine.flush(0)
    assert threading.active_count() <= before + 3  # two that ask the emitter, and one that flushes the provider

    slow.answer.released.set()

    assert engine.flush(fakes.PATIENCE)
    assert [span.attributes["ragspan.score.constant"] for span in slow.spans] == [1.0] * RECORDS
