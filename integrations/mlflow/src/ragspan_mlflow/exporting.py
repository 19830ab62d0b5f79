"""Brings spans to an MLflow server by OTLP.

MLflow wants to be told the experiment of all spans, by its id, in a header. Where the header is missing it refuses the spans
with status 422, which exporters log and drop. Most people know their experiment by its name; so the id is looked up.

Guarantees:
- Nothing is sent, and no experiment made, before the first spans are exported: an application starts without its server.
- Spans that the server could not take are kept and tried again, as scores are: see `ragspan.delivery.spans`.
"""

from __future__ import annotations

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragspan.config import variable
from ragspan.delivery import DeliveryOptions, Unavailable
from ragspan.delivery.spans import PatientSpanExporter
from ragspan.exceptions import ConfigurationError
from ragspan.throttled_log import ThrottledLog
from ragspan_mlflow.connection import Connection, TimedOut, session_for
from ragspan_mlflow.experiments import ExperimentRefused, experiment_id
from ragspan_mlflow.server import TrackingServer

_HEADER = "x-mlflow-experiment-id"
_DEFAULT_EXPERIMENT = "0"


class MLflowSpanExporter(PatientSpanExporter):
    """Brings spans to MLflow, for `BatchSpanProcessor(MLflowSpanExporter(experiment="support"))`.

    Under `opentelemetry-instrument`, and wherever exporters are chosen by `OTEL_TRACES_EXPORTER`, its name is
    `ragspan_mlflow`.

    Args:
        tracking_uri: an MLflow server (3.6 or later) with an SQL store, `http://host:port`; None takes
            `MLFLOW_TRACKING_URI`. Credentials are those of MLflow's own client, from the environment.
        experiment: its name or its id; digits are an id. One that is missing is made, at the first export. None takes
            `MLFLOW_EXPERIMENT_ID`, else `MLFLOW_EXPERIMENT_NAME`, else the default experiment.
        token: a bearer token, in place of the environment's.
        timeout: seconds, more than 0, that one try may take.
        delivery: how many spans may wait for the server, and for how long; as in `PatientSpanExporter` by default.

    Raises:
        ConfigurationError: no server is named, or an argument has a value that is not allowed.
    """

    def __init__(
        self,
        *,
        tracking_uri: str | None = None,
        experiment: str | int | None = None,
        token: str | None = None,
        timeout: float = 10.0,
        delivery: DeliveryOptions | None = None,
    ) -> None:
        server = TrackingServer.from_environment(tracking_uri, token=token, timeout=timeout)
        super().__init__(ExperimentExporter(server, _named(experiment)), delivery=delivery)


class ExperimentExporter(SpanExporter):
    """Exports to one experiment, which it looks for when it is first needed.

    Args:
        server: where the experiment is.
        experiment: its name, or its id in digits.
    """

    def __init__(self, server: TrackingServer, experiment: str) -> None:
        self._server = server
        self._experiment = experiment
        self._exporter: SpanExporter | None = None
        self._log = ThrottledLog()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Try once to bring the spans there."""
        if self._exporter is None:
            number = self._experiment if self._experiment.isdecimal() else self._find()
            if number is None:
                return SpanExportResult.FAILURE
            self._exporter = OTLPSpanExporter(
                f"{self._server.url}/v1/traces",
                headers={_HEADER: number},
                timeout=self._server.timeout,
                session=session_for(self._server),
            )
        return self._exporter.export(spans)

    def shutdown(self) -> None:
        """Let go of the connection, and end a try that is under way."""
        if self._exporter is not None:
            self._exporter.shutdown()

    def _find(self) -> str | None:
        """The experiment's id; None if the server does not tell."""
        connection = Connection(self._server)
        try:
            return experiment_id(connection, self._experiment)
        except (ExperimentRefused, Unavailable) as trouble:
            reason = str(trouble)
        except TimedOut:
            reason = "timeout"
        finally:
            connection.close()
        self._log.trouble("experiment", "mlflow: the experiment of the spans was not found: %s", reason)
        return None


def _named(experiment: str | int | None) -> str:
    if experiment is None:
        experiment = variable("MLFLOW_EXPERIMENT_ID") or variable("MLFLOW_EXPERIMENT_NAME") or _DEFAULT_EXPERIMENT
    name = str(experiment).strip()
    if not name:
        raise ConfigurationError("the experiment's name is empty")
    return name
