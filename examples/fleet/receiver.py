"""A tracing tool of a hundred lines: takes OTLP over HTTP, and tells of every scored answer in a line."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

_SCORE = "ragspan.score."


class Receiver:
    """Listens on a free port of this machine.

    Args:
        tell: called with a line for each scored answer that is new.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._seen: set[bytes] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _take(self, body: bytes) -> None:
        for span_id, line in scored_answers(ExportTraceServiceRequest.FromString(body)):
            # A worker that dies at a bad moment has its records scored again; the span is the same then.
            if span_id not in self._seen:
                self._seen.add(span_id)
                self._tell(line)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        take = self._take

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                take(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """There is nothing to tell of a request that a line with scores does not tell."""

        return Handler


def scored_answers(request: ExportTraceServiceRequest) -> Iterator[tuple[bytes, str]]:
    """The ids of the spans with scores, and what is to be said of each."""
    for resource in request.resource_spans:
        worker = texts(resource.resource.attributes).get("service.instance.id", "?")
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            scores = [
                f"{pair.key.removeprefix(_SCORE)} {pair.value.double_value:.2f}"
                for pair in span.attributes
                if pair.key.startswith(_SCORE)
            ]
            if scores:
                question = texts(span.attributes).get("input.value", span.name)
                yield span.span_id, f"{question:36} {'  '.join(sorted(scores))}  by {worker}"


def texts(attributes: Iterable[KeyValue]) -> dict[str, str]:
    return {pair.key: pair.value.string_value for pair in attributes if pair.value.HasField("string_value")}
