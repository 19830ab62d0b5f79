"""OTLP over HTTP: `/v1/traces`, protobuf or JSON, plain, gzip or deflate; and `/healthz` and `/readyz` for probes and people.

Guarantees:
- A body is read up to a bound, before and after it is unpacked, and for so many seconds. The bodies of all requests together
  are bounded, too.
- A connection that sends no whole head of a request in time is closed.
- Every answer is one that OTLP describes, with a `Status` where something is wrong.
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
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from ragspan_otlp.decoding import RefusedError, batch_of, from_json, unpacked
from ragspan_otlp.receiver import Receiver

MAX_BODY = 64 * 1024 * 1024
"""Bytes of a request's body, before and after it is unpacked."""
MAX_JSON = 16 * 1024 * 1024
"""Likewise of one in JSON, which takes many times its size as objects."""
RETRY_AFTER = 2  # seconds
_MAX_BODIES = 256 * 1024 * 1024  # bytes of the bodies of all requests that are under way
_PATIENCE = 30  # seconds for a head, and for a body
_KEEP_ALIVE = 75  # seconds that an idle connection stays
_MAX_CONNECTIONS = 800
_GRACE = 5  # seconds for requests that are under way when the server stops

_PROTOBUF, _JSON = "application/x-protobuf", "application/json"
_INVALID_ARGUMENT = 3
_CODES = {
    HTTPStatus.NOT_FOUND: 12,  # unimplemented
    HTTPStatus.METHOD_NOT_ALLOWED: 12,
    HTTPStatus.REQUEST_TIMEOUT: 14,  # unavailable
    HTTPStatus.TOO_MANY_REQUESTS: 8,  # resource exhausted
}
"""The codes of `google.rpc` that are not that of an invalid argument."""
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class _DisconnectedError(Exception):
    """The sender has gone."""


class OTLPApplication:
    """The application behind the server, as ASGI has it.

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
            await self._tell_health(scope["path"], send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1").strip().lower() for name, value in scope["headers"]}
        kind = headers.get("content-type", "").partition(";")[0].strip()
        try:
            _check_head(scope["method"], scope["path"], kind, headers.get("content-encoding", ""))
            answer: Message = await self._export(kind, headers, receive)
            status = HTTPStatus.OK
        except RefusedError as refusal:
            status = refusal.status
            answer = Status(code=_CODES.get(status, _INVALID_ARGUMENT), message=str(refusal))
        except _DisconnectedError:
            return
        if kind == _JSON:
            await _reply(send, status, _JSON, MessageToJson(answer, indent=None).encode())
        else:
            await _reply(send, status, _PROTOBUF, answer.SerializeToString())

    async def _export(self, kind: str, headers: dict[str, str], receive: _Receive) -> ExportTraceServiceResponse:
        """Take a request.

        Raises:
            RefusedError: it is not taken.
        """
        body = bytearray()
        most = MAX_JSON if kind == _JSON else MAX_BODY
        is_packed = headers.get("content-encoding") in {"gzip", "deflate"}
        try:
            await asyncio.wait_for(self._read(receive, body, most), _PATIENCE)
            self._receiver.check_room()
            if kind == _JSON:
                async with self._json:
                    plain = await asyncio.to_thread(from_json, unpacked(body, most) if is_packed else body)
            else:
                plain = unpacked(body, most) if is_packed else bytes(body)
            return response_to(self._receiver.take(batch_of(plain)))
        except asyncio.TimeoutError:
            told = f"no whole body came in {_PATIENCE} seconds"
            raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, told) from None
        finally:
            self._held -= len(body)

    async def _read(self, receive: _Receive, body: bytearray, most: int) -> None:
        """Read the body of a request, up to so many bytes.

        Raises:
            RefusedError: it is too large, or those of all requests are.
            _DisconnectedError: the sender has gone.
        """
        is_whole = False
        while not is_whole:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _DisconnectedError
            chunk = message.get("body", b"")
            body += chunk
            self._held += len(chunk)
            if len(body) > most:
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {most} bytes")
            if self._held > _MAX_BODIES:
                self._receiver.refuse()
            is_whole = not message.get("more_body", False)

    async def _tell_health(self, path: str, send: _Send) -> None:
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
        told = f"the content type is {_PROTOBUF} or {_JSON}"
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, told)
    if encoding not in {"", "identity", "gzip", "deflate"}:
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the content encoding is gzip, deflate or none")


def response_to(rejected: int) -> ExportTraceServiceResponse:
    """The answer to a request of which so many spans were rejected for good."""
    response = ExportTraceServiceResponse()
    if rejected:
        response.partial_success.rejected_spans = rejected
        response.partial_success.error_message = "these spans have no valid id, or they or their traces are too large"
    return response


async def _reply(send: _Send, status: HTTPStatus, kind: str, body: bytes) -> None:
    headers = [("content-type", kind), ("content-length", str(len(body)))]
    if status is HTTPStatus.TOO_MANY_REQUESTS:
        headers.append(("retry-after", str(RETRY_AFTER)))
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        headers.append(("allow", "POST"))
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": status.value, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


class _Connection(H11Protocol):
    """A connection that is closed where no whole head of a request comes in time."""

    _limit: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait_for_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._limit is not None:
            self._limit.cancel()

    def _wait_for_head(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
        self._limit = self.loop.call_later(_KEEP_ALIVE + _PATIENCE, self._give_up, self.cycle)

    def _give_up(self, latest: object) -> None:
        if self.cycle is latest:
            self.transport.close()


class Server(uvicorn.Server):
    """Serves a receiver on a socket that listens already.

    Args:
        receiver: takes the spans.
    """

    def __init__(self, receiver: Receiver) -> None:
        super().__init__(
            uvicorn.Config(
                OTLPApplication(receiver),
                http=_Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",  # what is wrong with a request, its sender is told
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=_MAX_CONNECTIONS,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=_GRACE,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The command listens to signals, and stops more than this server."""
        yield
