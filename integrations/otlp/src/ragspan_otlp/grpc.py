"""OTLP over gRPC, with the package of the extra `grpc`."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from ragspan.exceptions import ConfigurationError
from ragspan_otlp.decoding import RefusedError, batch_of
from ragspan_otlp.http import response_to
from ragspan_otlp.receiver import Receiver

_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
_MAX_CALLS = 32  # at a time
_MAX_MESSAGE = 16 * 1024 * 1024  # bytes; all calls may hold as much in memory at the same time
_GRACE = 5.0  # seconds for calls that are under way when the server stops


class GRPCServer:
    """Serves a receiver by gRPC.

    Args:
        receiver: takes the spans.
        address: `host:port`; port 0 takes a free one.

    Raises:
        ConfigurationError: the package is not installed, or the address cannot be had.
    """

    def __init__(self, receiver: Receiver, address: str) -> None:
        try:
            import grpc
        except ImportError:
            raise ConfigurationError("--otlp-grpc needs grpcio: pip install 'ragspan-otlp[grpc]'") from None
        self._receiver = receiver
        self._grpc = grpc
        self._server = grpc.aio.server(
            options=[("grpc.max_receive_message_length", _MAX_MESSAGE), ("grpc.so_reuseport", 0)],
            maximum_concurrent_rpcs=_MAX_CALLS,
        )
        export = grpc.unary_unary_rpc_method_handler(self._export)  # bytes in, bytes out
        self._server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(_SERVICE, {"Export": export})])
        try:
            self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise ConfigurationError(f"OTLP cannot be received at {address}: {error}") from None

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(_GRACE)

    async def _export(self, body: bytes, context: Any) -> bytes:
        try:
            self._receiver.check_room()
            response: bytes = response_to(self._receiver.take(batch_of(body))).SerializeToString()
        except RefusedError as refusal:
            is_full = refusal.status is HTTPStatus.TOO_MANY_REQUESTS  # senders try again by themselves
            codes = self._grpc.StatusCode
            await context.abort(codes.UNAVAILABLE if is_full else codes.INVALID_ARGUMENT, str(refusal))
        else:
            return response
        raise AssertionError("abort raises")
