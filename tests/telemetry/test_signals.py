from __future__ import annotations

from dataclasses import replace

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from ragspan.outcomes import MetricFailure, NotApplicable, Score

OUTCOMES = {
    "faithfulness": Score(value=0.25, threshold=0.5, explanation="Two of eight.", judge="gpt"),
    "completeness": MetricFailure(error_type="timeout", message="SECRET"),
    "context_adherence": NotApplicable(reason="no_contexts"),
}


def test_events_and_an_exemplar_point_at_the_answers_span(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record(), OUTCOMES)

    context = telemetry.span("invoke_workflow rivers").context
    assert {(event.trace_id, event.span_id) for event in telemetry.events} == {(context.trace_id, context.span_id)}
    (point,) = telemetry.points("ragspan.score")
    assert point.explicit_bounds == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    (exemplar,) = point.exemplars
    assert (exemplar.trace_id, exemplar.span_id) == (context.trace_id, context.span_id)


@pytest.mark.parametrize("has_parent", [True, False])
def test_signals_of_an_unsampled_answer_point_at_its_parent_or_nowhere(
    make_telemetry, make_record, answer, parent, has_parent
):
    telemetry = make_telemetry(sampler=ParentBased(ALWAYS_OFF))
    unsampled = replace(parent, trace_flags=0) if has_parent else None
    with make_telemetry().tracer_provider.get_tracer("somebody else").start_as_current_span("ambient"):
        answer(telemetry.emitter(), make_record(parent=unsampled), OUTCOMES)

    target = (parent.trace_id, parent.span_id) if has_parent else (0, 0)
    assert [(event.trace_id, event.span_id) for event in telemetry.events] == [target] * 2
    (point,) = telemetry.points("ragspan.score")
    assert (point.count, list(point.exemplars)) == (1, [])
