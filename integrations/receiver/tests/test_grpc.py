"""OTLP over gRPC, by a real server and real clients."""

from __future__ import annotations

import asyncio
import os

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan import ConfigurationError
from ragspan.testing import RecordingSink
from ragspan_receiver.receiver import BufferLimits, Receiver

grpc = pytest.importorskip("grpc")

from ragspan_receiver.servers import GRPCServer  # noqa: E402

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture
async def server():
    receiver = Receiver(RecordingSink(), limits=BufferLimits(max_traces=2))
    server = GRPCServer(receiver, "127.0.0.1:0")
    await server.start()
    yield server, receiver
    await server.stop()


async def export(server, body, **options):
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        return await channel.unary_unary(METHOD)(body, **options)


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
async def test_spans_are_taken(server, answer, span, request_with, compression):
    server, receiver = server
    body = request_with(answer(os.urandom(16)), span(b"none")).SerializeToString()

    response = await export(server, body, compression=compression)

    assert ExportTraceServiceResponse.FromString(response).partial_success.rejected_spans == 1
    assert receiver.counts["spans.accepted"] == 1


async def test_what_is_no_request_is_refused(server):
    server, _ = server
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await export(server, b"hello")

    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_full_receiver_asks_to_try_again(server, answer, request_with):
    server, receiver = server
    await export(server, request_with(answer(os.urandom(16)), answer(os.urandom(16))).SerializeToString())
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await export(server, request_with(answer(os.urandom(16))).SerializeToString())

    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
    assert receiver.counts["requests.refused"] == 1


@pytest.mark.parametrize("compression", [None, grpc.Compression.Gzip])
async def test_a_message_that_is_too_large_is_refused(server, compression):
    server, _ = server
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await export(server, bytes(17 * 1024 * 1024), compression=compression)

    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_what_the_exporter_of_opentelemetry_sends_is_taken(server):
    exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc.trace_exporter")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    server, receiver = server
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(
        SimpleSpanProcessor(exporter.OTLPSpanExporter(f"127.0.0.1:{server.port}", insecure=True))
    )
    await asyncio.to_thread(lambda: provider.get_tracer("app").start_span("ask").end())
    await asyncio.to_thread(provider.shutdown)

    assert receiver.counts["spans.accepted"] == 1


async def test_an_address_that_cannot_be_had_is_named(server):
    running, _ = server
    with pytest.raises(ConfigurationError, match=f"nobody can listen at 127.0.0.1:{running.port}"):
        GRPCServer(Receiver(RecordingSink()), f"127.0.0.1:{running.port}")
