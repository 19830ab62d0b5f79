"""An MLflow server on this machine that behaves as MLflow 3.18 was seen to behave, and can be made to fail."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from servers.scores import ScoreServer
from writer_fixtures import ANSWER, Backend, bare_environment, deliver, make_scored, make_writer, server  # noqa: F401 - fixtures

from ragspan import RagRecord, Score, ScoredRecord
from ragspan.records import SpanAnchor
from ragspan.tools.mlflow import MLflowEmitter

TRACES = "/api/3.0/mlflow/traces"
EXPERIMENTS = "/api/2.0/mlflow/experiments"
MISSING = 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "not found"}
FORBIDDEN = 403, "Permission denied"
RECORDED = Path(__file__).with_name("recorded_traces.json")
"""What MLflow 3.17.2 answered: two answers that ragspan traced, one of OpenInference's LangChain and one of its DSPy."""
PAGE = 3


class FakeMLflow(ScoreServer):
    """A server with an SQL store that has the answer's trace, two others, and in the experiment 0 what was recorded.

    `has_users`: it answers as MLflow's basic authentication does to one who is no administrator. `refusal`: what it says to an
    assessment with the id of another one; before 3.17 it was a 400.
    """

    def __init__(self):
        self.recorded = {one["trace_info"]["trace_id"]: one for one in json.loads(RECORDED.read_text())}
        known = [*self.recorded, *map(trace, (1, 2, ANSWER.trace_id))]
        self.assessments = {trace_id: [] for trace_id in known}
        self.experiments = {"Default": "0"}
        self.deleted_experiments = set()
        self.spans = {}
        self.has_users = False
        self.refusal = 500, {"error_code": "INTERNAL_ERROR", "message": "due to a constraint violation."}
        super().__init__()

    @property
    def scores(self):
        every = [one for found in self.assessments.values() for one in found]
        return {one["assessment_name"]: float(one["metadata"]["ragspan.score"]) for one in every}

    @property
    def number_of_scores(self):
        return sum(map(len, self.assessments.values()))

    def take_span(self, span, headers):
        self.spans.setdefault(headers["x-mlflow-experiment-id"], []).append(span.name)
        self.assessments.setdefault(f"tr-{span.trace_id.hex()}", [])

    def reply_to(self, request):
        method, path, query = request.method, request.path, request.query
        if path.startswith(EXPERIMENTS):
            return self._experiment(path, query, request.content)
        if path == f"{TRACES}/search":
            return self._page(request.content)
        if path == f"{TRACES}/batchGet":
            return 200, {"traces": [self.recorded[trace_id] for trace_id in reversed(query["trace_ids"])]}
        trace_id, _, rest = path.removeprefix(f"{TRACES}/").partition("/")
        if trace_id not in self.assessments:
            return FORBIDDEN if self.has_users else MISSING
        return self._write(method, trace_id, rest.removeprefix("assessments").strip("/"), request.content)

    def _page(self, asked):
        (place,) = asked["locations"]
        infos = [one["trace_info"] for one in self.recorded.values()]
        found = infos if place["mlflow_experiment"]["experiment_id"] == "0" else []
        if "filter" in asked:
            since = int(asked["filter"].removeprefix("timestamp_ms >= "))
            moments = [datetime.fromisoformat(one["request_time"].replace("Z", "+00:00")) for one in found]
            found = [one for one, moment in zip(found, moments, strict=True) if moment.timestamp() * 1000 >= since]
        first = int(asked["page_token"] or 0)
        following = {"next_page_token": str(first + PAGE)} if len(found) > first + PAGE else {}
        return 200, {"traces": found[first : first + PAGE], **following}

    def _write(self, method, trace_id, assessment_id, given):
        present = self.assessments[trace_id]
        assessment = given["assessment"]
        if assessment["assessment_name"] in self.refused:
            return 400, {"error_code": "INVALID_PARAMETER_VALUE"}
        if method == "POST":
            if any(item["assessment_id"] == assessment["assessment_id"] for item in present):
                return self.refusal
            present.append(assessment)
            return 200, {"assessment": assessment}
        for item in present:
            if item["assessment_id"] == assessment_id:
                for field in given["update_mask"].split(","):
                    item[field] = (
                        item["metadata"] | assessment["metadata"] if field == "metadata" else assessment[field]
                    )
                return 200, {"assessment": item}
        return MISSING

    def _experiment(self, path, query, given):
        if path.endswith("/create"):
            if given["name"] in self.experiments:
                return 400, {"error_code": "RESOURCE_ALREADY_EXISTS"}
            self.experiments[given["name"]] = str(len(self.experiments))
            return 200, {"experiment_id": self.experiments[given["name"]]}
        (name,) = query["experiment_name"]
        if name not in self.experiments:
            return MISSING
        stage = "deleted" if name in self.deleted_experiments else "active"
        return 200, {"experiment": {"experiment_id": self.experiments[name], "lifecycle_stage": stage}}


@pytest.fixture
def backend():
    return Backend(
        server=FakeMLflow,
        writer=MLflowEmitter,
        address="tracking_uri",
        variables=lambda url: {
            "MLFLOW_TRACKING_URI": url,
            "MLFLOW_TRACKING_TOKEN": "secret-token",
            "OTEL_TRACES_EXPORTER": "ragspan_mlflow",
        },
        needed="MLFLOW_TRACKING_URI",
        secret="secret-token",
    )


@pytest.fixture(autouse=True)
def token(bare_environment, monkeypatch):  # noqa: F811 - the fixture
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "secret-token")


@pytest.fixture
def mlflow(server):  # noqa: F811 - the fixture
    return server


@pytest.fixture
def write(make_writer):  # noqa: F811 - the fixture
    """Writes annotations one after the other, by a new writer; what became of each, an exception included."""

    def write(*items, timeout=5.0, **options):
        writer, results = make_writer(timeout=timeout, **options), []
        for item in items:
            try:
                results += writer.write([item])
            except Exception as error:
                results.append(error)
        return results

    return write


def trace(number):
    return f"tr-{number:032x}"


def scored(outcomes, *, answer=1, record="r1", span=0xA1):
    """The outcomes of an answer in the trace of this number."""
    record = RagRecord(question="Why?", contexts=["Because."], response="So.", record_id=record)
    return ScoredRecord(record=record, outcomes=outcomes, span=SpanAnchor(trace_id=answer, span_id=span))


def feedback(value=0.9, *, metric="faithfulness", answer=1, record="r1", span=0xA1, **facts):
    """One annotation, as the emitter makes it."""
    score = Score(value=value, **{"judge": "openai:gpt-4o-mini", "threshold": 0.5, **facts})
    (item,) = annotations(scored({metric: score}, answer=answer, record=record, span=span))
    return item


def annotations(given, **options):
    """Those of an answer, as the emitter makes them."""
    emitter = MLflowEmitter(**{"tracking_uri": "http://localhost", "explanations": True, **options})
    return list(emitter.items_of(given, given.span))


@pytest.fixture
def make():
    """The builders above, for tests that cannot import them."""
    writer = MLflowEmitter(tracking_uri="http://localhost")
    return SimpleNamespace(
        trace=trace, scored=scored, feedback=feedback, annotations=annotations, assessment=writer.assessment_of
    )
