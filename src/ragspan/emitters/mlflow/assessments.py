"""Puts scores into MLflow as assessments, by its REST API, so that a repeat leaves one of each.

MLflow has no request for several assessments, and none that replaces one. But it keeps the id that an assessment is given, and
refuses a second one with that id. So each feedback is created, several at the same time, and changed where it is there already.

A feedback is the same if trace, name, source and record are: its id follows from these. The span is not part of that, because
a record that is emitted anew has another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragspan.config import CaptureContent
from ragspan.delivery import (
    Annotation,
    Delivered,
    Failed,
    Rejected,
    ScoreWriter,
    SpanNotFound,
    Unavailable,
    WriteResult,
)
from ragspan.delivery.http import Endpoint, Reply, ServerError, in_parallel
from ragspan.delivery.writer import present, stable_id
from ragspan.emitters.mlflow.server import TRACES, names_nothing, tracking_server
from ragspan.telemetry import semconv
from ragspan.telemetry.values import bounded

if TYPE_CHECKING:
    from ragspan.emitters.mlflow.exporting import MLflowSpanExporter

_BAD_REQUEST, _FORBIDDEN, _NOT_FOUND, _SERVER_ERROR = 400, 403, 404, 500
_MAX_NAME = 250  # characters that MLflow's tables hold of a name and of a source
_SOURCE_TYPES = {semconv.ANNOTATOR_CODE: "CODE", semconv.ANNOTATOR_LLM: "LLM_JUDGE"}
_PREFIX = "ragspan."
_COSTS = {"usd": "judgeCost", "input_tokens": "judgeInputTokens", "output_tokens": "judgeOutputTokens"}
"""What MLflow shows as the cost of the judge."""


@dataclass(kw_only=True, eq=False, repr=False)
class MLflowEmitter(ScoreWriter):
    """Writes each score as feedback on the answer's span in MLflow: a column of the trace table, and a filter.

    It comes after the emitter that makes the span: `ScoringEngine(emitters=[OTelEmitter(), MLflowEmitter()])`, and the
    spans have to reach the same server, through `span_exporter` for instance. Scores wait for their spans to arrive. A
    score that is delivered again, after a lost answer or by a second run of the same records, changes what is there.

    A feedback has the metric's name and value, the explanation as its rationale, the judge as its source (`LLM_JUDGE`, or
    `CODE` where no language model judged), and in its metadata `ragspan.record_id`, `.label`, `.threshold`,
    `.prompt_version` and `.fallback`, and what the judge cost. What a person has corrected in MLflow stays corrected.

    Raises:
        ConfigurationError: no server is named, or an argument or the environment has a value that is not allowed.
    """

    tracking_uri: str | None = None
    """An MLflow server with an SQL store, `http://host:port`; None takes `MLFLOW_TRACKING_URI`. Credentials are those of
    MLflow's own client: `MLFLOW_TRACKING_TOKEN`, or `_USERNAME` and `_PASSWORD`."""
    experiment: str | int | None = None
    """Where `span_exporter` sends spans to, a name or an id, as `MLflowSpanExporter` takes it. Scores go to wherever the
    trace is."""
    token: str | None = None
    """A bearer token, in place of the environment's."""

    name = "mlflow"
    parallel = 4

    @classmethod
    def at(cls, address: str, *, capture_content: CaptureContent) -> MLflowEmitter:
        """The emitter for the server at this address, for `ragspan.configure(mlflow=address)`."""
        return cls(tracking_uri=address, capture_content=capture_content)

    def server(self) -> Endpoint:
        return tracking_server(self.tracking_uri, token=self.token, timeout=self.timeout)

    def span_exporter(self) -> MLflowSpanExporter:
        """An exporter that brings spans to the same server, into `experiment`."""
        from ragspan.emitters.mlflow.exporting import MLflowSpanExporter

        return MLflowSpanExporter(
            tracking_uri=self.tracking_uri, experiment=self.experiment, token=self.token, timeout=self.timeout
        )

    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Write the batch, a request for each feedback, and a second one for what is there already."""
        results = in_parallel(self._write, batch, self.parallel)
        if len(results) > 1 and set(results) == {Failed()}:
            raise ServerError("all failed")  # it is rather the server than the items
        return results

    def _write(self, item: Annotation) -> WriteResult:
        path = f"{TRACES}/tr-{item.trace_id}/assessments"
        assessment = assessment_of(item)
        try:
            reply = self.client.call("POST", path, json={"assessment": assessment})
            # One that is there breaks a rule of the database, which MLflow reports as a request's or a server's error.
            if reply.status == _BAD_REQUEST or reply.status >= _SERVER_ERROR:
                change = {
                    "feedback": assessment["feedback"],
                    "rationale": item.explanation or "",
                    "metadata": {
                        key: text or "" for key, text in _notes(item).items()
                    },  # merged there; none is removed
                }
                body = {"assessment": assessment | change, "update_mask": ",".join(change)}
                changed = self.client.call("PATCH", f"{path}/{assessment['assessment_id']}", json=body)
                reply = changed if changed.is_ok else reply
        except TimeoutError:
            return Failed()
        return _result(reply)


def assessment_of(item: Annotation) -> dict[str, Any]:
    """The feedback to be created."""
    name, source = _short(item.name), _short(item.judge or "ragspan")
    return present(
        {
            "assessment_id": "a-" + stable_id(f"tr-{item.trace_id}", _short(item.record_id), name, source),
            "assessment_name": name,
            "trace_id": f"tr-{item.trace_id}",
            "span_id": item.span_id,
            "source": {"source_type": _SOURCE_TYPES[item.annotator], "source_id": source},
            "feedback": {"value": item.value}
            if item.error_type is None
            else {"error": {"error_code": item.error_type}},
            "metadata": present(_notes(item)),
            "rationale": item.explanation,
        }
    )


def _result(reply: Reply) -> WriteResult:
    if reply.is_ok:
        if "assessment" not in reply.body:
            raise Unavailable("not_mlflow")  # another server's greeting
        return Delivered()
    if names_nothing(reply) or reply.status == _FORBIDDEN:  # what a server with users says of a trace that is not there
        return SpanNotFound()
    if reply.status == _NOT_FOUND:
        raise Unavailable("http_404")  # no MLflow is there
    return Failed() if reply.status >= _SERVER_ERROR else Rejected(f"http_{reply.status}")


def _notes(item: Annotation) -> dict[str, str | None]:
    """What may be known besides value and explanation, as texts."""
    known = {
        "label": item.label,
        **{key: item.metadata.get(key) for key in ("threshold", "prompt_version", "fallback")},
    }
    usage = item.metadata.get("usage", {})
    costs = {f"mlflow.assessment.{name}": usage.get(key) for key, name in _COSTS.items()}
    notes = {semconv.RECORD_ID: item.record_id, **{_PREFIX + key: fact for key, fact in known.items()}, **costs}
    return {key: None if fact is None else _short(str(fact)) for key, fact in notes.items()}


def _short(text: str) -> str:
    return bounded(text, _MAX_NAME)
