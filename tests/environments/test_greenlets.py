"""gevent and eventlet: they patch what starts processes, and a fork by them runs the greenlets of the application a second time.

No process of ours may be started that way. These tests have failed where one was.
"""

from __future__ import annotations

import collections
import contextlib
import http.client
import importlib
import shutil
import signal
import threading
import urllib.parse
from pathlib import Path

import pytest
from programs import Program
from waiting import PATIENCE

pytestmark = pytest.mark.slow

APPLICATION = Path(__file__).parent / "deployed"
GUNICORN = (
    *("-m", "gunicorn", "--no-control-socket", "--worker-class=gevent", "--workers=1", "--graceful-timeout=30"),
    *("--bind=127.0.0.1:0", "effects:wsgi"),
)
CLIENTS, REQUESTS, ANSWERS = 12, 40, 300


@pytest.fixture
def start(otlp_listener, tmp_path):
    """Starts a program beside the application that the deploy table runs."""
    shutil.copytree(APPLICATION, tmp_path, dirs_exist_ok=True)
    environment = {
        "PYTHONUNBUFFERED": "1",
        "CONFIGURES": "yes",
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_EXPORTER_OTLP_ENDPOINT": otlp_listener.url,
        "RAGSPAN_EXIT_TIMEOUT": "60",
    }
    started = []

    def start_program(*command):
        started.append(Program(*command, folder=tmp_path, environment=environment))
        return started[-1]

    yield start_program
    for program in started:
        program.close()


@pytest.fixture
def scored(otlp_listener):
    """How often each answer has come with a score, by name."""

    def received():
        return collections.Counter(
            span.name.removeprefix("invoke_workflow ")
            for span in otlp_listener.spans
            if span.name.startswith("invoke_") and "ragspan.score.context_adherence" in span.attributes
        )

    return received


def written(path):
    """The processes that wrote the lines, and how often each name stands there."""
    lines = [line.split() for line in path.read_text().splitlines()]
    return {int(pid) for pid, _ in lines}, collections.Counter(name for _, name in lines)


@pytest.mark.parametrize("library", ["gevent", "eventlet"])
def test_each_answer_of_a_pool_of_greenlets_is_given_once_and_scored_once(start, scored, tmp_path, library):
    pytest.importorskip(library, reason="runs in `make test-environments`")
    program = start("-W", "ignore", "greenlets.py", library, "given", str(ANSWERS))

    assert program.wait() == 0, program.output
    each_once = collections.Counter(map(str, range(ANSWERS)))
    assert written(tmp_path / "given") == ({program.pid}, each_once)
    assert scored() == each_once


def test_clients_of_a_gevent_server_get_their_own_replies_and_effects_happen_once(start, scored, tmp_path):
    """Connections are kept alive, as a proxy does: that is how a reply of another process gets to another user."""
    pytest.importorskip("gevent", reason="runs in `make test-environments`")
    server = start(*GUNICORN)
    address = urllib.parse.urlsplit(server.server_address())
    wrong = []

    def ask(client):
        with contextlib.closing(
            http.client.HTTPConnection(address.hostname, address.port, timeout=PATIENCE)
        ) as connection:
            for number in range(REQUESTS):
                name = f"{client}-{number}"
                try:
                    connection.request("GET", f"/{name}")
                    body = connection.getresponse().read().decode()
                except Exception as error:
                    wrong.append((name, error))
                    connection.close()
                else:
                    wrong.extend([(name, body)] if body != name else [])

    clients = [threading.Thread(target=ask, args=[client]) for client in range(CLIENTS)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    server.send(signal.SIGTERM)

    assert server.wait() == 0
    assert wrong == []
    each_once = collections.Counter(f"{client}-{number}" for client in range(CLIENTS) for number in range(REQUESTS))
    processes, effects = written(tmp_path / "effects")
    assert (len(processes), effects) == (1, each_once)
    assert scored() == each_once


def test_gunicorn_has_no_worker_for_eventlet():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("gunicorn.workers.geventlet")
