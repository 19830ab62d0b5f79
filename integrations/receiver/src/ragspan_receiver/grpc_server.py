"""OTLP over gRPC; it needs the package of the extra `grpc`.

Guarantees:
- A call whose message does not come in time is ended, at once if others wait for its place. Hosts that vanish are found by pings.
- Few messages are received at a time, since each may have 16 MiB; their bytes count among those of all requests.
- The response says when a sender should try again (`UNAVAILABLE` with `RetryInfo`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from ragspan.command_line import host_and_port
from ragspan.exceptions import ConfigurationError
from ragspan_receiver.bodies import RefusedError
from ragspan_receiver.intake import HeldBytes, Intake

_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
_MAX_MESSAGE = 16 * 1024 * 1024  # bytes
_PACKED = 8  # gRPC unpacks messages before we see them; how many times their size we take them to have shrunk
_AT_ONCE = 8  # messages that are received; the others wait for a place
_MAX_CALLS = 500  # that wait for a place, are received, or wait to be read
_PATIENCE = 30.0  # seconds for a message
_PATIENCE_OF_OTHERS = 2.0  # seconds, if other calls wait for its place
_TURN = 5.0  # seconds that a call waits for a place
_LOOK = 0.5  # seconds between two looks whether a message has come
_RETRY_AFTER = 1  # seconds
_GRACE = 1  # seconds for calls that are under way when the server stops
_OPTIONS = {
    "grpc.max_receive_message_length": _MAX_MESSAGE,
    "grpc.so_reuseport": 0,
    "grpc.max_concurrent_streams": 100,  # of a connection
    "grpc.keepalive_time_ms": 30_000,
    "grpc.keepalive_timeout_ms": 10_000,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.http2.min_ping_interval_without_data_ms": 10_000,
    "grpc.http2.min_recv_ping_interval_without_data_ms": 10_000,
    "grpc.max_connection_idle_ms": 300_000,
    "grpc.max_allowed_incoming_connections": 200,
}


class GRPCServer:
    """Serves a receiver by gRPC.

    Args:
        intake: takes the messages; servers of one receiver share it.
        address: `host:port`; port 0 takes a free one.

    Raises:
        ConfigurationError: the package is not installed, or the address is invalid or cannot be used.
    """

    def __init__(self, intake: Intake, address: str) -> None:
        try:
            import grpc
        except ImportError:
            raise ConfigurationError("--otlp-grpc needs grpcio: pip install 'ragspan-receiver[grpc]'") from None
        host_and_port(address)
        self._intake = intake
        self._receiver = intake.receiver
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._calls = self._waiting = 0
        self._codes = grpc.StatusCode
        self._server = grpc.aio.server(options=list(_OPTIONS.items()))
        # Calls have one message. As a stream, it is we who receive it, and may stop waiting for it. Bytes in, bytes out.
        export = grpc.stream_unary_rpc_method_handler(self._export)
        methods = grpc.method_handlers_generic_handler(_SERVICE, {"Export": export})
        self._server.add_generic_rpc_handlers([methods])
        try:
            self.port: int = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise ConfigurationError(f"cannot listen at {address}: {error}") from None

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(_GRACE)

    async def _export(self, messages: AsyncIterator[bytes], context: Any) -> bytes:
        self._calls += 1
        try:
            if self._calls > _MAX_CALLS:
                self._receiver.refuse()
            async with self._intake.holding() as held:
                body = await self._message(messages, held)
                gone = asyncio.get_running_loop().create_future()  # where the caller goes, this coroutine is cancelled
                response = await self._intake.take(body, received=len(body) // _PACKED, gone=gone)
                return bytes(response.SerializeToString())
        except RefusedError as refusal:
            await self._refuse(context, refusal)
        finally:
            self._calls -= 1
        raise AssertionError("abort raises")

    async def _message(self, messages: AsyncIterator[bytes], held: HeldBytes) -> bytes:
        """The message of a call.

        Raises:
            RefusedError: it does not come in time, or there is no place for it.
        """
        self._waiting += 1
        try:
            await asyncio.wait_for(self._places.acquire(), _TURN)
        except asyncio.TimeoutError:
            self._receiver.refuse()
        finally:
            self._waiting -= 1
        reading = asyncio.ensure_future(_first(messages))
        body = b""
        try:
            held.change(_MAX_MESSAGE)  # it may have come nearly, which nobody sees
            began = asyncio.get_running_loop().time()
            while not (await asyncio.wait([reading], timeout=_LOOK))[0]:
                took = asyncio.get_running_loop().time() - began
                if took > _PATIENCE or (took > _PATIENCE_OF_OTHERS and self._waiting):
                    self._receiver.count("requests.silent")
                    raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, f"no message came in {took:.0f} seconds")
            body = reading.result()
            return body
        finally:
            reading.cancel()
            self._places.release()
            held.change(len(body) - _MAX_MESSAGE)

    async def _refuse(self, context: Any, refusal: RefusedError) -> None:
        """End the call with the refusal. Senders try again by themselves if it says when."""
        if refusal.status is not HTTPStatus.SERVICE_UNAVAILABLE:
            await context.abort(self._codes.INVALID_ARGUMENT, str(refusal))
        hint, details = RetryInfo(retry_delay=Duration(seconds=_RETRY_AFTER)), AnyMessage()
        details.Pack(hint)
        status = Status(code=self._codes.UNAVAILABLE.value[0], message=str(refusal), details=[details])
        metadata = (
            ("grpc-status-details-bin", status.SerializeToString()),
            ("google.rpc.retryinfo-bin", hint.SerializeToString()),  # where OpenTelemetry's exporter for Python looks
        )
        await context.abort(self._codes.UNAVAILABLE, str(refusal), trailing_metadata=metadata)


async def _first(messages: AsyncIterator[bytes]) -> bytes:
    async for message in messages:
        return message
    raise RefusedError(HTTPStatus.BAD_REQUEST, "the call has no message")
