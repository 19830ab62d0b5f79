"""OTLP over HTTP, by a real server."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import os

import httpx
import pytest
from google.rpc.status_pb2 import Status
from http_senders import PROTOBUF, post, until
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from ragspan_receiver import receiver as taking
from ragspan_receiver.traces import BufferLimits

TRACE = bytes(range(1, 17))
QUICK = BufferLimits(quiet=0.05, deadline=0.1)
SLOW = BufferLimits()
LARGE = taking.MAX_BODY + 1
KINDS = "the content type is application/x-protobuf or application/json"


def status_in(response):
    status = Status()
    status.ParseFromString(response.content)
    return status


@pytest.mark.parametrize("compression", list(Compression))
async def test_what_the_exporter_of_opentelemetry_sends_is_scored_under_the_answers_span(serving, compression):
    async with serving(QUICK) as served:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(served.url, compression=compression)))

        def trace():
            texts = {"openinference.span.kind": "CHAIN", "input.value": "Who?", "output.value": "Ada."}
            with provider.get_tracer("openinference.instrumentation.langchain").start_as_current_span(
                "ask", attributes=texts
            ) as span:
                return span.get_span_context()

        context = await asyncio.to_thread(trace)
        record = await served.record()

    assert (record.question, record.response) == ("Who?", "Ada.")
    assert (record.parent.trace_id, record.parent.span_id, record.parent.sampled) == (
        context.trace_id,
        context.span_id,
        True,
    )
    assert record.record_id == f"{context.trace_id:032x}{context.span_id:016x}"


async def test_a_request_in_json_is_answered_in_json(serving):
    span = {"traceId": TRACE.hex(), "spanId": "12" * 8, "name": "ask", "attributes": [
        {"key": "openinference.span.kind", "value": {"stringValue": "CHAIN"}},
        {"key": "input.value", "value": {"stringValue": "Who?"}},
        {"key": "output.value", "value": {"stringValue": "Ada."}},
    ]}  # fmt: skip
    scope = {"name": "openinference.instrumentation.langchain"}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": scope, "spans": [span]}]}]}).encode()
    async with serving(QUICK) as served:
        response = await post(served, body, {"content-type": "application/json; charset=utf-8"})
        record = await served.record()

    assert (response.status_code, response.json()) == (200, {})
    assert (record.question, record.parent.span_id) == ("Who?", 0x1212121212121212)


async def test_spans_that_are_rejected_are_counted_in_the_answer(serving, answer, span, request_with):
    async with serving(SLOW) as served:
        whole = await post(served, request_with(answer(TRACE)).SerializeToString())
        partial = await post(served, request_with(answer(TRACE), span(b"none")).SerializeToString())

    assert (whole.status_code, whole.content) == (200, b"")
    assert (partial.status_code, partial.headers["content-type"]) == (200, "application/x-protobuf")
    told = ExportTraceServiceResponse.FromString(partial.content).partial_success
    why = "these spans have no valid id, or their traces are too large"
    assert (told.rejected_spans, told.error_message) == (1, why)


@pytest.mark.parametrize(
    ("content", "headers", "code", "message"),
    [
        (b"hello", PROTOBUF, 400, "the body is not an ExportTraceServiceRequest"),
        (b"hello", {**PROTOBUF, "content-encoding": "gzip"}, 400, "the body is not packed as it says"),
        (b"", {"content-type": "text/plain"}, 415, KINDS),
        (b"", {}, 415, KINDS),
        (b"", {**PROTOBUF, "content-encoding": "br"}, 415, "the content encoding is gzip, deflate or none"),
        (bytes(LARGE), PROTOBUF, 413, "a body may have 16777216 bytes"),
        (
            gzip.compress(bytes(LARGE)),
            {**PROTOBUF, "content-encoding": "gzip"},
            413,
            "this body may unpack to 16777216 bytes",
        ),
    ],
    ids=["no protobuf", "no gzip", "text", "no type", "brotli", "too large", "bomb"],
)
async def test_a_request_that_cannot_be_taken_is_answered_as_otlp_says(serving, content, headers, code, message):
    async with serving(SLOW) as served:
        response = await post(served, content, headers)

        assert (response.status_code, status_in(response).message) == (code, message)
        assert (await post(served, b"")).status_code == 200  # and it goes on
        served.address += "/elsewhere"
        assert status_in(await post(served, b"")).message == "there are POST /v1/traces, /healthz and /readyz"


async def test_a_full_receiver_asks_to_try_again_and_says_so_to_probes_and_in_the_log(
    serving, answer, request_with, caplog
):
    with caplog.at_level(logging.WARNING):
        async with serving(BufferLimits(max_traces=1, quiet=600)) as served:
            await post(served, request_with(answer(TRACE)).SerializeToString())
            refused = await post(served, request_with(answer(os.urandom(16))).SerializeToString())
            await until(lambda: caplog.text)
            async with httpx.AsyncClient(base_url=f"http://{served.address}") as client:
                pages = [await client.get(path) for path in ("/healthz", "/readyz")]

    assert [(one.status_code, one.headers.get("retry-after")) for one in (refused, *pages)] == [
        *((503, "2"), (200, None), (503, "2"))
    ]
    shown = {"ready": False, "bytes_of_requests": 0, **served.receiver.figures()}
    assert [page.json() for page in pages] == [shown, shown]
    assert served.receiver.traces.counts["requests.refused"] == 1
    assert caplog.messages == ["the receiver is full: 1 request refused so far, and their senders asked to try again"]


async def test_the_counts_are_metrics(serving, answer, span, request_with):
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    async with serving(SLOW) as served:
        served.receiver.count_with(provider)
        await post(served, request_with(answer(TRACE), span(b"none")).SerializeToString())
        (of_resource,) = reader.get_metrics_data().resource_metrics

    told = {
        (metric.name, metric.unit, point.attributes["ragspan.result"]): point.value
        for metric in of_resource.scope_metrics[0].metrics
        for point in metric.data.data_points
        if point.value
    }
    assert told == {
        ("ragspan.receiver.requests", "{request}", "accepted"): 1,
        ("ragspan.receiver.spans", "{span}", "accepted"): 1,
        ("ragspan.receiver.spans", "{span}", "rejected"): 1,
    }
    provider.shutdown()
