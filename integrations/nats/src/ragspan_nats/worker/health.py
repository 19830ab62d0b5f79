"""A page that says whether the worker is well: for Kubernetes' probes, load balancers and people.

`/healthz` is 200 as long as the worker's loop turns, also while the broker is away: to start it anew would not bring the broker
back. `/readyz` is 200 while records can come. Both hold the counts as JSON.

A thread of its own serves it, so that it can tell of a loop that hangs.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from ragspan.exceptions import ConfigurationError

_POLL = 0.1  # seconds until a page that is stopped is not served any more


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
        look: how it is at the moment; called in the thread of a request.

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
            self._server = _server(host.strip("[]"), int(port), _handler(look))
        except (OSError, OverflowError) as error:
            raise ConfigurationError(f"the health page cannot be served at {address}: {error}") from None
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL,), name="ragspan-health", daemon=True
        )

    @property
    def address(self) -> str:
        """Where it is served."""
        host, port = map(str, self._server.server_address[:2])
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def server_bind(self) -> None:
        TCPServer.server_bind(
            self
        )  # that of HTTP servers asks for this machine's name, and may wait long for an answer
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say what went wrong, unless somebody hung up before he had his answer."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _ServerV6(_Server):
    address_family = socket.AF_INET6


def _server(host: str, port: int, handler: type[BaseHTTPRequestHandler]) -> _Server:
    kind = _ServerV6 if ":" in host else _Server
    return kind((host, port), handler)


def _handler(look: Callable[[], Health]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 5.0

        def do_GET(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def _answer(self, *, with_body: bool = True) -> None:
            health = look()
            known = {"/healthz": health.is_alive, "/readyz": health.is_alive and health.is_ready}
            is_well = known.get(self.path.partition("?")[0])
            page = {"alive": health.is_alive, "ready": health.is_ready, **health.figures}
            body = json.dumps({"error": "there are /healthz and /readyz"} if is_well is None else page).encode()
            self.send_response(404 if is_well is None else 200 if is_well else 503)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Probes come every second."""

    return Handler
