"""OTLP over gRPC, by a real server and real clients."""

from __future__ import annotations

import asyncio
import os

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan import ConfigurationError
from ragspan.testing import RecordingSink
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.traces import BufferLimits

grpc = pytest.importorskip("grpc")

from google.rpc.error_details_pb2 import RetryInfo  # noqa: E402
from google.rpc.status_pb2 import Status  # noqa: E402

from ragspan_receiver import grpc_server, intake  # noqa: E402
from ragspan_receiver.grpc_server import GRPCServer  # noqa: E402

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture
async def server():
    receiver = Receiver(RecordingSink(), limits=BufferLimits(max_traces=2))
    server = GRPCServer(intake.Intake(receiver), "127.0.0.1:0")
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


async def test_a_full_receiver_asks_to_try_again_and_says_when(server, answer, request_with, monkeypatch):
    monkeypatch.setattr(intake, "_ROOM", 0.1)
    server, receiver = server
    await export(server, request_with(answer(os.urandom(16)), answer(os.urandom(16))).SerializeToString())
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await export(server, request_with(answer(os.urandom(16))).SerializeToString())

    assert_retried(refused.value)
    assert receiver.counts["requests.refused"] == 1


def assert_retried(error):
    """The error is one after which senders try again, and it says when; also for those who look elsewhere."""
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    metadata = dict(error.trailing_metadata())
    (detail,) = Status.FromString(metadata["grpc-status-details-bin"]).details
    hint = RetryInfo()
    assert detail.Unpack(hint)
    assert hint == RetryInfo.FromString(metadata["google.rpc.retryinfo-bin"])
    assert hint.retry_delay.seconds == 1


class Silent:
    """A call without a message."""

    def __init__(self, server):
        self._channel = grpc.aio.insecure_channel(f"127.0.0.1:{server.port}")
        self._never = asyncio.Event()
        self.call = self._channel.stream_unary(METHOD)(self._messages())

    async def _messages(self):
        await self._never.wait()
        yield b""

    async def error(self):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await asyncio.wait_for(self.call, 60)
        return refused.value

    async def close(self):
        self.call.cancel()
        await self._channel.close()


async def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), 60)


async def test_a_call_without_a_message_ends_and_gives_its_bytes_back(server, monkeypatch):
    monkeypatch.setattr(grpc_server, "_PATIENCE", 0.2)
    server, receiver = server
    silent = Silent(server)
    await until(lambda: server._intake.held == grpc_server._MAX_MESSAGE)  # it may have come nearly

    assert_retried(await silent.error())

    await until(lambda: server._intake.held == 0)
    assert receiver.counts["requests.silent"] == 1
    await silent.close()


async def test_silent_calls_on_all_places_do_not_keep_others_out(server, answer, request_with, monkeypatch):
    monkeypatch.setattr(grpc_server, "_PATIENCE_OF_OTHERS", 0.2)
    monkeypatch.setattr(grpc_server, "_LOOK", 0.05)
    server, receiver = server
    silent = [Silent(server) for _ in range(grpc_server._AT_ONCE)]
    await until(lambda: server._intake.held == grpc_server._AT_ONCE * grpc_server._MAX_MESSAGE)

    await export(server, request_with(answer(os.urandom(16))).SerializeToString(), timeout=60)

    assert receiver.counts["spans.accepted"] == 1
    for one in silent:
        await one.close()
    await until(lambda: server._intake.held == 0)


async def test_more_calls_than_can_wait_are_told_to_try_again(server, monkeypatch):
    monkeypatch.setattr(grpc_server, "_MAX_CALLS", 1)
    server, _ = server
    silent = Silent(server)
    await until(lambda: server._intake.held > 0)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await export(server, b"")

    assert_retried(refused.value)
    await silent.close()


async def test_the_bytes_of_a_call_that_is_cancelled_are_given_back(server):
    server, _ = server
    silent = Silent(server)
    await until(lambda: server._intake.held > 0)

    await silent.close()

    await until(lambda: server._intake.held == 0)


async def test_an_exporter_of_opentelemetry_delivers_once_there_is_room(server, answer, request_with, monkeypatch):
    exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc.trace_exporter")
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    monkeypatch.setattr(intake, "_ROOM", 0.1)
    server, receiver = server
    await export(server, request_with(answer(os.urandom(16)), answer(os.urandom(16))).SerializeToString())
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(
        SimpleSpanProcessor(exporter.OTLPSpanExporter(f"127.0.0.1:{server.port}", insecure=True, timeout=60))
    )
    sending = asyncio.create_task(asyncio.to_thread(lambda: provider.get_tracer("app").start_span("ask").end()))
    await until(lambda: receiver.counts["requests.refused"])
    receiver.traces.ended(all_of_them=True)  # there is room

    await asyncio.wait_for(sending, 60)

    assert receiver.counts["spans.accepted"] == 3
    await asyncio.to_thread(provider.shutdown)


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
    with pytest.raises(ConfigurationError, match=f"cannot listen at 127.0.0.1:{running.port}"):
        GRPCServer(intake.Intake(Receiver(RecordingSink())), f"127.0.0.1:{running.port}")
