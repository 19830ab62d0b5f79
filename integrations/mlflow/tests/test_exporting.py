import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult

from ragspan import ConfigurationError
from ragspan.delivery import Unavailable
from ragspan.delivery.http import Endpoint
from ragspan_mlflow import MLflowSpanExporter
from ragspan_mlflow.exporting import ExperimentExporter, experiment_id


@pytest.fixture
def export():
    """Sends one span, and says whether it was delivered."""
    exporters = []

    def export(**given):
        exporter = MLflowSpanExporter(**given)
        exporters.append(exporter)
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        provider.get_tracer("test").start_span("rag chain").end()
        return exporter.force_flush(60_000)

    yield export
    for exporter in exporters:
        exporter.shutdown()


def test_spans_arrive_in_the_experiment_of_this_name(mlflow, export):
    mlflow.experiments["support"] = "7"

    assert export(tracking_uri=mlflow.url, experiment="support")
    assert mlflow.spans == {"7": ["rag chain"]}


def test_a_missing_experiment_is_made(mlflow, export):
    assert export(tracking_uri=mlflow.url, experiment="new")
    assert mlflow.spans == {mlflow.experiments["new"]: ["rag chain"]}


@pytest.mark.parametrize("number", [12, "12"])
def test_an_id_is_not_looked_up(mlflow, export, number):
    assert export(tracking_uri=mlflow.url, experiment=number)
    assert mlflow.spans == {"12": ["rag chain"]}
    assert mlflow.requests == []


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "0"),
        ({"MLFLOW_EXPERIMENT_ID": "3", "MLFLOW_EXPERIMENT_NAME": "support"}, "3"),
        ({"MLFLOW_EXPERIMENT_NAME": "support"}, "7"),
    ],
)
def test_the_environment_names_the_experiment(mlflow, export, monkeypatch, environment, expected):
    mlflow.experiments["support"] = "7"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow.url)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert export()
    assert mlflow.spans == {expected: ["rag chain"]}


def test_the_exporter_shows_who_we_are(mlflow, export, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ann")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "p")

    assert export(tracking_uri=mlflow.url, experiment="new", token="t")
    assert {request.headers["authorization"] for request in mlflow.requests} == {"Bearer t"}


def test_spans_wait_for_a_server_that_is_away(mlflow):
    mlflow.stop()
    provider = TracerProvider(shutdown_on_exit=False)
    exporter = MLflowSpanExporter(tracking_uri=mlflow.url, experiment="support")
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    provider.get_tracer("test").start_span("rag chain").end()
    assert not exporter.force_flush(100)

    mlflow.start()

    assert exporter.force_flush(60_000)
    assert list(mlflow.spans.values()) == [["rag chain"]]
    exporter.shutdown()


def test_nothing_is_sent_before_the_first_spans(mlflow):
    MLflowSpanExporter(tracking_uri=mlflow.url, experiment="new").shutdown()

    assert mlflow.requests == []


def test_an_experiment_that_cannot_be_had_fails_and_is_logged(mlflow, caplog):
    mlflow.experiments["gone"] = "4"
    mlflow.deleted_experiments.add("gone")
    exporter = ExperimentExporter(Endpoint(url=mlflow.url), "gone")

    assert exporter.export([]) is SpanExportResult.FAILURE
    assert "experiment of the spans was not found: http_200" in caplog.text
    exporter.shutdown()


def test_a_server_that_gives_no_sign_of_life_fails_and_is_logged(mlflow, caplog):
    mlflow.script.append(mlflow.hangs)
    exporter = ExperimentExporter(Endpoint(url=mlflow.url, timeout=1.0), "support")

    assert exporter.export([]) is SpanExportResult.FAILURE
    assert "timeout" in caplog.text


def test_two_processes_that_make_the_experiment_at_once_get_the_same(mlflow):
    """The other one is faster: it is missing when we look, and there when we make it."""
    mlflow.experiments["support"] = "7"
    mlflow.script.append((404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}))

    assert experiment_id(Endpoint(url=mlflow.url), "support") == "7"


def test_who_may_not_make_an_experiment_is_told(mlflow):
    mlflow.script += [None, (403, "Permission denied")]

    with pytest.raises(Unavailable):
        experiment_id(Endpoint(url=mlflow.url), "new")


def test_an_experiment_without_a_name_is_a_mistake():
    with pytest.raises(ConfigurationError, match="experiment"):
        MLflowSpanExporter(tracking_uri="http://localhost", experiment=" ")
