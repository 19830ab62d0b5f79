"""Answers that a worker scores, with a real Phoenix and a real MLflow behind it: spans first, then the tool's own scores."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter

import pytest
from servers.broker import Broker

from application import METRICS, LangChainHandler
from backends.server import ARTEFACTS, eventually
from ragspan_nats import NatsSink
from traffic import SCRIPT, ask_langchain

SECONDS = 60.0
EVERYTHING = Counter({metric: len(SCRIPT) for metric in METRICS})


class InPhoenix:
    """What of a fleet's answers can be seen in Phoenix."""

    def __init__(self, phoenix):
        self._phoenix = phoenix
        self.settings = {
            "RAGSPAN_EMITTERS": "otel,phoenix",
            "PHOENIX_COLLECTOR_ENDPOINT": phoenix.url,
            "OTEL_EXPORTER_OTLP_ENDPOINT": phoenix.url,
            "OTEL_RESOURCE_ATTRIBUTES": "openinference.project.name=fleet",
        }

    def scores(self):
        answers = [span["context"]["span_id"] for span in self._phoenix.spans("fleet") if span["span_kind"] == "CHAIN"]
        return Counter(one["name"] for one in self._phoenix.annotations("fleet", answers)) if answers else Counter()


class InMLflow:
    """What of a fleet's answers can be seen in MLflow."""

    def __init__(self, mlflow):
        self._mlflow = mlflow
        self.settings = {
            "RAGSPAN_EMITTERS": "mlflow,otel",
            "MLFLOW_TRACKING_URI": mlflow.url,
            "MLFLOW_EXPERIMENT_NAME": "fleet",
            "OTEL_TRACES_EXPORTER": "ragspan_mlflow",
        }

    def scores(self):
        traces = [trace["trace_id"] for trace in self._mlflow.traces("fleet")]
        return Counter(one["assessment_name"] for trace in traces for one in self._mlflow.assessments(trace))


@pytest.fixture(params=["phoenix", "mlflow"])
def tool(request):
    return (InPhoenix if request.param == "phoenix" else InMLflow)(request.getfixturevalue(request.param))


@pytest.fixture
def broker(tmp_path):
    with Broker(tmp_path / "broker") as made:
        yield made


@pytest.fixture
def start_worker(broker, tool):
    """Starts `ragspan worker` with the tool's settings; the process."""
    started = []

    def start():
        with (ARTEFACTS / "worker.log").open("ab") as log:
            command = [sys.executable, "-m", "ragspan.cli", "worker", "--broker", broker.url]
            started.append(subprocess.Popen(command, env=os.environ | tool.settings, stdout=log, stderr=log))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_the_tool_has_all_scores_of_what_has_left_the_stream(broker, tool, start_worker):
    with NatsSink(broker.url) as sink:
        handler = LangChainHandler(sink=sink)
        for asked in SCRIPT:
            ask_langchain(asked, handler)
        assert sink.flush(SECONDS)
    assert broker.stream("ragspan").messages == len(SCRIPT)

    worker = start_worker()
    eventually(lambda: broker.stream("ragspan").messages, until=(0).__eq__, seconds=SECONDS, what="an empty stream")

    assert tool.scores() == EVERYTHING
    assert broker.stream("ragspan-dead-letters").messages == 0
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(SECONDS) == 0
