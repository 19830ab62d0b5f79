from __future__ import annotations

import os
import socket
import socketserver
import threading

import pytest

from ragspan.doctor.examination import examine


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
def examined(set_variables):
    """Has the doctor look at an environment. Judged in this process: a helper that starts up takes its time."""

    def examine_with(*, timeout=60.0, **variables):
        set_variables(**({"RAGSPAN_JUDGING": "thread"} | variables))
        return Findings(examine(timeout=timeout))

    return examine_with


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
