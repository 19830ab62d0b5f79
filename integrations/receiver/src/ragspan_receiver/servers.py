"""OTLP over HTTP and over gRPC.

HTTP has `/v1/traces`, in protobuf or JSON, plain, gzip or deflate; and `/healthz` and `/readyz` for probes and people. gRPC
needs the package of the extra `grpc`.

Guarantees:
- A body is read up to a bound, before and after it is unpacked, and for a limited time. The bodies of all requests together are
  bounded, too.
- A connection that sends no request in time is closed.
- Every answer is one that OTLP describes, with a `Status` if something is wrong.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, TypeAlias

import uvicorn
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from uvicorn.protocols.http.h11_impl import H11Protocol

from ragspan.command_line import host_and_port, listener_at
from ragspan.exceptions import ConfigurationError
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.spans import RefusedError, from_json, unpacked

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request's body, before and after it is unpacked."""
_MAX_JSON = 16 * 1024 * 1024  # likewise in JSON, which takes many times its size as objects
_MAX_BODIES = 256 * 1024 * 1024  # bytes of the bodies of all requests that are under way
_MAX_CONNECTIONS = 800
_RETRY_AFTER = 2  # seconds
_PATIENCE = 30  # seconds for a request's head, from its first byte or the connection's beginning, and for its body
_KEEP_ALIVE = 75  # seconds that an idle connection stays
_GRACE = 5  # seconds for requests that are under way when a server stops

_GRPC_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
_MAX_CALLS = 32  # of gRPC, at a time
_MAX_MESSAGE = 16 * 1024 * 1024  # bytes; all calls may hold as much in memory at the same time

_PROTOBUF, _JSON = "application/x-protobuf", "application/json"
_PACKED = {"gzip", "deflate"}
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class OTLPApplication:
    """The application behind the HTTP server, as ASGI has it.

    Args:
        receiver: takes the spans.
    """

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._held = 0
        """Bytes of the bodies of requests that are under way."""
        self._json = asyncio.Lock()  # one at a time

    async def __call__(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        if scope["path"] in {"/healthz", "/readyz"}:
            await self._show_health(scope["path"], send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1").strip().lower() for name, value in scope["headers"]}
        kind = headers.get("content-type", "").partition(";")[0].strip()
        encoding = headers.get("content-encoding", "")
        status = HTTPStatus.OK
        try:
            _check_head(scope["method"], scope["path"], kind, encoding)
            answer: Message = await self._export(kind == _JSON, encoding in _PACKED, receive)
        except RefusedError as refusal:
            status, answer = refusal.status, Status(message=str(refusal))
        if kind == _JSON:
            await _reply(send, status, _JSON, MessageToJson(answer, indent=None).encode())
        else:
            await _reply(send, status, _PROTOBUF, answer.SerializeToString())

    async def _export(self, is_json: bool, is_packed: bool, receive: _Receive) -> Message:  # noqa: FBT001
        """Take a request.

        Raises:
            RefusedError: it is not taken.
        """
        body = bytearray()
        most = _MAX_JSON if is_json else MAX_BODY
        try:
            await asyncio.wait_for(self._read(receive, body, most), _PATIENCE)
            self._receiver.check_room()
            if is_json:
                async with self._json:
                    plain = await asyncio.to_thread(from_json, unpacked(body, most) if is_packed else body)
            else:
                plain = unpacked(body, most) if is_packed else bytes(body)
            return self._receiver.take(plain)
        except asyncio.TimeoutError:
            told = f"no whole body came in {_PATIENCE} seconds"
            raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, told) from None
        finally:
            self._held -= len(body)

    async def _read(self, receive: _Receive, body: bytearray, most: int) -> None:
        """Read the body of a request, up to so many bytes.

        Raises:
            RefusedError: it is too large, those of all requests are, or the sender has gone.
        """
        is_whole = False
        while not is_whole:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise RefusedError(HTTPStatus.BAD_REQUEST, "the sender has gone")
            chunk = message.get("body", b"")
            body += chunk
            self._held += len(chunk)
            if len(body) > most:
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {most} bytes")
            if self._held > _MAX_BODIES:
                self._receiver.refuse()
            is_whole = not message.get("more_body", False)

    async def _show_health(self, path: str, send: _Send) -> None:
        is_ready = self._receiver.is_ready
        status = HTTPStatus.OK if is_ready or path == "/healthz" else HTTPStatus.SERVICE_UNAVAILABLE
        page = {"ready": is_ready, **self._receiver.figures()}
        await _reply(send, status, _JSON, json.dumps(page).encode())


def _check_head(method: str, path: str, kind: str, encoding: str) -> None:
    """Raise a `RefusedError` unless it is the head of a request to export traces."""
    if path != "/v1/traces":
        raise RefusedError(HTTPStatus.NOT_FOUND, "there are /v1/traces, /healthz and /readyz")
    if method != "POST":
        raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, "there is POST")
    if kind not in {_PROTOBUF, _JSON}:
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content type is {_PROTOBUF} or {_JSON}")
    if encoding not in {"", "identity", *_PACKED}:
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the content encoding is gzip, deflate or none")


async def _reply(send: _Send, status: HTTPStatus, kind: str, body: bytes) -> None:
    headers = [("content-type", kind), ("content-length", str(len(body)))]
    if status is HTTPStatus.TOO_MANY_REQUESTS:
        headers.append(("retry-after", str(_RETRY_AFTER)))
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append(("allow", "POST"))
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": status.value, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


class _Connection(H11Protocol):
    """A connection that is closed if the head of a request does not come in time.

    uvicorn closes a connection that is idle between two requests, but waits without a limit once a byte of the next one is there.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._limit_head()

    def data_received(self, data: bytes) -> None:
        was_idle, before = self.timeout_keep_alive_task is not None, self.cycle
        super().data_received(data)
        if was_idle and self.cycle is before:
            self._limit_head()

    def _limit_head(self) -> None:
        self.loop.call_later(_PATIENCE, self._close_if_silent, self.cycle)

    def _close_if_silent(self, before: object) -> None:
        if self.cycle is before:
            self.transport.close()


class HTTPServer(uvicorn.Server):
    """Serves a receiver by HTTP.

    Args:
        receiver: takes the spans.
        address: `host:port`; port 0 takes a free one.

    Raises:
        ConfigurationError: the address is invalid or cannot be used.
    """

    def __init__(self, receiver: Receiver, address: str) -> None:
        super().__init__(
            uvicorn.Config(
                OTLPApplication(receiver),
                http=_Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",  # the sender is told what is wrong with a request
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=_MAX_CONNECTIONS,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=_GRACE,
            )
        )
        self._listener = listener_at(address)
        self.port: int = self._listener.getsockname()[1]
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._serving = asyncio.create_task(self.serve(sockets=[self._listener]))

    async def stop(self) -> None:
        self.should_exit = True
        if self._serving is not None:
            await self._serving
        self._listener.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The command handles signals, and stops more than this server."""
        yield


class GRPCServer:
    """Serves a receiver by gRPC.

    Args:
        receiver: takes the spans.
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
        self._server = grpc.aio.server(
            options=[("grpc.max_receive_message_length", _MAX_MESSAGE), ("grpc.so_reuseport", 0)],
            maximum_concurrent_rpcs=_MAX_CALLS,
        )
        export = grpc.unary_unary_rpc_method_handler(self._export)  # bytes in, bytes out
        methods = grpc.method_handlers_generic_handler(_GRPC_SERVICE, {"Export": export})
        self._server.add_generic_rpc_handlers([methods])
        try:
            self.port: int = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise ConfigurationError(f"nobody can listen at {address}: {error}") from None

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(_GRACE)

    async def _export(self, body: bytes, context: Any) -> bytes:
        try:
            self._receiver.check_room()
            return bytes(self._receiver.take(body).SerializeToString())
        except RefusedError as refusal:
            is_full = refusal.status is HTTPStatus.TOO_MANY_REQUESTS  # senders try again by themselves
            await context.abort(self._codes.UNAVAILABLE if is_full else self._codes.INVALID_ARGUMENT, str(refusal))
        raise AssertionError("abort raises")
