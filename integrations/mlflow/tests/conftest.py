"""An MLflow server on this machine that behaves as MLflow 3.17 was seen to behave, and can be made to fail."""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragspan import RagRecord, Score, ScoredRecord, SpanAnchor
from ragspan_mlflow import MLflowAssessments
from ragspan_mlflow.emitter import assessment_of

TRACES = "/api/3.0/mlflow/traces"
EXPERIMENTS = "/api/2.0/mlflow/experiments"
MISSING = 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "not found"}
FORBIDDEN = 403, "Permission denied"
RECORDED = Path(__file__).with_name("recorded_traces.json")
"""What MLflow 3.17.2 answered: two answers that ragspan traced, one of OpenInference's LangChain and one of its DSPy."""
PAGE = 3


class FakeMLflow:
    """A server with an SQL store; the experiment 0 has what was recorded.

    Args:
        traces: ids of the traces that are there.
        has_users: answers as MLflow's basic authentication does to one who is no administrator.
        answers_for_many: has the request for several traces.
        keeps_ids: takes the assessments' ids from those who create them.
    """

    def __init__(self, traces=(), *, has_users=False, answers_for_many=True, keeps_ids=True):
        self.assessments = {trace_id: [] for trace_id in traces}
        self.recorded = {one["trace_info"]["trace_id"]: one for one in json.loads(RECORDED.read_text())}
        self.assessments |= {trace_id: [] for trace_id in self.recorded}
        self.experiments = {"Default": "0"}
        self.deleted_experiments = set()
        self.spans = {}
        self.has_users = has_users
        self.answers_for_many = answers_for_many
        self.keeps_ids = keeps_ids
        self.read_only = False
        self.calls = []
        self.headers = []
        self.connections = set()
        self.script = deque()  # of what is answered in place of the next replies; None stands for the usual one
        self.answer = None  # a function of method and path that answers in place of the server, or returns None
        self.before_a_creation = lambda assessment: None
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(), bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.server_bind()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def listen(self):
        self._server.server_activate()
        self._thread.start()

    def close(self):
        self.released.set()
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def hang(self):
        """What `answer` can do for a server that gives no sign of life."""
        self.released.wait()
        return 500, "too late"

    def values(self, trace_id):
        return {item["assessment_name"]: item["feedback"].get("value") for item in self.assessments[trace_id]}

    def methods(self):
        return [method for method, path in self.calls if "/assessments" in path]

    def reply_to(self, method, target, headers, body):
        path = urlsplit(target).path
        with self._lock:
            self.calls.append((method, path))
            self.headers.append(headers)
            scripted = self.script.popleft() if self.script else None
        scripted = scripted or (self.answer and self.answer(method, path))
        if scripted:
            return scripted
        with self._lock:
            return self._reply(method, path, parse_qs(urlsplit(target).query), headers, body)

    def _reply(self, method, path, query, headers, body):
        if path == "/v1/traces":
            return self._take_spans(headers, body)
        given = json.loads(body) if body else {}
        if path.startswith(EXPERIMENTS):
            return self._experiment(path, query, given)
        if path == f"{TRACES}/batchGetInfos":
            return self._many(given["trace_ids"]) if self.answers_for_many else (405, "<h1>Method Not Allowed</h1>")
        if path == f"{TRACES}/search":
            return self._page(given)
        if path == f"{TRACES}/batchGet":
            return 200, {"traces": [self.recorded[trace_id] for trace_id in reversed(query["trace_ids"])]}
        trace_id, _, rest = path.removeprefix(f"{TRACES}/").partition("/")
        if trace_id not in self.assessments:
            return FORBIDDEN if self.has_users else MISSING
        if method == "GET":
            return 200, {"trace": {"trace_info": self._info(trace_id)}}
        if self.read_only:
            return FORBIDDEN
        return self._write(method, trace_id, rest.removeprefix("assessments").strip("/"), given)

    def _page(self, asked):
        (place,) = asked["locations"]
        infos = [one["trace_info"] for one in self.recorded.values()]
        found = infos if place["mlflow_experiment"]["experiment_id"] == "0" else []
        if "filter" in asked:
            since = int(asked["filter"].removeprefix("timestamp_ms >= "))
            moments = [datetime.fromisoformat(one["request_time"].replace("Z", "+00:00")) for one in found]
            found = [one for one, moment in zip(found, moments, strict=True) if moment.timestamp() * 1000 >= since]
        first = int(asked["page_token"] or 0)
        following = {"next_page_token": str(first + PAGE)} if len(found) > first + PAGE else {}
        return 200, {"traces": found[first : first + PAGE], **following}

    def _many(self, trace_ids):
        if self.has_users and not set(trace_ids) <= set(self.assessments):
            return FORBIDDEN
        return 200, {"trace_infos": [self._info(trace_id) for trace_id in trace_ids if trace_id in self.assessments]}

    def _info(self, trace_id):
        return {"trace_id": trace_id, "assessments": self.assessments[trace_id]}

    def _write(self, method, trace_id, assessment_id, given):
        present = self.assessments[trace_id]
        assessment = given["assessment"]
        if method == "POST":
            self.before_a_creation(assessment)
            if not self.keeps_ids:
                assessment = assessment | {"assessment_id": f"a-{len(present)}"}
            if any(item["assessment_id"] == assessment["assessment_id"] for item in present):
                return 500, {"error_code": "INTERNAL_ERROR", "message": "due to a constraint violation."}
            present.append(assessment)
            return 200, {"assessment": assessment}
        for item in present:
            if item["assessment_id"] == assessment_id:
                for field in given["update_mask"].split(","):
                    item[field] = (
                        item["metadata"] | assessment["metadata"] if field == "metadata" else assessment[field]
                    )
                return 200, {"assessment": item}
        return MISSING

    def _experiment(self, path, query, given):
        if path.endswith("/create"):
            if given["name"] in self.experiments:
                return 400, {"error_code": "RESOURCE_ALREADY_EXISTS"}
            self.experiments[given["name"]] = str(len(self.experiments))
            return 200, {"experiment_id": self.experiments[given["name"]]}
        (name,) = query["experiment_name"]
        if name not in self.experiments:
            return MISSING
        stage = "deleted" if name in self.deleted_experiments else "active"
        return 200, {"experiment": {"experiment_id": self.experiments[name], "lifecycle_stage": stage}}

    def _take_spans(self, headers, body):
        if "x-mlflow-experiment-id" not in headers:
            return 422, {"detail": "missing header"}
        message = ExportTraceServiceRequest.FromString(body)
        names = self.spans.setdefault(headers["x-mlflow-experiment-id"], [])
        for resource in message.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    names.append(span.name)
                    self.assessments.setdefault(f"tr-{span.trace_id.hex()}", [])
        return 200, {}

    def _handler(self):
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self):
                fake.connections.add(self.client_address)
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, answer, *headers = fake.reply_to(self.command, self.path, self.headers, body)
                data = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
                self.send_response(status)
                for name, value in headers[0].items() if headers else ():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PATCH = handle_any

            def handle_one_request(self):
                try:
                    super().handle_one_request()
                except ConnectionError:  # whoever asked has given up
                    self.close_connection = True

            def log_message(self, *arguments):
                pass

        return Handler


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith(("MLFLOW_", "OTEL_", "RAGSPAN_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def mlflow():
    """A server that has two traces."""
    server = FakeMLflow([trace(1), trace(2)])
    server.listen()
    yield server
    server.close()


@pytest.fixture
def closed_port():
    """The address of a server that refuses connections; it can be told to listen."""
    server = FakeMLflow([trace(1), trace(2)])
    yield server
    server.close()


@pytest.fixture
def connect():
    """Makes connections, and closes them."""
    made = []

    def connect(server, *, parallel=1, timeout=5.0):
        made.append(MLflowAssessments(tracking_uri=server.url, timeout=timeout))
        made[-1].parallel = parallel
        return made[-1]

    yield connect
    for writer in made:
        writer.shutdown(0)


def trace(number):
    return f"tr-{number:032x}"


def scored(outcomes, *, answer=1, record="r1", span=0xA1):
    """The outcomes of an answer in the trace of this number."""
    record = RagRecord(question="Why?", contexts=["Because."], response="So.", record_id=record)
    return ScoredRecord(record=record, outcomes=outcomes, span=SpanAnchor(trace_id=answer, span_id=span))


def feedback(value=0.9, *, metric="faithfulness", answer=1, record="r1", **facts):
    """One annotation, as the emitter makes it."""
    score = Score(value=value, **{"judge": "openai:gpt-4o-mini", "threshold": 0.5, **facts})
    (item,) = annotations(scored({metric: score}, answer=answer, record=record))
    return item


def annotations(given, **options):
    """Those of an answer, as the emitter makes them."""
    emitter = MLflowAssessments(
        **{"tracking_uri": "http://localhost", "explanations": True, "failures": True, **options}
    )
    return list(emitter.items_of(given, given.span))


@pytest.fixture
def make():
    """The two builders above, for tests that cannot import them."""

    class Make:
        trace = staticmethod(trace)
        scored = staticmethod(scored)
        feedback = staticmethod(feedback)
        annotations = staticmethod(annotations)
        assessment = staticmethod(assessment_of)
        server = FakeMLflow

    return Make
