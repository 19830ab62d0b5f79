"""What gives way when a span can hold no more attributes."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace import SpanLimits

from ragspan.outcomes import Score


def outcomes(number):
    return {
        f"m{i:02}": Score(value=0.5, threshold=0.5, explanation="why", judge="gpt", details={"votes": 3, "spread": 0.1})
        for i in range(number)
    }


def kinds_of(span):
    """How many attributes of each kind the span has, the metric's name left out."""
    kept = [key.rpartition(".")[0] for key in span.attributes]
    return {kind: kept.count(kind) for kind in ("ragspan.score", "ragspan.label", "ragspan.explanation")}


def test_twelve_metrics_fit_without_losing_anything_that_matters(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record(), outcomes(12))

    span = telemetry.span("invoke_workflow rivers")
    assert span.dropped_attributes == 0
    assert len(span.attributes) <= 128
    assert span.attributes["openinference.span.kind"] == "CHAIN"
    assert kinds_of(span) == {"ragspan.score": 12, "ragspan.label": 12, "ragspan.explanation": 12}


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (40, {"ragspan.score": 12, "ragspan.label": 12, "ragspan.explanation": 7}),
        (12, {"ragspan.score": 6, "ragspan.label": 0, "ragspan.explanation": 0}),
    ],
)
def test_explanations_then_labels_then_scores_give_way(make_telemetry, make_record, answer, limit, expected):
    telemetry = make_telemetry(limits=SpanLimits(max_span_attributes=limit))
    answer(telemetry.emitter(), make_record(), outcomes(12))

    span = telemetry.span("invoke_workflow rivers")
    assert span.dropped_attributes == 0
    assert span.attributes["ragspan.record_id"] == "record-1"
    assert kinds_of(span) == expected
