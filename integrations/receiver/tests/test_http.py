"""OTLP over HTTP, by a real server."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import os
import select
import socket
import threading
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from ragspan_receiver import intake, servers
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.traces import BufferLimits

TRACE = bytes(range(1, 17))
QUICK = BufferLimits(quiet=0.05, deadline=0.1)
SLOW = BufferLimits()
PROTOBUF = {"content-type": "application/x-protobuf"}
CUT_OFF = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\nContent-Length: 9\r\n\r\n1"


async def post(served, content, headers=PROTOBUF, **others):
    async with httpx.AsyncClient() as client:
        return await client.post(served.url, content=content, headers=headers, **others)


async def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0)

    await asyncio.wait_for(wait(), 60)


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


async def test_spans_of_one_trace_may_come_in_several_requests(serving, answer, span, request_with):
    async with serving(BufferLimits(quiet=0.3)) as served:
        root = answer(TRACE)
        model = span(TRACE, parent=root.span_id, attributes={"openinference.span.kind": "LLM"})
        await post(served, request_with(model).SerializeToString())
        await post(served, request_with(root).SerializeToString())
        record = await served.record()

    assert (record.question, len(record.generations)) == ("Who?", 1)


async def test_spans_that_are_rejected_are_counted_in_the_answer(serving, answer, span, request_with):
    async with serving(SLOW) as served:
        whole = await post(served, request_with(answer(TRACE)).SerializeToString())
        partial = await post(served, request_with(answer(TRACE), span(b"none")).SerializeToString())

    assert (whole.status_code, whole.content) == (200, b"")
    assert (partial.status_code, partial.headers["content-type"]) == (200, "application/x-protobuf")
    told = ExportTraceServiceResponse.FromString(partial.content).partial_success
    assert told.rejected_spans == 1
    assert "no valid id" in told.error_message


@pytest.mark.parametrize(
    ("content", "headers", "code"),
    [
        (b"hello", PROTOBUF, 400),
        (b"hello", {**PROTOBUF, "content-encoding": "gzip"}, 400),
        (b"", {"content-type": "text/plain"}, 415),
        (b"", {}, 415),
        (b"", {**PROTOBUF, "content-encoding": "br"}, 415),
        (bytes(intake.MAX_BODY + 1), PROTOBUF, 413),
        (gzip.compress(bytes(intake.MAX_BODY + 1)), {**PROTOBUF, "content-encoding": "gzip"}, 413),
    ],
    ids=["no protobuf", "no gzip", "text", "no type", "brotli", "too large", "bomb"],
)
async def test_a_request_that_cannot_be_taken_is_answered_as_otlp_says(serving, content, headers, code):
    async with serving(SLOW) as served:
        response = await post(served, content, headers)

        assert response.status_code == code
        assert status_in(response).message
        assert (await post(served, b"")).status_code == 200  # and it goes on


async def test_a_refusal_of_json_is_json(serving):
    async with serving(SLOW) as served:
        response = await post(served, b"{", {"content-type": "application/json"})

    assert response.status_code == 400
    assert "JSON" in response.json()["message"]


async def test_other_paths_and_methods_are_told_what_there_is(serving):
    async with serving(SLOW) as served, httpx.AsyncClient(base_url=f"http://{served.address}") as client:
        metrics = await client.post("/v1/metrics", headers=PROTOBUF)
        got = await client.get("/v1/traces", headers=PROTOBUF)

    assert (metrics.status_code, got.status_code, got.headers["allow"]) == (404, 405, "POST")


async def test_a_full_receiver_asks_to_try_again_and_says_so_in_the_log(
    serving, answer, request_with, caplog, monkeypatch
):
    monkeypatch.setattr(intake, "_ROOM", 0.1)
    with caplog.at_level(logging.WARNING):
        async with serving(BufferLimits(max_traces=1, quiet=600)) as served:
            await post(served, request_with(answer(TRACE)).SerializeToString())
            refused = await post(served, request_with(answer(os.urandom(16))).SerializeToString())
            await until(lambda: caplog.text)

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "2")
    assert served.receiver.counts["requests.refused"] == 1
    assert "the receiver is full: 1 requests were refused" in caplog.text


async def test_a_sender_waits_while_there_may_be_room_soon(serving, answer, request_with):
    async with serving(BufferLimits(max_traces=1, quiet=0.2)) as served:
        for _ in range(3):
            assert (await post(served, request_with(answer(os.urandom(16))).SerializeToString())).status_code == 200

    assert served.receiver.counts["requests.refused"] == 0


async def test_probes_are_answered_while_bodies_are_read(serving, monkeypatch):
    may_read, read = threading.Event(), intake.content_of

    def read_late(*body, **about):
        assert may_read.wait(60)
        return read(*body, **about)

    monkeypatch.setattr(intake, "content_of", read_late)
    async with serving(SLOW) as served, httpx.AsyncClient(base_url=f"http://{served.address}") as client:
        posted = [asyncio.create_task(post(served, b"", timeout=60)) for _ in range(16)]
        await until(lambda: served.intake.held == 0 and len(posted) == 16)
        answers = [(await client.get(page)).status_code for page in ("/healthz", "/readyz")]
        may_read.set()
        statuses = {(await one).status_code for one in posted}

    assert (answers, statuses) == ([200, 200], {200})


async def test_a_body_whose_sender_has_gone_is_not_read(serving, monkeypatch, answer, request_with):
    may_read, begun, read = threading.Event(), [], intake.content_of

    def read_late(*body, **about):
        begun.append(body)
        assert may_read.wait(60)
        return read(*body, **about)

    monkeypatch.setattr(intake, "content_of", read_late)
    body = request_with(answer(os.urandom(16))).SerializeToString()
    head = CUT_OFF.partition(b"Content-Length")[0] + f"Content-Length: {len(body)}\r\n\r\n".encode()
    async with serving(SLOW) as served:
        posted = [asyncio.create_task(post(served, body, timeout=60)) for _ in range(2)]
        await until(lambda: len(begun) == 2)  # all threads are busy
        _, writer = await connected(served)
        writer.write(head + body)
        await until(lambda: served.intake.held == 3 * len(body))
        writer.close()
        await until(lambda: served.receiver.counts["requests.gone"] == 1)
        may_read.set()
        assert {(await one).status_code for one in posted} == {200}
        assert served.intake.held == 0

    assert len(begun) == 2
    assert served.receiver.counts["requests.accepted"] == 2


@pytest.mark.parametrize("end", ["taken", "refused", "no protobuf", "too large", "gone", "hangs"])
async def test_however_a_request_ends_its_bytes_are_given_back(serving, monkeypatch, answer, request_with, end):
    """After 256 MiB everything would be refused otherwise."""
    monkeypatch.setattr(servers, "_PATIENCE", 0.3 if end == "hangs" else 60)
    monkeypatch.setattr(intake, "_MAX_HELD", 100 if end == "refused" else 2**30)
    body = {"no protobuf": b"hello" * 100, "too large": bytes(intake.MAX_BODY + 1)}.get(end)
    body = body or request_with(answer(os.urandom(16))).SerializeToString()
    async with serving(SLOW) as served:
        if end in {"gone", "hangs"}:
            reader, writer = await connected(served)
            writer.write(CUT_OFF)
            await until(lambda: served.intake.held == 1)
            if end == "hangs":
                await reader.readline()
            writer.close()
        else:
            await post(served, body)
        await until(lambda: served.intake.held == 0)


async def test_a_body_in_very_many_small_pieces_is_refused_at_once(serving):
    """Each piece costs as much as some kilobytes: a megabyte of such takes half a minute."""
    async with serving(SLOW) as served:
        reader, writer = await connected(served)
        head = b"POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
        writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 100_000)
        answered = await asyncio.wait_for(reader.readline(), 60)
        writer.close()

        assert (await post(served, b"")).status_code == 200
    assert answered.startswith(b"HTTP/1.1 400")


async def test_a_body_in_some_pieces_is_taken(serving, answer, request_with):
    request = request_with(*(answer(os.urandom(16), response="x" * 300) for _ in range(500))).SerializeToString()

    async def pieces():
        for place in range(0, len(request), 400):
            yield request[place : place + 400]

    async with serving(SLOW) as served:
        assert (await post(served, pieces(), timeout=60)).status_code == 200
        assert served.receiver.counts["spans.accepted"] == 500


async def test_a_new_connection_is_taken_in_place_of_the_one_that_is_silent_for_longest(serving, monkeypatch):
    monkeypatch.setattr(servers, "_MAX_CONNECTIONS", 3)
    async with serving(SLOW) as served:
        silent = []
        for _ in range(5):
            reader, writer = await connected(served)
            writer.write(b"POST /v1/traces HT")
            silent.append((reader, writer))
        first = await asyncio.wait_for(silent[0][0].read(), 60)
        async with httpx.AsyncClient(base_url=f"http://{served.address}") as client:
            assert (await client.get("/healthz")).status_code == 200
        for _, writer in silent:
            writer.close()

    assert first == b""


async def test_a_sender_that_takes_no_replies_is_let_go(serving, monkeypatch):
    monkeypatch.setattr(servers, "_PATIENCE", 0.5)
    async with serving(SLOW) as served:
        _, writer = await connected(served)
        writer.transport.pause_reading()

        async def ask_for_ever():
            while True:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 1000)
                await asyncio.wait_for(writer.drain(), 60)

        with pytest.raises(OSError):
            await ask_for_ever()
        writer.close()


async def test_a_trace_that_is_too_large_is_rejected_as_a_whole(serving, span, request_with):
    request = request_with(*(span(TRACE, attributes={"llm.x": "y"}) for _ in range(11)))
    async with serving(BufferLimits(max_trace_spans=10)) as served:
        response = await post(served, request.SerializeToString())
        figures = served.receiver.figures()

    assert ExportTraceServiceResponse.FromString(response.content).partial_success.rejected_spans == 11
    assert (figures["open_traces"], figures["bytes"], figures["traces.too_large"]) == (0, 0, 1)


async def test_spans_of_traces_that_are_not_sampled_are_not_held(serving, answer, request_with):
    async with serving(SLOW, is_sampled=lambda trace_id: trace_id != TRACE) as served:
        await post(served, request_with(answer(TRACE), answer(os.urandom(16))).SerializeToString())
        figures = served.receiver.figures()

    assert (figures["spans.not_sampled"], figures["spans.accepted"], figures["open_traces"]) == (1, 1, 1)


async def test_the_counts_are_metrics(serving, answer, span, request_with):
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    async with serving(SLOW) as served:
        served.receiver.count_with(provider)
        await post(served, request_with(answer(TRACE), span(b"none")).SerializeToString())
        (of_resource,) = reader.get_metrics_data().resource_metrics

    told = {
        (metric.name, point.attributes["ragspan.result"]): point.value
        for metric in of_resource.scope_metrics[0].metrics
        for point in metric.data.data_points
        if point.value
    }
    assert told == {
        ("ragspan.receiver.requests", "accepted"): 1,
        ("ragspan.receiver.spans", "accepted"): 1,
        ("ragspan.receiver.spans", "rejected"): 1,
    }
    provider.shutdown()


async def test_a_sender_that_hangs_in_the_middle_of_a_body_is_told_so(serving, monkeypatch):
    monkeypatch.setattr(servers, "_PATIENCE", 0.1)
    async with serving(SLOW) as served:
        reader, writer = await connected(served)
        writer.write(CUT_OFF)
        status = await asyncio.wait_for(reader.readline(), 60)
        writer.close()

    assert b" 408 " in status


async def test_a_sender_without_a_head_is_let_go(serving, monkeypatch):
    monkeypatch.setattr(servers, "_PATIENCE", 0.1)
    async with serving(SLOW) as served:
        reader, writer = await connected(served)
        writer.write(b"POST /v1/traces HT")
        closed = await asyncio.wait_for(reader.read(), 60)
        writer.close()

    assert closed == b""


@pytest.mark.parametrize("first", [b"", CUT_OFF], ids=["after a request", "after a body that stayed incomplete"])
async def test_a_sender_that_stalls_in_its_next_request_is_let_go(serving, monkeypatch, first):
    monkeypatch.setattr(servers, "_PATIENCE", 0.1)
    async with serving(SLOW) as served:
        reader, writer = await connected(served)
        writer.write(first or b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        answered = await asyncio.wait_for(reader.readline(), 60)
        writer.write(b"P")
        rest = await asyncio.wait_for(reader.read(), 60)
        writer.close()

    assert answered.startswith(b"HTTP/1.1 408" if first else b"HTTP/1.1 200")
    assert b"HTTP/1.1" not in rest


async def test_a_sender_that_goes_away_harms_nobody(serving):
    async with serving(SLOW) as served:
        _, writer = await connected(served)
        writer.write(CUT_OFF)
        writer.close()
        await writer.wait_closed()

        assert (await post(served, b"")).status_code == 200


async def connected(served):
    host, _, port = served.address.partition(":")
    return await asyncio.open_connection(host, int(port))


async def test_probes_and_people_can_ask_how_it_is(serving, answer, request_with):
    async with (
        serving(BufferLimits(max_traces=1)) as served,
        httpx.AsyncClient(base_url=f"http://{served.address}") as client,
    ):
        before = await client.get("/readyz")
        await post(served, request_with(answer(TRACE)).SerializeToString())
        alive, ready = await client.get("/healthz"), await client.get("/readyz")

    assert (before.status_code, alive.status_code, ready.status_code) == (200, 200, 503)
    assert alive.json() | {"bytes": 0} == {
        "ready": False, "open_traces": 1, "bytes": 0, "bytes_of_requests": 0, "requests.accepted": 1, "spans.accepted": 1,
        "spans.own": 0, "spans.rejected": 0, "not_read": {},
    }  # fmt: skip


async def test_a_server_of_a_receiver_alone_takes_its_requests(answer, request_with):
    receiver = Receiver(SimpleNamespace(submit=[].append), limits=SLOW)
    server = servers.HTTPServer(receiver, "127.0.0.1:0")
    await server.start()
    try:
        async with httpx.AsyncClient() as client:
            body = request_with(answer(TRACE)).SerializeToString()
            address = f"http://127.0.0.1:{server.port}/v1/traces"
            reply = await client.post(address, content=body, headers=PROTOBUF)
    finally:
        await server.stop()

    assert reply.status_code == 200
    assert receiver.counts["spans.accepted"] == 1


@pytest.mark.skipif(not Path("/proc/sys/net/core/somaxconn").exists(), reason="reads Linux's bound")
async def test_connections_that_come_all_at_once_have_a_place_to_wait(serving):
    """Without one, the kernel drops their first packet, and a probe among them takes a second."""
    together = min(400, int(Path("/proc/sys/net/core/somaxconn").read_text()))
    opened = [socket.socket() for _ in range(together)]
    try:
        async with serving(SLOW) as served:
            host, _, port = served.address.partition(":")
            while (await probe(served)) != 200:
                await asyncio.sleep(0.01)
            for one in opened:  # in the server's loop, so that it takes none meanwhile
                one.setblocking(False)
                one.connect_ex((host, int(port)))
            _, made, _ = select.select([], opened, [], 0.5)
    finally:
        for one in opened:
            one.close()

    assert len(made) == together


async def probe(served):
    async with httpx.AsyncClient() as client:
        return (await client.get(f"http://{served.address}/healthz")).status_code
