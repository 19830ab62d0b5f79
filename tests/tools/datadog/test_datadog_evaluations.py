"""What an evaluation says in Datadog, and where the writer finds its intake."""

from __future__ import annotations

import pytest
from writer_fixtures import ANSWER

from ragspan.outcomes import Score
from ragspan.records import SpanAnchor
from ragspan.tools.datadog import DatadogEmitter


@pytest.fixture
def written(server, deliver, make_scored):
    """The evaluations that Datadog has after these outcomes were emitted, by label."""

    def write(outcomes=None, *, span=ANSWER, **options):
        deliver(make_scored(outcomes, span=span), **options)
        return {metric["label"]: metric for metric in server.evaluations}

    return write


def test_an_evaluation_is_joined_to_the_answers_span_with_all_that_is_known(written):
    score = Score(value=0.25, threshold=0.5, explanation="two claims are made up", judge="openai:gpt-4o-mini")
    span = SpanAnchor(trace_id=0x0AF7651916CD43DD8448EB211C80319C, span_id=0xB7AD6B7169203331)

    found = written({"faithfulness": score}, span=span, explanations=True)["faithfulness"]

    assert found["join_on"]["span"] == {
        "span_id": "13235353014750950193",
        "trace_id": "14576827793038113322513871894673895836",
    }
    assert (found["metric_type"], found["score_value"], found["assessment"]) == ("score", 0.25, "fail")
    assert found["reasoning"] == "two claims are made up"
    assert (found["ml_app"], found["timestamp_ms"]) == ("support", 1_763_900_000_123)
    assert found["tags"] == ["source:otel", "annotator:LLM", "judge:openai:gpt-4o-mini"]
    assert found["metadata"] == {
        "record_id": "record-1",
        "judge": "openai:gpt-4o-mini",
        "threshold": 0.5,
        "label": "fail",
    }


@pytest.mark.parametrize(
    ("metric", "label"),
    [
        ("faithfulness", "faithfulness"),
        ("my.metric-2 é", "my_metric_2__"),
        ("2nd", "m_2nd"),
        ("_private", "m__private"),
        ("x" * 210, "x" * 200),
    ],
)
def test_a_label_has_only_what_datadog_allows(written, metric, label):
    assert list(written({metric: Score(value=1.0)})) == [label]


@pytest.mark.parametrize(
    ("environment", "address", "app"),
    [
        ({"OTEL_SERVICE_NAME": "support"}, "https://api.datadoghq.com", "support"),
        ({"DD_SITE": "datadoghq.eu", "DD_SERVICE": "s", "DD_LLMOBS_ML_APP": "m"}, "https://api.datadoghq.eu", "m"),
        ({"DD_LLMOBS_OVERRIDE_ORIGIN": "http://proxy:8080", "DD_SERVICE": "s"}, "http://proxy:8080", "s"),
    ],
)
def test_address_key_and_application_are_those_of_datadogs_own_library(monkeypatch, environment, address, app):
    for name, value in {**environment, "DD_API_KEY": "key"}.items():
        monkeypatch.setenv(name, value)

    writer = DatadogEmitter()

    assert (writer.client.endpoint.url, writer.client.endpoint.headers, writer._app) == (
        address,
        {"dd-api-key": "key"},
        app,
    )
