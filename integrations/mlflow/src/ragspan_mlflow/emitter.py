"""The emitter that makes scores MLflow assessments."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ragspan.config import CaptureContent, variable
from ragspan.delivery import Annotation, ScoreBackend, ScoreWriter
from ragspan.delivery.backend import Endpoint, basic
from ragspan.exceptions import ConfigurationError

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ragspan.delivery.writer import WriterOptions
    from ragspan_mlflow.exporting import MLflowSpanExporter


class MLflowAssessments(ScoreWriter):
    """Writes each score as feedback on the answer's span in MLflow: a column of the trace table, and a filter.

    It comes after the emitter that makes the span: `ScoringEngine(emitters=[OTelEmitter(), MLflowAssessments()])`, and the
    spans have to reach the same server, through `span_exporter` for instance. Scores wait for their spans to arrive. A
    score that is delivered again, after a lost answer or by a second run of the same records, changes what is there.

    A feedback has the metric's name and value, the explanation as its rationale, the judge as its source (`LLM_JUDGE`, or
    `CODE` where no language model judged), and in its metadata `ragspan.record_id`, `.label`, `.threshold`,
    `.prompt_version` and `.fallback`, and what the judge cost. What a person has corrected in MLflow stays corrected.

    Args:
        tracking_uri: an MLflow server with an SQL store, `http://host:port`; None takes `MLFLOW_TRACKING_URI`. Credentials
            are those of MLflow's own client: `MLFLOW_TRACKING_TOKEN`, or `_USERNAME` and `_PASSWORD`.
        experiment: where `span_exporter` sends spans to, a name or an id, as `MLflowSpanExporter` takes it. Scores go to
            wherever the trace is.
        token: a bearer token, in place of the environment's.
        timeout: seconds, more than 0, that a request may wait for a sign of life of the server.
        options: those of every `ScoreWriter`: `capture_content`, `explanations`, `max_explanation_chars`, `failures`,
            `delivery`, `meter_provider`.

    Raises:
        ConfigurationError: no server is named, or an argument or the environment has a value that is not allowed.
    """

    name = "mlflow"
    endpoint: Endpoint

    def __init__(
        self,
        *,
        tracking_uri: str | None = None,
        experiment: str | int | None = None,
        token: str | None = None,
        timeout: float = 10.0,
        **options: Unpack[WriterOptions],
    ) -> None:
        self.endpoint = tracking_server(tracking_uri, token=token, timeout=timeout)
        self._experiment = experiment
        super().__init__(**options)

    @classmethod
    def at(cls, address: str, *, capture_content: CaptureContent) -> MLflowAssessments:
        """The emitter for the server at this address, for `ragspan.configure(mlflow=address)`."""
        return cls(tracking_uri=address, capture_content=capture_content)

    def span_exporter(self) -> MLflowSpanExporter:
        """An exporter that brings spans to the same server, into `experiment`."""
        from ragspan_mlflow.exporting import MLflowSpanExporter

        names = ("tracking_uri", "experiment", "token", "timeout")
        return MLflowSpanExporter(**{name: self._given[name] for name in names if name in self._given})

    def connect(self) -> ScoreBackend[Annotation]:
        from ragspan.delivery.http import HttpClient
        from ragspan_mlflow.backend import PARALLEL, MLflowServer

        return MLflowServer(HttpClient(self.endpoint, size=PARALLEL))


def tracking_server(uri: str | None = None, *, token: str | None = None, timeout: float = 10.0) -> Endpoint:
    """The server of this URI, or else of `MLFLOW_TRACKING_URI`, with the credentials of MLflow's own client.

    Raises:
        ConfigurationError: no server is named, or it is none that is reached by HTTP.
    """
    uri = uri or variable("MLFLOW_TRACKING_URI")
    if uri is None:
        raise ConfigurationError(
            "no MLflow server is named: give tracking_uri, such as http://localhost:5000, or set MLFLOW_TRACKING_URI"
        )
    token = token or variable("MLFLOW_TRACKING_TOKEN")
    workspace = variable("MLFLOW_WORKSPACE")
    endpoint = Endpoint.at(
        "the tracking URI (files, databases and Databricks profiles do not work: start `mlflow server`)",
        uri,
        headers=({"authorization": f"Bearer {token}"} if token else {})
        | ({"x-mlflow-workspace": workspace} if workspace else {}),
        timeout=timeout,
        certificates=variable("MLFLOW_TRACKING_SERVER_CERT_PATH"),
        client_certificate=variable("MLFLOW_TRACKING_CLIENT_CERT_PATH"),
        checks_certificate=(variable("MLFLOW_TRACKING_INSECURE_TLS") or "").lower() not in {"true", "1"},
    )
    username = variable("MLFLOW_TRACKING_USERNAME")
    if username is None or "authorization" in endpoint.headers:
        return endpoint
    authorization = basic(username, variable("MLFLOW_TRACKING_PASSWORD") or "")
    return replace(endpoint, headers={**endpoint.headers, "authorization": authorization})
