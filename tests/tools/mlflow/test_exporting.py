import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

from ragspan.tools.mlflow import MLflowSpanExporter


@pytest.fixture
def export():
    """Sends one span, and says whether it was delivered."""
    exporters = []

    def export(*, by=None, millis=60_000, **given):
        exporter = by or MLflowSpanExporter(**given)
        exporters.append(exporter)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        provider.get_tracer("test").start_span("rag chain").end()
        return exporter.force_flush(millis)

    yield export
    for exporter in exporters:
        exporter.shutdown()


@pytest.mark.parametrize(
    ("environment", "experiment", "expected"),
    [
        ({}, "support", "7"),
        ({}, "new", "2"),
        ({}, None, "0"),
        ({"MLFLOW_EXPERIMENT_ID": "3", "MLFLOW_EXPERIMENT_NAME": "support"}, None, "3"),
    ],
)
def test_spans_arrive_in_the_experiment_that_is_named_and_a_missing_one_is_made(
    mlflow, export, monkeypatch, environment, experiment, expected
):
    mlflow.experiments["support"] = "7"
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert export(tracking_uri=mlflow.url, experiment=experiment)
    assert mlflow.spans == {expected: ["rag chain"]}
    assert bool(mlflow.requests) is (expected in {"7", "2"}), "an id is not looked up"


def test_the_exporter_shows_who_we_are(mlflow, export, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ann")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "p")
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "t")

    assert export(tracking_uri=mlflow.url, experiment="new")
    assert {request.headers["authorization"] for request in mlflow.requests} == {"Bearer t"}


def test_spans_wait_for_a_server_that_is_away_and_for_another_process_that_makes_the_experiment(mlflow, export):
    mlflow.stop()
    exporter = MLflowSpanExporter(tracking_uri=mlflow.url, experiment="support")
    assert not export(by=exporter, millis=100)

    mlflow.start()
    mlflow.experiments["support"] = "7"
    mlflow.script.append((404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}))

    assert exporter.force_flush(60_000)
    assert mlflow.spans == {"7": ["rag chain"]}


@pytest.mark.parametrize(
    ("experiment", "replies", "reason"),
    [
        ("gone", [], "http_200"),  # it was deleted
        ("new", [None, (403, "Permission denied")], "http_403"),
        ("new", ["hangs"], "timeout"),
    ],
)
def test_an_experiment_that_cannot_be_had_fails_and_is_logged(mlflow, caplog, experiment, replies, reason):
    mlflow.experiments["gone"] = "4"
    mlflow.deleted_experiments.add("gone")
    mlflow.script += [mlflow.hangs if reply == "hangs" else reply for reply in replies]
    exporter = MLflowSpanExporter(tracking_uri=mlflow.url, timeout=1.0, experiment=experiment).inner

    assert exporter.export([]) is SpanExportResult.FAILURE
    assert f"mlflow: the experiment of the spans was not found: {reason}" in caplog.messages
