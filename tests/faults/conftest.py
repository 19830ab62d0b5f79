"""What the tests of faults share. Every engine that a test makes is checked for its law of conservation at the end.

Where each fault is tested, here unless another place is named:

- The judge: `test_judge.py`; what its client makes of an endpoint's answers: `tests/judges/test_openai.py`.
- The exporter: `test_exporter.py`; a provider that hangs or raises by itself: `tests/telemetry/test_flushing.py`.
- A full queue, by count and by bytes, oldest and newest: `tests/engine/test_scoring_engine.py`; bursts from many threads,
  records of 10 MB, and memory while nothing is scored: `test_load.py`.
- A fork: `tests/engine/test_lifecycle_fork.py`; with a judge, an exporter or multiprocessing in mid-work:
  `tests/environments/test_forks.py`; under gunicorn: `tests/environments/test_servers.py`.
- The end of the process: `tests/engine/test_lifecycle_exit.py`, which also makes the engine before and after the
  TracerProvider; by signals and by `os._exit`, with a judge and an exporter: `tests/environments/test_exits.py`; under uvicorn,
  with and without reloading: `tests/environments/test_servers.py`.
- A clock that goes backwards: `tests/environments/test_clock.py`.
- A capture that raises: `tests/engine/test_scoring_engine.py`. A metric that raises, `BaseException` included, or never
  returns: `tests/engine/test_metric_run.py`. An emitter that raises or hangs: `tests/engine/test_emission.py`. That of all
  these nothing else suffers, in any order: `test_any_order.py`.
- A worker that dies: `tests/engine/test_worker.py`. An engine after another, in tests say: `test_reuse.py`.
"""

from __future__ import annotations

import gzip
import queue
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ragspan.engine import ScoringEngine
from ragspan.outcomes import Score
from ragspan.records import RagRecord
from ragspan.telemetry.base import ScoreEmitter

PATIENCE = 60.0
"""Seconds after which a test gives up waiting for what should have come at once."""

GRACE = 2.0
"""Seconds by which a busy machine may exceed a limit; what hangs in a test hangs for longer."""


@dataclass
class Constant:
    """A metric with the same score for every record."""

    name: str = "constant"

    async def score(self, record):
        return Score(value=1.0)


@dataclass
class Gated:
    """A metric that scores nothing until the test lets it."""

    name: str = "gated"
    started: queue.SimpleQueue[RagRecord] = field(default_factory=queue.SimpleQueue)
    _gate: threading.Event = field(default_factory=threading.Event)

    def score(self, record):
        self.started.put(record)
        self._gate.wait()
        return Score(value=1.0)

    def release(self):
        self._gate.set()


class Counting(ScoreEmitter):
    """An emitter that tells when it has been given as many records as a test waits for."""

    score_wait = PATIENCE

    def __init__(self, awaited):
        self.scored = []
        self.all_here = threading.Event()
        self._awaited = awaited

    def emit(self, scored):
        self.scored.append(scored)
        if len(self.scored) >= self._awaited:
            self.all_here.set()


class Collector:
    """An OTLP endpoint on this machine, which keeps the spans that it is sent.

    Args:
        status: what it answers.
        listening: whether it refuses connections.
    """

    def __init__(self, *, status=200, listening=True):
        self.status = status
        self.answers = threading.Event()
        self.answers.set()
        self.asked = threading.Event()
        self._spans = queue.SimpleQueue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(), bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.server_bind()
        self.port = self._server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        if listening:
            self._server.server_activate()
            self._thread.start()

    def next(self):
        """The name and the attributes of the next span."""
        return self._spans.get(timeout=PATIENCE)

    def received(self):
        """All that is there, without waiting."""
        spans = []
        while not self._spans.empty():
            spans.append(self._spans.get())
        return spans

    def close(self):
        self.answers.set()
        if self._thread.ident is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def keep(self, body):
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self._spans.put((span.name, {pair.key: _plain(pair.value) for pair in span.attributes}))

    def _handler(self):
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.asked.set()
                collector.answers.wait()
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                if collector.status == 200 and self.path == "/v1/traces":
                    collector.keep(body)
                try:
                    self.send_response(collector.status)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                except ConnectionError:
                    self.close_connection = True  # an exporter that gave up has hung up

            def log_message(self, *args):
                pass

        return Handler


def a_record(**changes):
    return RagRecord(**({"question": "Why?", "contexts": ["Because."], "response": "Because."} | changes))


def _plain(value):
    kind = value.WhichOneof("value")
    return None if kind is None else getattr(value, kind)


@pytest.fixture
def fakes() -> ModuleType:
    """This module: the fakes by their names."""
    return sys.modules[__name__]


@pytest.fixture(autouse=True)
def nothing_on_the_way(monkeypatch):
    """No proxy of this machine stands between the tests and the servers that they start."""
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def assert_conserved():
    """Checks that every submitted capture is in exactly one place; returns the counts."""

    def check(engine):
        stats = engine.stats()
        assert stats.submitted == stats.queued + stats.in_flight + stats.finished + sum(stats.dropped.values())
        assert stats.finished == stats.scored + stats.nothing_to_score
        return stats

    return check


@pytest.fixture
def make_engine(assert_conserved):
    """Makes engines that are checked and shut down at the end, with all that hangs in them let go."""
    made = []

    def make(*metrics, emitters=(), **options):
        engine = ScoringEngine(metrics=metrics, emitters=emitters, **options)
        made.append((engine, metrics))
        return engine

    yield make
    for engine, metrics in made:
        assert_conserved(engine)
        for metric in metrics:
            getattr(metric, "release", lambda: None)()
        engine.shutdown(PATIENCE)
        stats = assert_conserved(engine)
        assert (stats.queued, stats.in_flight) == (0, 0)


@pytest.fixture
def make_collector():
    """Makes OTLP endpoints."""
    made = []

    def make(**options):
        made.append(Collector(**options))
        return made[-1]

    yield make
    for collector in made:
        collector.close()
