"""An OTLP endpoint in trouble: the real exporter and batch processor, and what the application notices."""

from __future__ import annotations

import logging
import socket
import time

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from ragspan.telemetry import OTelEmitter

RECORDS = 300
TROUBLES = {"down": None, "slow": None, "overloaded": 503, "refusing": 400}
"""What the endpoint answers; one is not there, and one does not answer before the test is over."""
GIVEN_UP_AT_ONCE = {"refusing"}
"""What OTLP does not allow to try again: these spans are lost when the flush is over, and nothing is left to send."""


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
def in_trouble(request, monkeypatch, exporting_to):
    """The provider of an application whose endpoint has this trouble."""
    monkeypatch.setenv("NO_PROXY", "*")
    if request.param == "down":
        with socket.socket() as nobody_listens:
            nobody_listens.bind(("127.0.0.1", 0))
            yield exporting_to("http://127.0.0.1:{1}".format(*nobody_listens.getsockname()))
    else:
        endpoint = request.getfixturevalue("otlp_listener")
        endpoint.hangs() if request.param == "slow" else endpoint.answers(TROUBLES[request.param])
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
    assert (stats.finished, stats.dropped) == (RECORDS, {})
    lines = [entry.getMessage() for entry in caplog.records if entry.name.startswith("ragspan")]
    assert len(lines) <= 1
    assert "the question of a user" not in caplog.text
