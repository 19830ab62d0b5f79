"""Puts scores into MLflow as assessments, by its REST API, so that a repeat leaves one of each.

MLflow has no request for several assessments, and none that replaces one. So each batch begins with a look at its traces,
one request for all of them; then each feedback is created, changed or left alone, several at the same time.

MLflow keeps every feedback that it is given, so one must be recognised when it comes a second time: it is the same if trace,
name, source and record are. The span is not part of that, because a record that is emitted anew has another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ragspan.config import CaptureContent, variable
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
from ragspan.delivery.http import Endpoint, Reply, ServerError, basic, in_parallel
from ragspan.delivery.writer import present, stable_id
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry import semconv
from ragspan.telemetry.values import bounded

if TYPE_CHECKING:
    from ragspan_mlflow.exporting import MLflowSpanExporter

Assessment: TypeAlias = Mapping[str, Any]

TRACES = "/api/3.0/mlflow/traces"
_FORBIDDEN, _NOT_FOUND, _NOT_ALLOWED, _SERVER_ERROR = 403, 404, 405, 500
_MAX_FAILURES = 3  # of a batch; from there on it is rather the server than the items
_MAX_NAME = 250  # characters that MLflow's tables hold of a name and of a source
_SOURCE_TYPES = {semconv.ANNOTATOR_CODE: "CODE", semconv.ANNOTATOR_LLM: "LLM_JUDGE"}
_PREFIX = "ragspan."
_COSTS = {"usd": "judgeCost", "input_tokens": "judgeInputTokens", "output_tokens": "judgeOutputTokens"}
"""What MLflow shows as the cost of the judge."""


@dataclass(kw_only=True, eq=False, repr=False)
class MLflowAssessments(ScoreWriter):
    """Writes each score as feedback on the answer's span in MLflow: a column of the trace table, and a filter.

    It comes after the emitter that makes the span: `ScoringEngine(emitters=[OTelEmitter(), MLflowAssessments()])`, and the
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
    timeout: float = 10.0
    """Seconds, more than 0, that a request may wait for a sign of life of the server."""

    name = "mlflow"
    parallel = 4

    def __post_init__(self) -> None:
        self._answers_for_many = True
        super().__post_init__()

    @classmethod
    def at(cls, address: str, *, capture_content: CaptureContent) -> MLflowAssessments:
        """The emitter for the server at this address, for `ragspan.configure(mlflow=address)`."""
        return cls(tracking_uri=address, capture_content=capture_content)

    def server(self) -> Endpoint:
        return tracking_server(self.tracking_uri, token=self.token, timeout=self.timeout)

    def span_exporter(self) -> MLflowSpanExporter:
        """An exporter that brings spans to the same server, into `experiment`."""
        from ragspan_mlflow.exporting import MLflowSpanExporter

        return MLflowSpanExporter(
            tracking_uri=self.tracking_uri, experiment=self.experiment, token=self.token, timeout=self.timeout
        )

    def write(self, batch: Sequence[Annotation]) -> Sequence[WriteResult]:
        """Write the batch, a request for each feedback that is not there yet as it should be."""
        traces = self._assessments_of(_trace_id(item) for item in batch)
        return in_parallel(partial(self._write, traces=traces, failures=[]), batch, self.parallel)

    def _write(
        self, item: Annotation, *, traces: Mapping[str, Sequence[Assessment]], failures: list[Annotation]
    ) -> WriteResult:
        written = traces.get(_trace_id(item))
        if written is None:
            return SpanNotFound()
        try:
            result = _result(self._put(item, written))
        except TimeoutError:
            result = Failed()
        if isinstance(result, Failed):
            failures.append(item)
            if len(failures) >= _MAX_FAILURES:
                raise ServerError
        return result

    def _put(self, item: Annotation, written: Sequence[Assessment]) -> Reply | None:
        """Make it so; None if it is so already."""
        path = f"{TRACES}/{_trace_id(item)}/assessments"
        same = found_in(written, item)
        if same is None:
            return self.client.call("POST", path, json={"assessment": assessment_of(item)})
        change = change_of(same, item)
        if change is None:
            return None
        ids = {"assessment_id": same["assessment_id"], "trace_id": _trace_id(item)}
        body = {"assessment": {**ids, **change}, "update_mask": ",".join(change)}
        return self.client.call("PATCH", f"{path}/{same['assessment_id']}", json=body)

    def _assessments_of(self, trace_ids: Iterable[str]) -> Mapping[str, Sequence[Assessment]]:
        """The assessments of each of these traces that is there.

        Two kinds of server do not answer for many at once. Older ones lack the request. And those with users answer it with
        403 if only one of the traces is not there, or not ours to see; they answer 403 for a single trace that is not there,
        too, unless an administrator asks. So 403 says no more than 404 does: the trace is not there yet.
        """
        wanted = list(dict.fromkeys(trace_ids))
        try:
            found = self._find_many(wanted) if self._answers_for_many else None
            if found is None:
                each = in_parallel(self._find, wanted, self.parallel)
                found = {trace_id: one for trace_id, one in zip(wanted, each, strict=True) if one is not None}
        except TimeoutError:
            raise Unavailable("timeout") from None
        return found

    def _find_many(self, wanted: Sequence[str]) -> Mapping[str, Sequence[Assessment]] | None:
        reply = self.client.call("POST", f"{TRACES}/batchGetInfos", json={"trace_ids": wanted})
        if reply.status in {_NOT_FOUND, _NOT_ALLOWED}:
            self._answers_for_many = False
            return None
        if reply.status == _FORBIDDEN:
            return None
        infos = _checked(reply).get("trace_infos", ())
        return {info["trace_id"]: info.get("assessments", ()) for info in infos}

    def _find(self, trace_id: str) -> Sequence[Assessment] | None:
        reply = self.client.call("GET", f"{TRACES}/{trace_id}")
        if names_nothing(reply) or reply.status == _FORBIDDEN:
            return None
        if reply.status == _NOT_FOUND:
            raise Unavailable("http_404")  # no MLflow is there
        assessments: Sequence[Assessment] = _checked(reply)["trace"]["trace_info"].get("assessments", ())
        return assessments


def tracking_server(uri: str | None = None, *, token: str | None = None, timeout: float = 10.0) -> Endpoint:
    """The server of this URI, or else of `MLFLOW_TRACKING_URI`, with the credentials of MLflow's own client.

    Raises:
        ConfigurationError: no server is named, or it is none that is reached by HTTP.
    """
    name = "tracking_uri" if uri else "MLFLOW_TRACKING_URI"
    uri = uri or variable("MLFLOW_TRACKING_URI")
    if uri is None:
        raise ConfigurationError(
            "no MLflow server is named: give tracking_uri, such as http://localhost:5000, or set MLFLOW_TRACKING_URI"
        )
    token = token or variable("MLFLOW_TRACKING_TOKEN")
    workspace = variable("MLFLOW_WORKSPACE")
    endpoint = Endpoint.at(
        f"{name} (files, databases and Databricks profiles do not work: start `mlflow server`)",
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


def names_nothing(reply: Reply) -> bool:
    """Whether the trace, assessment or experiment that was asked for does not exist."""
    return reply.status == _NOT_FOUND and reply.body.get("error_code") == "RESOURCE_DOES_NOT_EXIST"


def assessment_of(item: Annotation) -> dict[str, Any]:
    """The feedback to be created.

    Servers keep the id that they are given, and refuse a second assessment of the same: two processes that deliver the
    same record at the same time cannot make two of it. Where a server gives an id of its own, `found_in` is the guard.
    """
    return present(
        {
            "assessment_id": _assessment_id(item),
            "assessment_name": _short(item.name),
            "trace_id": _trace_id(item),
            "span_id": item.span_id,
            "source": {"source_type": _SOURCE_TYPES[item.annotator], "source_id": _source_id(item)},
            "feedback": _feedback(item),
            "metadata": _metadata(item),
            "rationale": item.explanation,
        }
    )


def found_in(assessments: Iterable[Assessment], item: Annotation) -> Assessment | None:
    """This feedback among a trace's assessments, as it was written before."""
    identity = (_short(item.name), _source_id(item), _short(item.record_id))
    for one in assessments:
        source, record_id = _entries(one, "source"), _entries(one, "metadata").get(semconv.RECORD_ID)
        is_same = (one.get("assessment_name"), source.get("source_id"), record_id) == identity
        if is_same or one.get("assessment_id") == _assessment_id(item):
            return one
    return None


def change_of(written: Assessment, item: Annotation) -> dict[str, Any] | None:
    """What has to be changed in the assessment that is there; None if it says the same."""
    metadata = _entries(written, "metadata")
    outdated = {key: "" for key, text in metadata.items() if text and key.startswith(_PREFIX)}
    wanted = outdated | _metadata(item)  # entries are merged there, none can be removed
    is_same = (
        present(_entries(written, "feedback")) == present(_feedback(item))
        and (written.get("rationale") or None) == item.explanation
        and wanted == {key: metadata.get(key) for key in wanted}
    )
    if is_same:
        return None
    return {"feedback": _feedback(item), "rationale": item.explanation or "", "metadata": wanted}


def _result(reply: Reply | None) -> WriteResult:
    if reply is None or reply.is_ok:
        return Delivered()
    if names_nothing(reply):
        return SpanNotFound()  # what was there a moment ago was deleted
    # A server error is also the answer where another process has just created the same: then it is found the next time.
    return Failed() if reply.status >= _SERVER_ERROR else Rejected(f"http_{reply.status}")


def _checked(reply: Reply) -> Mapping[str, Any]:
    if not reply.is_ok:
        raise ServerError(f"http_{reply.status}")
    return reply.body


def _trace_id(item: Annotation) -> str:
    return f"tr-{item.trace_id}"


def _source_id(item: Annotation) -> str:
    return _short(item.judge or "ragspan")


def _assessment_id(item: Annotation) -> str:
    return "a-" + stable_id(_trace_id(item), _short(item.record_id), _short(item.name), _source_id(item))


def _feedback(item: Annotation) -> dict[str, Any]:
    return {"value": item.value} if item.error_type is None else {"error": {"error_code": item.error_type}}


def _metadata(item: Annotation) -> dict[str, str]:
    """What is known besides value and explanation, as texts."""
    known = {
        "label": item.label,
        **{key: item.metadata.get(key) for key in ("threshold", "prompt_version", "fallback")},
    }
    usage = item.metadata.get("usage", {})
    costs = {f"mlflow.assessment.{name}": usage.get(key) for key, name in _COSTS.items()}
    notes = {semconv.RECORD_ID: item.record_id, **{_PREFIX + key: fact for key, fact in known.items()}, **costs}
    return {key: _short(str(fact)) for key, fact in notes.items() if fact is not None}


def _short(text: str) -> str:
    return bounded(text, _MAX_NAME)


def _entries(assessment: Assessment, name: str) -> Mapping[str, Any]:
    value = assessment.get(name)
    return value if isinstance(value, Mapping) else {}
