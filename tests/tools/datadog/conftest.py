"""A server on this machine that takes evaluations as ddtrace 4.16.0 sends them, and as Datadog's documentation describes them."""

from __future__ import annotations

import json
import re

import pytest
from servers.scores import ScoreServer
from writer_fixtures import Backend, bare_environment, deliver, make_scored, make_writer, server  # noqa: F401 - fixtures

from ragspan.tools.datadog import DatadogEmitter

_FIELDS = {
    "event_kind": str,
    "eval_scope": str,
    "join_on": dict,
    "label": str,
    "metric_type": str,
    "score_value": float,
    "categorical_value": str,
    "ml_app": str,
    "timestamp_ms": int,
    "tags": list,
    "assessment": str,
    "reasoning": str,
    "metadata": dict,
}
"""Of ddtrace's `LLMObsEvaluationMetricEvent`, as far as we use them."""
_REQUIRED = {"event_kind", "eval_scope", "join_on", "label", "metric_type", "ml_app", "timestamp_ms", "tags"}


def checked(metric):
    """The evaluation, if it is one that Datadog takes."""
    assert _REQUIRED <= set(metric) <= set(_FIELDS)
    for name, value in metric.items():
        assert isinstance(value, _FIELDS[name]), name
    assert set(metric["join_on"]) == {"span"}
    assert set(metric["join_on"]["span"]) == {"span_id", "trace_id"}
    assert all(re.fullmatch(r"[1-9]\d*", text) for text in metric["join_on"]["span"].values()), (
        "decimal, for OTel spans"
    )
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,199}", metric["label"])
    assert metric["metric_type"] in {"score", "categorical"}
    assert f"{metric['metric_type']}_value" in metric
    assert metric["timestamp_ms"] > 0
    assert "source:otel" in metric["tags"]
    assert all(isinstance(tag, str) and ":" in tag for tag in metric["tags"])
    assert metric.get("assessment", "pass") in {"pass", "fail"}
    return metric


class FakeDatadog(ScoreServer):
    """`evaluations` has what it accepted."""

    def __init__(self):
        self.key = "dd-secret"
        self.evaluations = []
        super().__init__()

    @property
    def scores(self):
        return {metric["label"]: metric["score_value"] for metric in self.evaluations}

    @property
    def number_of_scores(self):
        """Of those that differ."""
        return len({json.dumps(metric, sort_keys=True) for metric in self.evaluations})

    def reply_to(self, request):
        if (request.method, request.path) != ("POST", "/api/intake/llm-obs/v2/eval-metric"):
            return 404, {"errors": ["Not Found"]}
        if request.headers.get("dd-api-key") != self.key:
            return 403, {"errors": ["Forbidden"]}
        assert request.headers["content-type"] == "application/json"
        data = request.content["data"]
        assert data["type"] == "evaluation_metric"
        assert set(data["attributes"]) == {"metrics"}
        metrics = [checked(metric) for metric in data["attributes"]["metrics"]]
        if any(metric["label"] in self.refused for metric in metrics):
            return 400, {"errors": ["invalid label"]}
        self.evaluations += metrics
        return 202, ""


@pytest.fixture
def backend():
    return Backend(
        server=FakeDatadog,
        writer=DatadogEmitter,
        address="base_url",
        arguments={"api_key": "dd-secret", "ml_app": "support"},
        variables=lambda url: {
            "DD_LLMOBS_OVERRIDE_ORIGIN": url,
            "DD_API_KEY": "dd-secret",
            "DD_LLMOBS_ML_APP": "support",
        },
        needed="DD_API_KEY",
        secret="dd-secret",
    )
