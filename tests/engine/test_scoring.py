from __future__ import annotations

import pytest
from fakes import InMemoryTelemetry

from ragspan.outcomes import NotApplicable, Score
from ragspan.records import SpanAnchor

SAMPLED = SpanAnchor(trace_id=1, span_id=2, trace_flags=1)
UNSAMPLED = SpanAnchor(trace_id=1, span_id=2, trace_flags=0)


@pytest.mark.parametrize(
    ("response", "refusal", "language"),
    [
        ("The passages do not contain this information.", True, "en"),
        ("It was opened in 1931, and it is the oldest of them all.", False, "en"),
        ("Er wurde 1931 eröffnet und ist nicht der älteste.", False, "de"),
        (None, False, None),
    ],
)
def test_a_refusal_is_flagged_and_the_language_guessed(fakes, score_one, response, refusal, language):
    scored = score_one(fakes.ConstantMetric(), record=fakes.a_record(response=response))

    assert (scored.refusal, scored.language) == (refusal, language)


SCORED, UNSCORED = Score(value=1.0), NotApplicable(reason="not_sampled")


@pytest.mark.parametrize(
    ("span", "parent", "options", "outcome"),
    [
        (UNSAMPLED, SAMPLED, {}, UNSCORED),
        (SAMPLED, UNSAMPLED, {}, SCORED),
        (None, UNSAMPLED, {}, UNSCORED),
        (None, SAMPLED, {}, SCORED),
        (None, None, {}, SCORED),
        (None, UNSAMPLED, {"score_unsampled": True}, SCORED),
        (None, None, {"sample_rate": 0}, UNSCORED),
    ],
)
def test_the_answers_span_decides_and_else_its_parent(fakes, score_one, span, parent, options, outcome):
    calls = []
    scored = score_one(
        fakes.CallingMetric(calls.append),
        emitter=fakes.ListEmitter(span=span),
        record=fakes.a_record(parent=parent),
        **options,
    )

    assert scored.outcomes == {"calling": outcome}
    assert len(calls) == (outcome is SCORED)


def test_scores_that_come_after_the_wait_are_emitted_by_themselves(fakes, make_engine):
    slow, telemetry = fakes.HangingMetric(), InMemoryTelemetry()
    emitter = fakes.ListEmitter(score_wait=0.01)
    engine = make_engine(slow, fakes.ConstantMetric(), emitters=[emitter], meter_provider=telemetry.meter_provider)
    engine.submit(fakes.a_record())
    first = emitter.next()
    assert (list(first.outcomes), first.late) == (["constant"], False)
    assert engine.stats().in_flight == 1

    slow.release()
    second = emitter.next()
    assert (list(second.outcomes), list(second.durations), second.late) == (["hanging"], ["hanging"], True)
    assert 0 < second.durations["hanging"] < fakes.PATIENCE
    assert engine.flush(fakes.PATIENCE)
    assert emitter.journal == ["start", "emit", "late", "flush"]
    assert engine.stats().finished == 1
    counted = telemetry.measurements()["ragspan.outcomes"]
    names = sorted((told["gen_ai.evaluation.name"], number) for told, number in counted)
    assert names == [("constant", 1), ("hanging", 1)]
