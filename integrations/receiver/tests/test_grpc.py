"""OTLP over gRPC, by a real server and real clients."""

from __future__ import annotations

import os

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.testing import RecordingSink
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.traces import BufferLimits

grpc = pytest.importorskip("grpc")

from ragspan_receiver.grpc_server import GRPCServer  # noqa: E402

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
    assert receiver.traces.counts["spans.accepted"] == 1


async def test_a_full_receiver_asks_to_try_again_and_another_body_is_refused_for_good(server, answer, request_with):
    server, receiver = server
    await export(server, request_with(answer(os.urandom(16)), answer(os.urandom(16))).SerializeToString())
    told = []
    for body in (request_with(answer(os.urandom(16))).SerializeToString(), b"hello"):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await export(server, body)
        told.append((refused.value.code(), refused.value.details()))

    codes = grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INVALID_ARGUMENT
    why = "the receiver has no room for more", "the body is not an ExportTraceServiceRequest"
    assert told == list(zip(codes, why, strict=True))
    assert (receiver.traces.counts["requests.refused"], receiver.held) == (1, 0)
