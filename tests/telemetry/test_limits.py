"""What gives way when a span can hold no more attributes."""

from __future__ import annotations

import json

import pytest
from opentelemetry.sdk.trace import SpanLimits
from opentelemetry.trace import NonRecordingSpan, SpanContext

from ragspan.outcomes import Score
from ragspan.telemetry.values import set_within_limit


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


@pytest.mark.parametrize(("longest", "items"), [(1000, 3), (80, 2), (30, 1), (10, 0)])
def test_json_is_not_cut_in_the_middle(make_telemetry, longest, items):
    telemetry = make_telemetry(limits=SpanLimits(max_span_attribute_length=longest))
    span = telemetry.tracer_provider.get_tracer("t").start_span("s")
    claims, text = (
        [{"claim": "It hums."}, {"claim": "It is new."}, {"claim": "It stands there." * 3}],
        "[It is a text. " * 80,
    )
    set_within_limit(
        span,
        [{"claims": json.dumps(claims), "object": json.dumps(dict.fromkeys(map(str, range(300)), 1)), "text": text}],
    )

    assert json.loads(span.attributes["claims"]) == claims[:items]
    assert span.attributes["text"] == text[:longest]
    assert "object" not in span.attributes


def test_nothing_less_important_takes_the_place_of_a_group_that_does_not_fit(make_telemetry):
    telemetry = make_telemetry(limits=SpanLimits(max_span_attributes=3))
    span = telemetry.tracer_provider.get_tracer("t").start_span("s", attributes={"theirs": 1})
    set_within_limit(span, [{"first": 1}, {"second.a": 1, "second.b": 1}, {"third": 1}])

    assert set(span.attributes) == {"theirs", "first"}


def test_a_span_that_tells_no_limit_is_taken_to_have_the_default():
    class KeepsAttributes(NonRecordingSpan):
        def is_recording(self):
            return True

        def set_attributes(self, attributes):
            self.kept = attributes

    span = KeepsAttributes(SpanContext(trace_id=1, span_id=1, is_remote=False))
    set_within_limit(span, ({f"name{number}": number} for number in range(200)))

    assert len(span.kept) == 128
