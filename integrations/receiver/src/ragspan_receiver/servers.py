"""OTLP over HTTP: `/v1/traces` in protobuf or JSON, plain, gzip or deflate; and `/healthz` and `/readyz` for probes and people."""

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

from ragspan.command_line import listener_at
from ragspan_receiver.receiver import MAX_BODY, MAX_JSON, Receiver
from ragspan_receiver.spans import RefusedError

_RETRY_AFTER = 2  # seconds
_PATIENCE = 30  # seconds for a request's body
_KEEP_ALIVE = 75  # seconds that an idle connection stays
_GRACE = 1  # seconds for replies that are under way when a server stops

_PROTOBUF, _JSON = "application/x-protobuf", "application/json"
_PACKED = {"gzip", "deflate"}
_Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class OTLPApplication:
    """The application behind the HTTP server, as ASGI has it."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    async def __call__(self, scope: MutableMapping[str, Any], receive: _Receive, send: _Send) -> None:
        path = scope["path"]
        if path in {"/healthz", "/readyz"}:
            is_ready = self._receiver.is_ready
            status = HTTPStatus.OK if is_ready or path == "/healthz" else HTTPStatus.SERVICE_UNAVAILABLE
            page = {"ready": is_ready, "bytes_of_requests": self._receiver.held, **self._receiver.figures()}
            await _reply(send, status, _JSON, json.dumps(page).encode())
            return
        headers = {name.decode("latin-1"): value.decode("latin-1").strip().lower() for name, value in scope["headers"]}
        kind = headers.get("content-type", "").partition(";")[0].strip()
        encoding = headers.get("content-encoding", "")
        status, body = HTTPStatus.OK, bytearray()
        try:
            _check_head(scope, kind, encoding)
            await self._read(receive, body, MAX_JSON if kind == _JSON else MAX_BODY)
            is_packed = encoding in _PACKED
            answer: Message = await self._receiver.take_body(body, is_json=kind == _JSON, is_packed=is_packed)
        except RefusedError as refusal:
            status, answer = refusal.status, Status(message=str(refusal))
        finally:
            self._receiver.held -= len(body)
        reply = MessageToJson(answer, indent=None).encode() if kind == _JSON else answer.SerializeToString()
        await _reply(send, status, _JSON if kind == _JSON else _PROTOBUF, reply)

    async def _read(self, receive: _Receive, body: bytearray, most: int) -> None:
        """Read the body of a request, of at most `most` bytes."""
        if not self._receiver.is_ready:
            self._receiver.refuse()
        ends, is_whole = asyncio.get_running_loop().time() + _PATIENCE, False
        while not is_whole:
            try:
                message = await asyncio.wait_for(receive(), ends - asyncio.get_running_loop().time())
            except asyncio.TimeoutError:
                problem = f"no whole body came in {_PATIENCE} seconds"
                raise RefusedError(HTTPStatus.REQUEST_TIMEOUT, problem) from None
            if message["type"] == "http.disconnect":
                self._receiver.traces.count("requests.gone")
                raise RefusedError(HTTPStatus.BAD_REQUEST, "the sender has gone")
            chunk = message.get("body", b"")
            body += chunk
            self._receiver.hold(len(chunk))
            if len(body) > most:
                raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {most} bytes")
            is_whole = not message.get("more_body", False)


def _check_head(scope: MutableMapping[str, Any], kind: str, encoding: str) -> None:
    if scope["path"] != "/v1/traces" or scope["method"] != "POST":
        raise RefusedError(HTTPStatus.NOT_FOUND, "there are POST /v1/traces, /healthz and /readyz")
    if kind not in {_PROTOBUF, _JSON}:
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content type is {_PROTOBUF} or {_JSON}")
    if encoding not in {"", "identity", *_PACKED}:
        raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the content encoding is gzip, deflate or none")


async def _reply(send: _Send, status: HTTPStatus, kind: str, body: bytes) -> None:
    headers = {"content-type": kind, "content-length": str(len(body))}
    if status is HTTPStatus.SERVICE_UNAVAILABLE:
        headers["retry-after"] = str(_RETRY_AFTER)
    encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status.value, "headers": encoded})
    await send({"type": "http.response.body", "body": body})


class HTTPServer(uvicorn.Server):
    """Serves a receiver by HTTP.

    Args:
        receiver: takes the bodies; several servers may share one.
        address: `host:port`; port 0 takes a free one.

    Raises:
        ConfigurationError: the address is invalid or cannot be used.
    """

    def __init__(self, receiver: Receiver, address: str) -> None:
        super().__init__(
            uvicorn.Config(
                OTLPApplication(receiver),
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",  # the response says what is wrong with a request
                access_log=False,
                proxy_headers=False,
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
