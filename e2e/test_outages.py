"""Tools that are away: when the application starts, for half a minute in the middle, and back on the same port and data.

Both at once, since the time is spent waiting. What the tests look at is what is in the tools in the end.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

from application import METRICS, Application
from backends.mlflow import MLflow
from backends.phoenix import Phoenix
from backends.server import ARTEFACTS, eventually
from ragspan.tools.mlflow import MLflowEmitter
from ragspan.tools.phoenix import PhoenixEmitter
from ragspan.tools.spans import RetryingSpanExporter
from traffic import SCRIPT

PROJECT = "outages"
OUTAGE_SECONDS = 30.0
PATIENCE_SECONDS = 120.0
ROUNDS = 4


@dataclass
class Told:
    """A tool and an application, after all that happened to them."""

    server: object
    application: Application
    exporter: RetryingSpanExporter

    def answers(self):
        return list(self.application.seen.scored)


@pytest.fixture(scope="module")
def both(tmp_path_factory, nothing_from_outside):
    folder = tmp_path_factory.mktemp("outages")
    phoenix = Phoenix(folder / "phoenix", log=ARTEFACTS / "phoenix-outages.log")
    mlflow = MLflow(folder / "mlflow", log=ARTEFACTS / "mlflow-outages.log")
    told = _application_of(phoenix), _application_of_mlflow(mlflow)
    try:
        _live_through_outages(told)
        yield told
    finally:
        for one in told:
            one.application.close(timeout=5)
            one.server.stop()


def _application_of(phoenix: Phoenix) -> Told:
    exporter = RetryingSpanExporter(OTLPSpanExporter(f"{phoenix.url}/v1/traces"))
    writer = PhoenixEmitter(base_url=phoenix.url)
    resource = {"openinference.project.name": PROJECT}
    return Told(phoenix, Application(exporter, writer=writer, resource=resource), exporter)


def _application_of_mlflow(mlflow: MLflow) -> Told:
    writer = MLflowEmitter(tracking_uri=mlflow.url, experiment=PROJECT)
    exporter = writer.span_exporter()
    return Told(mlflow, Application(exporter, writer=writer), exporter)


def _live_through_outages(told: tuple[Told, ...]) -> None:
    _ask(told)  # before the tools were ever there
    _start(told)
    _deliver(told)
    _ask(told)
    for one in told:  # with scores and spans still on their way
        one.server.stop()
    stopped = time.monotonic()
    _ask(told)
    eventually(
        lambda: time.monotonic() - stopped, until=OUTAGE_SECONDS.__le__, seconds=2 * OUTAGE_SECONDS, what="the outage"
    )
    _start(told)
    _ask(told)
    _deliver(told)


def _ask(told: tuple[Told, ...]) -> None:
    for one in told:
        one.application.ask_everything()


def _start(told: tuple[Told, ...]) -> None:
    for one in told:
        one.server.launch()
    for one in told:
        one.server.wait_until_ready()


def _deliver(told: tuple[Told, ...]) -> None:
    for one in told:
        assert one.application.engine.flush(PATIENCE_SECONDS)


@pytest.fixture
def phoenix_told(both):
    return both[0]


@pytest.fixture
def mlflow_told(both):
    return both[1]


@pytest.fixture(params=["phoenix", "mlflow"])
def told(request, both):
    return both[0] if request.param == "phoenix" else both[1]


def test_every_answer_was_scored(told):
    assert len(told.answers()) == ROUNDS * 2 * len(SCRIPT)


def test_no_score_and_no_span_was_lost_on_the_way(told):
    scores, spans = told.application.writer.stats(), told.exporter.stats()

    assert (scores.rejected, scores.dropped, scores.waiting) == ({}, {}, 0)
    assert scores.delivered >= len(METRICS) * len(told.answers())
    assert (spans.rejected, spans.dropped, spans.waiting) == ({}, {}, 0)


def test_phoenix_has_every_score_once(phoenix_told):
    server, answers = phoenix_told.server, phoenix_told.answers()

    assert len(server.spans(PROJECT)) == 4 * len(answers)
    found = Counter(
        (annotation["span_id"], annotation["name"])
        for answer in answers
        for annotation in server.annotations(PROJECT, [f"{answer.span.span_id:016x}"])
    )
    assert found == Counter((f"{answer.span.span_id:016x}", metric) for answer in answers for metric in METRICS)


def test_mlflow_has_every_score_once(mlflow_told):
    server, answers = mlflow_told.server, mlflow_told.answers()

    found = Counter(
        (trace_id, assessment["assessment_name"])
        for trace_id in (f"tr-{answer.span.trace_id:032x}" for answer in answers)
        for assessment in server.assessments(trace_id)
    )
    assert found == Counter((f"tr-{answer.span.trace_id:032x}", metric) for answer in answers for metric in METRICS)
