from __future__ import annotations

from functools import partial

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from servers.http import LocalHttp

from ragspan.telemetry import providers
from ragspan.telemetry.providers import exporters, make_exporter
from ragspan.throttled_log import ThrottledLog


@pytest.fixture(autouse=True)
def fresh_log(monkeypatch):
    monkeypatch.setattr(providers, "_log", ThrottledLog())


@pytest.fixture
def nobody(monkeypatch):
    """An address that nobody listens at, for exporters that try twice."""
    silent = LocalHttp(lambda _: (200, {}, b""), listening=False)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", silent.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3")
    yield silent.url
    silent.stop()


def export_spans(exporter, number=1):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for _ in range(number):
        provider.get_tracer("test").start_span("answer", attributes={"ragspan.answer.status": "complete"}).end()
    provider.shutdown()


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_an_endpoint_that_cannot_be_reached_is_one_line_however_often_it_is_tried_and_one_with_all_at_the_end(
    nobody, protocol, monkeypatch, caplog
):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)

    export_spans(*exporters("traces"), number=2)

    line, last = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"spans cannot be sent to {nobody}: no server listens there: connection refused; ")
    assert line.endswith("; the spans of 1 answer are lost so far")
    assert last == f"the spans of 2 answers could not be sent to {nobody}"


def test_where_somebody_else_tries_again_nothing_is_called_lost(nobody, caplog):
    export_spans(*exporters("traces", partial(make_exporter, tries_once=False)))

    assert [record for record in caplog.messages if nobody in record]
    assert "lost" not in caplog.text


def test_an_exporter_of_the_applications_own_logs_as_ever(nobody, caplog):
    export_spans(*exporters("traces"))
    caplog.clear()

    export_spans(OTLPSpanExporter(endpoint=f"{nobody}/v1/traces", timeout=3))

    assert {record.name.partition(".")[0] for record in caplog.records} == {"opentelemetry"}
