"""HTTP on this machine, for what tests pretend to be: backends of scores, endpoints of OTLP, judges."""

from __future__ import annotations

import contextlib
import gzip
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs

HOST = "127.0.0.1"


class Request(NamedTuple):
    method: str
    path: str
    query: dict
    headers: dict
    """By lower-case names."""
    body: bytes
    """Unpacked."""

    @property
    def content(self):
        return json.loads(self.body) if self.body else None


class LocalHttp:
    """Answers each request, in a thread of its connection, with what `reply(request)` returns: a status, headers and a body.

    Args:
        tls: speaks HTTPS with the certificate of this `ssl.SSLContext`.
        listening: whether it can be reached from the start, or refuses connections until `start()`.
    """

    keeps_connections = True

    def __init__(self, reply, *, tls=None, listening=True):
        self._reply = reply
        self._tls = tls
        self._released = threading.Event()
        self.connections = set()
        self.port = 0
        self._bind()
        self.url = f"{'http' if tls is None else 'https'}://{HOST}:{self.port}"
        if listening:
            self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self):
        """Listen, always at the same address."""
        if self._server is None:
            self._bind()
        self._server.server_activate()
        self._thread.start()

    def stop(self):
        """Refuse connections."""
        if self._server is None:
            return
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._server = None

    def close(self):
        self._released.set()
        self.stop()

    def hold(self, *_):
        """Do not answer before the test is over."""
        self._released.wait(timeout=60)
        return 503, {}, b""

    def _bind(self):
        self._server = _Server((HOST, self.port), self._handler(), bind_and_activate=False)
        self._server.server_bind()
        if self._tls is not None:
            self._server.socket = self._tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def _handler(self):
        local = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle(self):
                with contextlib.suppress(ConnectionError):  # a client that was killed, or had no more patience
                    super().handle()

            def handle_any(self):
                local.connections.add(self.client_address)
                path, _, query = self.path.partition("?")
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                if len(body) < length:
                    raise ConnectionResetError("the client gave up while it sent")
                headers = {name.lower(): text for name, text in self.headers.items()}
                if headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                status, more, content = local._reply(
                    Request(self.command, path, parse_qs(query, keep_blank_values=True), headers, body)
                )
                self.send_response(status)
                closing = {} if local.keeps_connections else {"Connection": "close"}
                for name, text in {"Content-Length": len(content), **more, **closing}.items():
                    self.send_header(name, str(text))
                self.end_headers()
                self.wfile.write(b"" if self.command == "HEAD" else content)

            do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any

            def log_message(self, *args):
                pass

        return Handler


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # connections of all workers of a fleet at once
