"""Scores as MLflow assessments, and an exporter that brings the spans.

MLflow replaces no assessment, but refuses a second one with the id that it was given: each feedback is created, and changed where it
is there already. The span is not part of its id, because a record that is emitted anew has another one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragspan.addresses import basic
from ragspan.config import variable
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry import semconv
from ragspan.telemetry.values import bounded
from ragspan.throttled_log import ThrottledLog
from ragspan.tools import Annotation, Delivered, ScoreWriter, SpanNotFound, Unavailable, WriteResult
from ragspan.tools.http import Endpoint, HttpClient, Reply, session_for
from ragspan.tools.spans import AFTER_SCORES, RetryingSpanExporter
from ragspan.tools.writer import present, stable_id

__all__ = ["MLflowEmitter", "MLflowSpanExporter"]

TRACES = "/api/3.0/mlflow/traces"
EXPERIMENTS = "/api/2.0/mlflow/experiments"
_BAD_REQUEST, _FORBIDDEN, _NOT_FOUND, _SERVER_ERROR = 400, 403, 404, 500
_EXPERIMENT = "x-mlflow-experiment-id"
_MAX_NAME = 250  # characters that MLflow's tables hold of a name and of a source
_SOURCE_TYPES = {semconv.ANNOTATOR_CODE: "CODE", semconv.ANNOTATOR_LLM: "LLM_JUDGE"}
_COSTS = {"usd": "judgeCost", "input_tokens": "judgeInputTokens", "output_tokens": "judgeOutputTokens"}
"""What MLflow shows as the cost of the judge."""


@dataclass(kw_only=True, eq=False, repr=False)
class MLflowEmitter(ScoreWriter):
    """Writes each score as feedback on the answer's span in MLflow: a column of the trace table, and a filter.

    The spans have to reach the same server, through `span_exporter` for instance. Scores wait for their spans to arrive. A score
    that is delivered again, after a lost answer or by a second run of the same records, changes what is there.

    A feedback has the metric's name, and `pass` or `fail` as its value, which MLflow draws in green and red; its rationale begins
    with the score and the threshold, and the explanation follows. A score without a label is its value, with four digits. Its source
    is the judge (`LLM_JUDGE`, or `CODE` where no language model judged). Its metadata has `ragspan.record_id`, `.score`,
    `.threshold`, `.prompt_version` and `.fallback`, and what the judge cost. What a person has corrected in MLflow stays corrected.
    """

    tracking_uri: str | None = None
    """An MLflow server with an SQL store, `http://host:port`; None takes `MLFLOW_TRACKING_URI`. Credentials are those of
    MLflow's own client: `MLFLOW_TRACKING_TOKEN`, or `_USERNAME` and `_PASSWORD`."""
    experiment: str | int | None = None
    """Where `span_exporter` sends spans to, a name or an id, as `MLflowSpanExporter` takes it. Scores go to wherever the
    trace is."""

    name = "mlflow"
    parallel = 4

    def server(self) -> Endpoint:
        return tracking_server(self.tracking_uri, timeout=self.timeout)

    def span_exporter(self) -> MLflowSpanExporter:
        """An exporter that brings spans to the same server, into `experiment`."""
        return MLflowSpanExporter(
            tracking_uri=self.tracking_uri,
            experiment=self.experiment,
            timeout=self.timeout,
            exit_timeout=AFTER_SCORES,
        )

    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Create the feedback, or change what is there already."""
        (item,) = batch
        path, assessment = f"{TRACES}/tr-{item.trace_id}/assessments", self.assessment_of(item)
        reply = self.client.call("POST", path, json={"assessment": assessment})
        # One that is there breaks a rule of the database, which MLflow reports as a request's or a server's error.
        if reply.status == _BAD_REQUEST or reply.status >= _SERVER_ERROR:
            texts = {key: text or "" for key, text in _notes(item).items()}  # merged there; none is removed
            rationale = assessment.get("rationale", "")
            change = {"feedback": assessment["feedback"], "rationale": rationale, "metadata": texts}
            body = {"assessment": assessment | change, "update_mask": ",".join(change)}
            changed = self.client.call("PATCH", f"{path}/{assessment['assessment_id']}", json=body)
            reply = changed if changed.is_ok else reply
        if _names_nothing(reply) or reply.status == _FORBIDDEN:  # a server with users refuses a trace that is not there
            return [SpanNotFound()]
        reply.expect("assessment", self.name)
        return [Delivered()]

    def assessment_of(self, item: Annotation) -> dict[str, Any]:
        """The feedback to be created."""
        name, source = bounded(item.name, _MAX_NAME), bounded(item.judge or "ragspan", _MAX_NAME)
        value: float | str = round(item.value, 4)
        rationale = item.explanation
        if item.label is not None:
            threshold = item.metadata.get("threshold")
            number = f"{item.value:.2f}" + ("" if threshold is None else f", passes from {threshold:.2f}")
            value, rationale = item.label, ": ".join(filter(None, [number, item.explanation]))
        of_record = stable_id(f"tr-{item.trace_id}", bounded(item.record_id, _MAX_NAME), name, source)
        return present(
            {
                "assessment_id": f"a-{of_record}",
                "assessment_name": name,
                "trace_id": f"tr-{item.trace_id}",
                "span_id": item.span_id,
                "source": {"source_type": _SOURCE_TYPES[item.annotator], "source_id": source},
                "feedback": {"value": value},
                "metadata": present(_notes(item)),
                "rationale": rationale,
            }
        )


def _notes(item: Annotation) -> dict[str, str | None]:
    """What may be known besides value and explanation, as texts."""
    known = {"record_id": item.record_id, "label": item.label, "score": item.value}
    known |= {key: item.metadata.get(key) for key in ("threshold", "prompt_version", "fallback")}
    usage = item.metadata.get("usage", {})
    notes = {f"ragspan.{key}": fact for key, fact in known.items()}
    notes |= {f"mlflow.assessment.{name}": usage.get(key) for key, name in _COSTS.items()}
    return {key: None if fact is None else bounded(str(fact), _MAX_NAME) for key, fact in notes.items()}


def tracking_server(uri: str | None = None, *, timeout: float = 30.0) -> Endpoint:
    """The server of this URI, or else of `MLFLOW_TRACKING_URI`, with the credentials of MLflow's own client.

    Raises:
        ConfigurationError: no server is named, or it is none that is reached by HTTP.
    """
    name = "tracking_uri or mlflow= of configure" if uri else "MLFLOW_TRACKING_URI"
    uri = uri or variable(name)
    if uri is None:
        raise ConfigurationError(
            "no MLflow server is named: give tracking_uri, such as http://localhost:5000, or set MLFLOW_TRACKING_URI"
        )
    token, username = variable("MLFLOW_TRACKING_TOKEN"), variable("MLFLOW_TRACKING_USERNAME")
    authorization = f"Bearer {token}" if token else None
    if username is not None and not token and "@" not in uri:
        authorization = basic(username, variable("MLFLOW_TRACKING_PASSWORD") or "")
    return Endpoint.at(
        f"{name} (files, databases and Databricks profiles do not work: start `mlflow server`)",
        uri,
        headers={"authorization": authorization, "x-mlflow-workspace": variable("MLFLOW_WORKSPACE")},
        timeout=timeout,
    )


def _names_nothing(reply: Reply) -> bool:
    """Whether the trace, assessment or experiment that was asked for does not exist."""
    return reply.status == _NOT_FOUND and reply.body.get("error_code") == "RESOURCE_DOES_NOT_EXIST"


class MLflowSpanExporter(RetryingSpanExporter):
    """Brings spans to MLflow (3.6 or later), for `BatchSpanProcessor(MLflowSpanExporter(experiment="support"))`.

    Wherever exporters are chosen by `OTEL_TRACES_EXPORTER`, its name is `ragspan_mlflow`. Nothing is sent, and no experiment made,
    before the first spans are exported: an application starts without its server.

    Args:
        tracking_uri: as `MLflowEmitter` takes it.
        experiment: its name or its id; digits are an id. One that is missing is made, at the first export. None takes
            `MLFLOW_EXPERIMENT_ID`, else `MLFLOW_EXPERIMENT_NAME`, else the default experiment.
        timeout: seconds, more than 0, that one try may take.
        exit_timeout: the longest, in seconds, that `shutdown` goes on trying.

    Raises:
        ConfigurationError: no server is named, or an argument has a value that is not allowed.
    """

    def __init__(
        self,
        *,
        tracking_uri: str | None = None,
        experiment: str | int | None = None,
        timeout: float = 30.0,
        exit_timeout: float = 10.0,
    ) -> None:
        server = tracking_server(tracking_uri, timeout=timeout)
        if experiment is None:
            experiment = variable("MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME") or "0"  # the default one
        super().__init__(_exporter_into(str(experiment).strip(), server), exit_timeout=exit_timeout)


def _exporter_into(experiment: str, server: Endpoint) -> SpanExporter:
    """An exporter to one experiment, whose id is looked up when it is first needed: MLflow wants it in a header."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    session, log = session_for(server), ThrottledLog()
    exporter = OTLPSpanExporter(f"{server.url}/v1/traces", timeout=server.timeout, session=session)
    export = exporter.export

    def export_there(spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if _EXPERIMENT not in session.headers:
            try:
                session.headers[_EXPERIMENT] = _id_of(experiment, server)
            except (Unavailable, TimeoutError) as trouble:
                line = "mlflow: the experiment of the spans was not found: %s"
                log.report("experiment", line, str(trouble) or "timeout")
                return SpanExportResult.FAILURE
        return export(spans)

    exporter.export = export_there  # type: ignore[method-assign]
    return exporter


def _id_of(experiment: str, server: Endpoint) -> str:
    """The experiment's id; if it is missing, it is made.

    Raises:
        Unavailable: there is none now; the next try asks again, because another process may just have made it.
        TimeoutError: no answer came in time.
    """
    if experiment.isdecimal():
        return experiment
    with contextlib.closing(HttpClient(server)) as client:
        reply = client.call("GET", f"{EXPERIMENTS}/get-by-name", query={"experiment_name": experiment})
        if _names_nothing(reply):
            reply = client.call("POST", f"{EXPERIMENTS}/create", json={"name": experiment})
    found = reply.body.get("experiment", reply.body) if reply.is_ok else {"lifecycle_stage": "deleted"}
    if found.get("lifecycle_stage") == "deleted":  # spans there are shown nowhere
        raise Unavailable(f"http_{reply.status}")
    return str(found["experiment_id"])
