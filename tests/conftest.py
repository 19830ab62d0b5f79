"""What tests of several parts share: how Hypothesis runs, and an OTLP endpoint on this machine."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import hypothesis
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

hypothesis.settings.register_profile("ragspan", deadline=None, derandomize=True)  # a slow machine is no wrong answer
hypothesis.settings.load_profile("ragspan")


@dataclass(frozen=True)
class ReceivedSpan:
    """A span as it came over the wire."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, object]
    trace_state: str
    resource: dict[str, object]
    """The attributes of what sent it."""


class OtlpListener:
    """Takes OTLP over HTTP on this machine, and answers as a test tells it to.

    `answer` is a function from the path of a request to a status, headers and a body.

    Args:
        tls: speaks HTTPS with the certificate of this `ssl.SSLContext`.
    """

    def __init__(self, *, tls=None):
        self.answer = lambda _path: (200, {"Content-Type": "application/x-protobuf"}, b"")
        self.requests = []
        self.headers = []
        self.spans = []
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_address[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def answers(self, status, body=b"", **headers):
        self.answer = lambda _path: (status, {name.replace("_", "-"): text for name, text in headers.items()}, body)

    def hangs(self):
        """Does not answer before the test is over."""

        def answer(_path):
            self._released.wait(timeout=60)
            return 503, {}, b""

        self.answer = answer

    def close(self):
        self._released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _keep(self, path, body):
        self.requests.append(path)
        if "traces" not in path:
            return
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                self.spans += [
                    ReceivedSpan(
                        name=span.name,
                        trace_id=span.trace_id.hex(),
                        span_id=span.span_id.hex(),
                        parent_id=span.parent_span_id.hex(),
                        attributes={pair.key: _plain(pair.value) for pair in span.attributes},
                        trace_state=span.trace_state,
                        resource={pair.key: _plain(pair.value) for pair in resource.resource.attributes},
                    )
                    for span in scope.spans
                ]

    def _handler(self):
        listener = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                listener.headers.append(self.headers)
                listener._keep(self.path, body)
                self._send(*listener.answer(self.path))

            def _send(self, status, headers, body):
                try:
                    self.send_response(status)
                    for name, text in headers.items():
                        self.send_header(name, text)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except ConnectionError:
                    self.close_connection = True  # a client that had no more patience

            def log_message(self, *args):
                pass

        return Handler


def _plain(value):
    return getattr(value, value.WhichOneof("value") or "string_value")


@pytest.fixture
def make_otlp_listener(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    made = []

    def make(**options):
        made.append(OtlpListener(**options))
        return made[-1]

    yield make
    for listener in made:
        listener.close()


@pytest.fixture
def otlp_listener(make_otlp_listener):
    return make_otlp_listener()
