"""A server on this machine that behaves as Phoenix 20.26 was seen to behave."""

from __future__ import annotations

import gzip
import json
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragspan.judges.base import ContextVerdict
from ragspan.outcomes import Score, ScoredRecord
from ragspan.records import RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan_phoenix import PhoenixAnnotations

ANSWER = SpanAnchor(trace_id=0xA1, span_id=0xB2)
SEARCH = SpanAnchor(trace_id=0xA1, span_id=0xC3)
RECORDED = Path(__file__).with_name("recorded_traces.json")
"""What Phoenix 20.26.1 answered: two answers that ragspan traced, one of OpenInference's LangChain and one of its DSPy."""
PAGE = 3


class FakePhoenix:
    """Takes annotations of the spans that it knows.

    `spans` has the number of documents of each span that has arrived, by its hexadecimal id; `stored` the rows, by what
    makes Phoenix replace one. `script` holds replies to the next requests, in place of what Phoenix would do: a status, or
    a status with a body and headers, or a function of the request's rows. The project `default` has what was recorded.
    """

    def __init__(self):
        self.recorded = json.loads(RECORDED.read_text())
        self.spans = {span["context"]["span_id"]: 0 for span in self.recorded["spans"]}
        self.span_names = []
        self.stored = {}
        self.requests = []
        self.headers = []
        self.script = deque()
        self.requested = threading.Event()
        self._released = threading.Event()
        self._server = None
        self.port = 0
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def rows(self):
        return list(self.stored.values())

    def start(self):
        """Listen, at the same address as before."""
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self):
        """Refuse connections."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def hangs(self, rows):
        """A reply that does not come before the test is over."""
        self._released.wait(timeout=60)
        return 503

    def close(self):
        self._released.set()
        self.stop()

    def add_spans(self, *spans, documents=0):
        self.spans.update({format(span.span_id, "016x"): documents for span in spans})

    def take_spans(self, body):
        """Spans as an exporter sends them; how many documents each has stands in its attributes."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                self.span_names.append(span.name)
                positions = {
                    pair.key.split(".")[2] for pair in span.attributes if pair.key.startswith("retrieval.documents.")
                }
                self.spans[span.span_id.hex()] = len(positions)

    def reply_to(self, path, query, rows):
        if self.script:
            reply = self.script.popleft()
            if callable(reply):
                reply = reply(rows)
            if reply is not None:
                return reply
        if path not in {"/v1/span_annotations", "/v1/document_annotations"}:
            return 404, '{"detail":"Not Found"}'
        assert query == {"sync": ["true"]}, "without it Phoenix keeps rows in memory, and says that it has them"
        missing = {row["span_id"] for row in rows} - set(self.spans)
        if missing:
            return 404, f"Spans with IDs {', '.join(missing)} do not exist."
        for row in rows:
            documents = self.spans[row["span_id"]]
            if "document_position" in row and row["document_position"] not in range(documents):
                place = f"{row['document_position']} is out of bounds for span {row['span_id']} (max: {documents - 1})"
                return 422, f"Document position {place}"
        for row in rows:
            self.stored[row["span_id"], row["name"], row["identifier"], row.get("document_position")] = row
        return 200, json.dumps({"data": [{"id": str(number)} for number in range(len(rows))]})

    def page_of(self, path, query):
        """A page of what a project has."""
        if self.script and (reply := self.script.popleft()) is not None:
            return reply
        _, _, _, project, kind = path.split("/")
        if project not in {"default", "empty"}:
            return 404, f"Project with identifier {project} not found"
        found = self.recorded[kind] if project == "default" else []
        for name, key in (
            ("trace_id", lambda row: row["context"]["trace_id"]),
            ("span_ids", lambda row: row["span_id"]),
            ("include_annotation_names", lambda row: row["name"]),
        ):
            found = [row for row in found if name not in query or key(row) in query[name]]
        if "start_time" in query:
            found = [row for row in found if row["start_time"] >= query["start_time"][0]]
        first = int(query.get("cursor", ["0"])[0])
        following = str(first + PAGE) if len(found) > first + PAGE else None
        return 200, json.dumps({"data": found[first : first + PAGE], "next_cursor": following})

    def _handler(self):
        phoenix = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                address = urlsplit(self.path)
                query = parse_qs(address.query)
                phoenix.requests.append((address.path, query))
                phoenix.headers.append(self.headers)
                self._send(phoenix.page_of(address.path, query))

            def do_POST(self):
                address = urlsplit(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if address.path == "/v1/traces":
                    phoenix.take_spans(gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
                    rows, phoenix_reply = [], (200, "", {"Content-Type": "application/x-protobuf"})
                else:
                    rows, phoenix_reply = json.loads(body)["data"], None
                phoenix.requests.append((address.path, rows))
                phoenix.headers.append(self.headers)
                phoenix.requested.set()
                self._send(phoenix_reply or phoenix.reply_to(address.path, parse_qs(address.query), rows))

            def _send(self, reply):
                status, body, headers = (*((reply,) if isinstance(reply, int) else reply), "", {})[:3]
                content = body.encode()
                try:
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(content)))
                    self.send_header("Connection", "close")
                    for name, value in (headers or {}).items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content)
                except ConnectionError:
                    pass  # a client that timed out has hung up
                self.close_connection = True

            def log_message(self, *args):
                pass

        return Handler


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    """No proxy stands in the way, and nothing of the machine's own Phoenix is found."""
    monkeypatch.setenv("NO_PROXY", "*")
    names = ("ENDPOINT", "COLLECTOR_ENDPOINT", "BASE_URL", "HOST", "PORT", "API_KEY", "CLIENT_HEADERS")
    for name in (*(f"PHOENIX_{name}" for name in names), "OTEL_EXPORTER_OTLP_ENDPOINT", "RAGSPAN_EXPLANATIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def phoenix():
    """A Phoenix that has the answer's span, and the search's with three documents."""
    server = FakePhoenix()
    server.add_spans(ANSWER)
    server.add_spans(SEARCH, documents=3)
    yield server
    server.close()


@pytest.fixture
def make_emitter(phoenix):
    emitters = []

    def make(**options):
        emitters.append(PhoenixAnnotations(**{"base_url": phoenix.url, **options}))
        return emitters[-1]

    yield make
    for emitter in emitters:
        emitter.shutdown(0.1)


@pytest.fixture
def make_scored():
    """An answer whose search found three passages, of which the last two, the other way round, reached the prompt."""

    def make(outcomes=None, *, span=ANSWER, retrieval_spans=(SEARCH,), record_id="record-1", **given):
        found = tuple(RetrievedContext(text=f"passage {rank}", id=f"id-{rank}", rank=rank) for rank in range(3))
        record = RagRecord(
            question="q",
            contexts=[found[2], found[1]],
            response="r",
            record_id=record_id,
            retrievals=(Retrieval(name="store", query="q", started_ns=1, ended_ns=2, contexts=found),),
        )
        outcomes = {"faithfulness": Score(value=0.5, threshold=0.8)} if outcomes is None else outcomes
        fields = {"record": record, "outcomes": outcomes, "span": span, "retrieval_spans": retrieval_spans}
        return ScoredRecord(**{**fields, **given})

    return make


@pytest.fixture
def utilization():
    """A score that says of each of the two passages whether it was useful."""
    verdicts = (ContextVerdict(index=0, useful=True, explanation="cited"), ContextVerdict(index=1, useful=False))
    return Score(value=1.0, judge="overlap", evidence=verdicts)
