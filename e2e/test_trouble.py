"""Tools that are slow, busy, or want other credentials. The spans go there directly, the scores through a proxy."""

from __future__ import annotations

import itertools
import threading

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from application import METRICS, Application
from backends.proxy import Proxy
from backends.server import eventually
from ragspan.tools.mlflow import MLflowEmitter, MLflowSpanExporter
from ragspan.tools.phoenix import PhoenixEmitter
from traffic import SCRIPT

PATIENCE_SECONDS = 60.0
SLOWNESS_SECONDS = 20.0
SCORES = len(METRICS) * 2 * len(SCRIPT)


@pytest.fixture(params=["phoenix", "mlflow"])
def tool(request):
    return request.getfixturevalue(request.param), request.param


@pytest.fixture
def proxy(tool):
    with Proxy(tool[0].url) as between:
        yield between


@pytest.fixture
def application(tool, proxy):
    server, name = tool
    if name == "phoenix":
        exporter = OTLPSpanExporter(f"{server.url}/v1/traces")
        made = Application(
            exporter,
            writer=PhoenixEmitter(base_url=proxy.url, documents=False),
            resource={"openinference.project.name": "trouble"},
        )
    else:
        exporter = MLflowSpanExporter(tracking_uri=server.url, experiment="trouble")
        made = Application(exporter, writer=MLflowEmitter(tracking_uri=proxy.url))
    yield made
    made.close(timeout=0)


def answers_badly(times, status, **headers):
    """Answers so many requests itself, and lets all others through."""
    counted = itertools.count(1)
    return lambda _path: (status, headers) if next(counted) <= times else None


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_what_was_rejected_for_a_while_arrives_afterwards(application, proxy, status):
    proxy.behave = answers_badly(3, status, **{"Retry-After": "1"})

    application.ask_everything()
    assert application.engine.flush(PATIENCE_SECONDS)

    assert [code for _, code in proxy.answered].count(status) == 3
    assert application.writer.stats().delivered == SCORES


def test_a_slow_tool_gets_everything_and_holds_nobody_up(application, proxy):
    asked, let_go = threading.Event(), threading.Event()

    def keep_waiting(_path):
        asked.set()
        let_go.wait(SLOWNESS_SECONDS)

    proxy.behave = keep_waiting

    application.ask_everything()
    assert asked.wait(PATIENCE_SECONDS)
    eventually(
        lambda: len(application.seen.scored),
        until=(2 * len(SCRIPT)).__eq__,
        seconds=PATIENCE_SECONDS,
        what="the scores of all answers",
    )
    assert application.writer.stats().delivered == 0

    let_go.set()
    assert application.engine.flush(PATIENCE_SECONDS)
    assert application.writer.stats().delivered == SCORES


def test_what_a_tool_never_takes_is_counted_when_the_application_ends(application, proxy):
    proxy.behave = lambda _path: (401, {})

    application.ask_everything()
    application.close(timeout=3)

    stats = application.writer.stats()
    assert (stats.delivered, stats.waiting) == (0, 0)
    assert sum(stats.dropped.values()) + sum(stats.rejected.values()) == SCORES
