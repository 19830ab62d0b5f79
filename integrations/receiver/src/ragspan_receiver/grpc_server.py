"""OTLP over gRPC; it needs the package of the extra `grpc`, which bounds messages and calls. The response says when a sender should try again."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from ragspan.command_line import host_and_port
from ragspan.exceptions import ConfigurationError
from ragspan_receiver.intake import MAX_BODY, Intake
from ragspan_receiver.spans import RefusedError

_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
_AT_ONCE = 64  # calls; the library refuses others
_RETRY_AFTER = 1  # seconds
_GRACE = 1  # seconds for calls that are under way when the server stops
_OPTIONS = {
    "grpc.max_receive_message_length": MAX_BODY,
    "grpc.so_reuseport": 0,
    "grpc.keepalive_time_ms": 30_000,  # hosts that vanish are found by pings
    "grpc.keepalive_timeout_ms": 10_000,
    "grpc.keepalive_permit_without_calls": 1,
    "grpc.http2.min_ping_interval_without_data_ms": 10_000,
    "grpc.http2.min_recv_ping_interval_without_data_ms": 10_000,
    "grpc.max_connection_idle_ms": 300_000,
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
            with self._intake.holding() as grow:
                grow(len(body))
                return bytes((await self._intake.take(body)).SerializeToString())
        except RefusedError as refusal:
            if refusal.status is not HTTPStatus.SERVICE_UNAVAILABLE:
                await context.abort(self._codes.INVALID_ARGUMENT, str(refusal))
            # Senders try again by themselves if the response says when.
            hint, details = RetryInfo(retry_delay=Duration(seconds=_RETRY_AFTER)), AnyMessage()
            details.Pack(hint)
            status = Status(code=self._codes.UNAVAILABLE.value[0], message=str(refusal), details=[details])
            metadata = (
                ("grpc-status-details-bin", status.SerializeToString()),
                (
                    "google.rpc.retryinfo-bin",
                    hint.SerializeToString(),
                ),  # where OpenTelemetry's exporter for Python looks
            )
            await context.abort(self._codes.UNAVAILABLE, str(refusal), trailing_metadata=metadata)
        raise AssertionError("abort raises")
