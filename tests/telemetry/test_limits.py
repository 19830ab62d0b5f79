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


def test_openinference_copies_give_way_first_and_as_whole_objects(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record(), outcomes(14))

    copies = [key for key in telemetry.span("invoke_workflow rivers").attributes if key.startswith("evaluations.")]
    assert 0 < len(copies) < 14 * 5
    assert len(copies) % 5 == 0
    assert {key.split(".")[1] for key in copies} == {str(index) for index in range(len(copies) // 5)}


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (60, {"ragspan.score": 12, "ragspan.label": 12, "ragspan.explanation": 12}),
        (40, {"ragspan.score": 12, "ragspan.label": 12, "ragspan.explanation": 7}),
        (25, {"ragspan.score": 12, "ragspan.label": 4, "ragspan.explanation": 0}),
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


def test_a_provider_without_a_limit_gets_everything(make_telemetry, make_record, answer):
    telemetry = make_telemetry(limits=SpanLimits(max_span_attributes=SpanLimits.UNSET))
    answer(telemetry.emitter(), make_record(), outcomes(100))

    span = telemetry.span("invoke_workflow rivers")
    assert kinds_of(span) == {"ragspan.score": 100, "ragspan.label": 100, "ragspan.explanation": 100}
    assert span.attributes["evaluations.99.evaluation.name"] == "m99"
