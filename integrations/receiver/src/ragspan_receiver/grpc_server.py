"""OTLP over gRPC; it needs the package of the extra `grpc`, which bounds messages and calls."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from ragspan.command_line import host_and_port
from ragspan.exceptions import ConfigurationError
from ragspan_receiver.receiver import MAX_BODY, Receiver
from ragspan_receiver.spans import RefusedError

_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
_AT_ONCE = 64  # calls; the library refuses others
_GRACE = 1  # seconds for calls that are under way when the server stops
_OPTIONS = {
    "grpc.max_receive_message_length": MAX_BODY,
    "grpc.so_reuseport": 0,
    "grpc.http2.min_recv_ping_interval_without_data_ms": 10_000,
    "grpc.max_connection_idle_ms": 300_000,
}


class GRPCServer:
    """Serves a receiver by gRPC.

    Args:
        receiver: takes the messages; several servers may share one.
        address: `host:port`; port 0 takes a free one.

    Raises:
        ConfigurationError: the package is not installed, or the address is invalid or cannot be used.
    """

    def __init__(self, receiver: Receiver, address: str) -> None:
        try:
            import grpc
        except ImportError:
            raise ConfigurationError("--otlp-grpc needs grpcio: pip install 'ragspan-receiver[grpc]'") from None
        host_and_port(address)
        self._receiver = receiver
        self._codes = grpc.StatusCode
        self._server = grpc.aio.server(options=list(_OPTIONS.items()), maximum_concurrent_rpcs=_AT_ONCE)
        export = grpc.unary_unary_rpc_method_handler(self._export)  # bytes in, bytes out
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(_SERVICE, {"Export": export})])
        try:
            self.port: int = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise ConfigurationError(f"cannot listen at {address}: {error}") from None

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(_GRACE)

    async def _export(self, body: bytes, context: Any) -> bytes:
        try:
            self._receiver.hold(len(body))
            return bytes((await self._receiver.take_body(body)).SerializeToString())
        except RefusedError as error:
            refusal = error
        finally:
            self._receiver.held -= len(body)
        is_full = refusal.status is HTTPStatus.SERVICE_UNAVAILABLE  # senders try again by themselves
        await context.abort(self._codes.UNAVAILABLE if is_full else self._codes.INVALID_ARGUMENT, str(refusal))
        raise AssertionError("abort raises")
