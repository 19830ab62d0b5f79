"""A server on this machine to which native writers write; who derives from it answers as a backend does."""

from __future__ import annotations

import gzip
import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Request(NamedTuple):
    method: str
    path: str
    query: dict
    headers: dict
    body: bytes

    @property
    def content(self):
        return json.loads(self.body) if self.body else None


class ScoreServer:
    """Answers requests by `reply_to`, unless `script` has a reply for the next one.

    A reply is a status, or a status with a body and headers, or a function of the request that gives one; None stands for what
    the server would do. Spans are taken at every path to `/v1/traces`. A request that a backend would not understand is refused,
    and fails the test at its end. `limit` is that of a request's body, in bytes; `refused` are names that a backend does not take.
    """

    keeps_connections = False

    def __init__(self):
        self.requests = []
        self.connections = set()
        self.mistakes = []
        self.script = deque()
        self.limit = 5_000_000
        self.refused = set()
        self._released = threading.Event()
        self._port = 0
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._port}"

    def reply_to(self, request):
        raise NotImplementedError

    def take_span(self, span, headers):
        """A span as an exporter sends it, and the headers of its request."""

    def start(self):
        """Listen, at the same address as before."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), self._handler())
        self._server.daemon_threads = True
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self):
        """Refuse connections."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def close(self):
        self._released.set()
        self.stop()
        assert not self.mistakes, self.mistakes

    def hangs(self, _):
        """A reply that does not come before the test is over."""
        self._released.wait(timeout=60)
        return 503

    def _reply(self, request):
        try:
            if request.path.endswith("/v1/traces"):
                is_packed = "content-encoding" in request.headers
                body = gzip.decompress(request.body) if is_packed else request.body
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for span in (span for scope in resource.scope_spans for span in scope.spans):
                        self.take_span(span, request.headers)
                return 200, "", {"Content-Type": "application/x-protobuf"}
            self.requests.append(request)
            if len(request.body) > self.limit:
                return 413
            reply = self.script.popleft() if self.script else None
            if callable(reply):
                reply = reply(request)
            return self.reply_to(request) if reply is None else reply
        except Exception as error:
            self.mistakes.append(error)
            return 422

    def _handler(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self):
                server.connections.add(self.client_address)
                address = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = server._reply(Request(self.command, address.path, parse_qs(address.query), headers, body))
                status, content, more = (reply, "", {}) if isinstance(reply, int) else (*reply, {})[:3]
                data = (content if isinstance(content, str) else json.dumps(content)).encode()
                closing = {} if server.keeps_connections else {"Connection": "close"}
                try:
                    self.send_response(status)
                    for name, value in {**more, "Content-Length": len(data), **closing}.items():
                        self.send_header(name, str(value))
                    self.end_headers()
                    self.wfile.write(data)
                except ConnectionError:
                    self.close_connection = True  # a client that timed out has hung up

            do_GET = do_POST = do_PATCH = handle_any

            def log_message(self, *arguments):
                pass

        return Handler
