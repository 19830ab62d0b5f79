"""A page that says whether the worker is well: for Kubernetes' probes, load balancers and people.

`/healthz` is 200 as long as the worker's loop turns, also while the broker is away: to start it anew would not bring the broker
back. `/readyz` is 200 while records can come. Both hold the counts as JSON.

Guarantees:
- One thread of its own serves all requests, so that it can tell of a loop that hangs.
- A connection is over after five seconds, whatever its client does. Where there are too many, the oldest ends for each new one:
  a probe asks at once and has its answer in milliseconds, so the oldest are of those who ask nothing.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, cast

from ragspan.exceptions import ConfigurationError

_PATIENCE = 5.0  # seconds for a request and its answer
_MAX_HEAD = 16 * 1024  # bytes of a request
_MAX_CONNECTIONS = 256
_BACKLOG = 128
_LAST_PORT = 65_535


@dataclass(frozen=True, kw_only=True, slots=True)
class Health:
    """How a worker is."""

    is_alive: bool
    """Its loop has turned a moment ago."""
    is_ready: bool
    """Records can come."""
    figures: dict[str, Any]


class HealthPage:
    """Serves a worker's health by HTTP.

    Args:
        address: `host:port`; port 0 takes a free one.
        look: how it is at the moment; called in the page's thread.

    Raises:
        ConfigurationError: the address is none, or cannot be had.
    """

    def __init__(self, address: str, look: Callable[[], Health]) -> None:
        host, colon, port = address.rpartition(":")
        if not (colon and port.isdecimal()):
            raise ConfigurationError(
                f"the address of the health page is {address!r}, but should be like 127.0.0.1:8080"
            )
        try:
            self._socket = _listening(host.strip("[]"), int(port))
        except (OSError, OverflowError, ValueError) as error:
            raise ConfigurationError(f"the health page cannot be served at {address}: {error}") from None
        self._address = self._socket.getsockname()
        self._look = look
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._open: dict[asyncio.Task[None], None] = {}
        """The connections, the oldest first."""
        self._thread = threading.Thread(target=self._main, name="ragspan-health", daemon=True)

    @property
    def address(self) -> str:
        """Where it is served."""
        host, port = map(str, self._address[:2])
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: it was stopped before
            self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread.ident is not None:
            self._thread.join(_PATIENCE)
        else:
            self._socket.close()
            self._loop.close()

    def _main(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, sock=self._socket, limit=_MAX_HEAD, backlog=_BACKLOG)
        await self._stopping.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await asyncio.sleep(0)  # the connections close in the loop's next turn

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._open[task] = None
        if len(self._open) > _MAX_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.cancel()
        try:
            await asyncio.wait_for(self._exchange(reader, writer), _PATIENCE)
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.TimeoutError, asyncio.CancelledError):
            pass  # he hung up, or took too long, or asked for too much, or we stop
        finally:
            self._open.pop(task, None)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        method, target, *_ = *request.split(maxsplit=2), b"", b""
        status, page = self._answer_to(method, target)
        body = json.dumps(page).encode()
        head = (
            f"HTTP/1.0 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + (b"" if method == b"HEAD" else body))
        await writer.drain()

    def _answer_to(self, method: bytes, target: bytes) -> tuple[HTTPStatus, dict[str, Any]]:
        if method not in {b"GET", b"HEAD"}:
            return HTTPStatus.METHOD_NOT_ALLOWED, {"error": "there are GET and HEAD"}
        health = self._look()
        known = {b"/healthz": health.is_alive, b"/readyz": health.is_alive and health.is_ready}
        is_well = known.get(target.partition(b"?")[0])
        if is_well is None:
            return HTTPStatus.NOT_FOUND, {"error": "there are /healthz and /readyz"}
        status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
        return status, {"alive": health.is_alive, "ready": health.is_ready, **health.figures}


def _listening(host: str, port: int) -> socket.socket:
    if port > _LAST_PORT:
        raise OverflowError(f"there are ports up to {_LAST_PORT}")
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
