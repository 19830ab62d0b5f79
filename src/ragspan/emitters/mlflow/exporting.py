"""Brings spans to an MLflow server by OTLP.

MLflow wants the experiment of all spans, by its id, in a header. Where the header is missing it refuses the spans
with status 422, which exporters log and drop. Most people know their experiment by its name; so the id is looked up.

Guarantees:
- Nothing is sent, and no experiment made, before the first spans are exported: an application starts without its server.
- Spans that the server could not take are kept and tried again, as scores are: see `ragspan.delivery.spans`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragspan.config import variable
from ragspan.delivery import DeliveryOptions, Unavailable
from ragspan.delivery.http import Endpoint, HttpClient, session_for
from ragspan.delivery.spans import SPAN_DELIVERY, RetryingSpanExporter
from ragspan.emitters.mlflow.server import EXPERIMENTS, names_nothing, tracking_server
from ragspan.exceptions import ConfigurationError
from ragspan.throttled_log import ThrottledLog

_HEADER = "x-mlflow-experiment-id"
_DEFAULT_EXPERIMENT = "0"


class MLflowSpanExporter(RetryingSpanExporter):
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
        delivery: how many spans may wait for the server, and for how long; as in `RetryingSpanExporter` by default.

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
        delivery: DeliveryOptions = SPAN_DELIVERY,
    ) -> None:
        server = tracking_server(tracking_uri, token=token, timeout=timeout)
        if experiment is None:
            experiment = variable("MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME") or _DEFAULT_EXPERIMENT
        name = str(experiment).strip()
        if not name:
            raise ConfigurationError("the experiment's name is empty")
        super().__init__(ExperimentExporter(server, name), delivery=delivery)


class ExperimentExporter(SpanExporter):
    """Exports to one experiment, which it looks for when it is first needed.

    Args:
        server: where the experiment is.
        experiment: its name, or its id in digits.
    """

    def __init__(self, server: Endpoint, experiment: str) -> None:
        self._server = server
        self._experiment = experiment
        self._exporter: SpanExporter | None = None
        self._log = ThrottledLog()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Try once to bring the spans there."""
        if self._exporter is None:
            try:
                self._exporter = OTLPSpanExporter(
                    f"{self._server.url}/v1/traces",
                    headers={_HEADER: self._experiment_id()},
                    timeout=self._server.timeout,
                    session=session_for(self._server),
                )
            except (Unavailable, TimeoutError) as trouble:
                reason = str(trouble) or "timeout"
                self._log.report("experiment", "mlflow: the experiment of the spans was not found: %s", reason)
                return SpanExportResult.FAILURE
        return self._exporter.export(spans)

    def shutdown(self) -> None:
        """Close the connection, and end a try that is under way."""
        if self._exporter is not None:
            self._exporter.shutdown()

    def _experiment_id(self) -> str:
        """The experiment's id. If it is missing, it is made.

        Raises:
            Unavailable: the server cannot be reached, refuses our credentials, or has no such experiment and makes none. It
                is asked again with the next try: another process may just have made it.
            TimeoutError: no answer came in time.
        """
        name = self._experiment
        if name.isdecimal():
            return name
        with contextlib.closing(HttpClient(self._server)) as client:
            reply = client.call("GET", f"{EXPERIMENTS}/get-by-name", query={"experiment_name": name})
            if names_nothing(reply):
                reply = client.call("POST", f"{EXPERIMENTS}/create", json={"name": name})
        found = reply.body.get("experiment", reply.body) if reply.is_ok else {"lifecycle_stage": "deleted"}
        if found.get("lifecycle_stage") == "deleted":  # spans there are shown nowhere
            raise Unavailable(f"http_{reply.status}")
        return str(found["experiment_id"])
