from __future__ import annotations

import os
import re
import socket
import socketserver
import threading
from dataclasses import astuple
from pathlib import Path

import pytest
from whole_records import WholeRecords

from ragspan.doctor.examination import examine

WHOLE = WholeRecords(Path(__file__).with_name("whole_findings.json"))
CHANCE = re.compile(r"\b[0-9a-f]{16,}|(?<=:)\d{4,5}\b|\d+\.\d+ s\b")


class Findings(list):
    """What the doctor found."""

    def of(self, check):
        return Findings(finding for finding in self if finding.check == check)

    def states(self):
        return [finding.state for finding in self]

    def codes(self, state=None):
        """The codes of the findings in this state, or of all."""
        return [finding.code for finding in self if state in {None, finding.state}]


@pytest.fixture(autouse=True)
def a_plain_environment(monkeypatch):
    """Nothing that a developer or a CI has set changes what the doctor finds."""
    for name in list(os.environ):
        if name.startswith(("OTEL_", "RAGSPAN_", "OPENAI_")) or name.lower().endswith(("_proxy", "_ca_bundle")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def set_variables(monkeypatch):
    def set_all(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


@pytest.fixture
def examined(request, set_variables):
    """Has the doctor look at an environment. Judged in this process: a helper that starts up takes its time.

    What it says and advises is in a file, too: after a change that is meant, `WRITE_RECORDS=1 python -m pytest tests/doctor`.
    """
    seen = []

    def examine_with(*, timeout=60.0, **variables):
        set_variables(**({"RAGSPAN_JUDGING": "thread"} | variables))
        found = Findings(examine(timeout=timeout))
        lasting = (one for one in found if one.code not in {"versions", "no_integration"})
        seen.extend(CHANCE.sub("…", " | ".join(map(str, astuple(one)))) for one in lasting)
        return found

    yield examine_with
    known, found = WHOLE.told(f"{request.path.stem} {request.node.name}", seen)
    assert found == known


@pytest.fixture
def sent_to(otlp_listener, set_variables):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)
    return otlp_listener


@pytest.fixture
def refused_port():
    """A port that is taken, so that nobody else gets it, and where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def plain_port():
    """A port that speaks HTTP alone: it reads what comes, answers that it is no request, and waits until its client has gone."""

    class Plain(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(1 << 16)
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            self.request.recv(1 << 16)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Plain) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        yield server.server_address[1]
        server.shutdown()
        serving.join()


@pytest.fixture
def silent_port():
    """A port that takes connections and never says anything."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield listening.getsockname()[1]
