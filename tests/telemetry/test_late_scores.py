from __future__ import annotations

from dataclasses import replace

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, ParentBased

from ragspan.outcomes import NotApplicable, Score

LATE = Score(value=0.25, threshold=0.5, explanation="Two of eight.", judge="gpt")


@pytest.mark.parametrize(("spans", "sampler"), [("answer", ParentBased(ALWAYS_ON)), ("scores", ALWAYS_ON)])
def test_late_scores_of_an_unsampled_answer_make_no_span(make_telemetry, make_record, answer, parent, spans, sampler):
    telemetry = make_telemetry(sampler=sampler)
    record = make_record(parent=replace(parent, trace_flags=0))
    answer(telemetry.emitter(spans=spans), record, {"faithfulness": LATE}, late=True)

    assert telemetry.spans == ()


class TestScoresOnly:
    """`spans="scores"`: the application is traced already."""

    def test_only_evaluation_spans_are_made_below_the_span_that_the_answer_ran_under(
        self, telemetry, make_record, answer, parent
    ):
        outcomes = {"faithfulness": LATE, "completeness": LATE, "m": NotApplicable(reason="no_contexts")}

        assert answer(telemetry.emitter(spans="scores"), make_record(), outcomes) == parent
        assert {span.name for span in telemetry.spans} == {"evaluation faithfulness", "evaluation completeness"}
        assert {span.parent.span_id for span in telemetry.spans} == {parent.span_id}
        assert {span.context.trace_id for span in telemetry.spans} == {parent.trace_id}
        assert {span.links[0].context.span_id for span in telemetry.spans} == {parent.span_id}

    def test_an_answer_that_ran_under_no_span_is_built(self, telemetry, make_record, answer):
        answer(telemetry.emitter(spans="scores"), make_record(parent=None), {"m": LATE})

        assert telemetry.span("invoke_workflow rivers").attributes["ragspan.score.m"] == 0.25
        assert not [span for span in telemetry.spans if span.name.startswith("evaluation")]
