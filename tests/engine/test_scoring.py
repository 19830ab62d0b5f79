from __future__ import annotations

import pytest

from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan.records import SpanAnchor

SAMPLED = SpanAnchor(trace_id=1, span_id=2, trace_flags=1)
UNSAMPLED = SpanAnchor(trace_id=1, span_id=2, trace_flags=0)


def score_one(engine, record, emitter, patience: float):
    engine.submit(record)
    assert engine.flush(patience)
    [scored] = emitter.scored
    return scored


def test_outcomes_come_in_the_order_of_the_metrics(fakes, make_engine):
    emitter = fakes.ListEmitter()
    slow = fakes.ThreadMetric(lambda _: None, name="slow")
    engine = make_engine(slow, fakes.ConstantMetric(), emitters=[emitter])
    scored = score_one(engine, fakes.a_record(), emitter, fakes.PATIENCE)

    assert list(scored.outcomes) == ["slow", "constant"]
    assert set(scored.durations) == {"slow", "constant"}
    assert min(scored.durations.values()) >= 0


def test_the_first_span_that_an_emitter_names_is_the_answers(fakes, make_engine):
    other = SpanAnchor(trace_id=3, span_id=4)
    emitters = [fakes.ListEmitter(), fakes.ListEmitter(span=SAMPLED), fakes.ListEmitter(span=other)]
    engine = make_engine(fakes.ConstantMetric(), emitters=emitters)
    engine.submit(fakes.a_record())

    assert engine.flush(fakes.PATIENCE)
    assert [emitter.scored[0].span for emitter in emitters] == [SAMPLED] * 3


def test_emitters_see_a_record_before_any_judge_is_paid(fakes, make_engine):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.CallingMetric(lambda _: emitter.journal.append("score")), emitters=[emitter])
    score_one(engine, fakes.a_record(), emitter, fakes.PATIENCE)

    assert emitter.journal == ["start", "score", "emit", "flush"]


@pytest.mark.parametrize(
    ("response", "refusal"),
    [("The passages do not contain this information.", True), ("It opened in 1931.", False), (None, False)],
)
def test_a_refusal_is_flagged(fakes, make_engine, response: str | None, refusal: bool):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter])

    assert score_one(engine, fakes.a_record(response=response), emitter, fakes.PATIENCE).refusal is refusal


@pytest.mark.parametrize(
    ("response", "language"),
    [
        ("It was opened in 1931, and it is the oldest of them all.", "en"),
        ("Er wurde 1931 eröffnet und ist nicht der älteste.", "de"),
        ("它于1931年开业。", "zh"),
        ("ის გაიხსნა", "und"),
        (None, None),
    ],
)
def test_the_language_of_the_response_is_guessed(fakes, make_engine, response: str | None, language: str | None):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter])

    assert score_one(engine, fakes.a_record(response=response), emitter, fakes.PATIENCE).language == language


@pytest.mark.parametrize(
    ("span", "parent", "outcome"),
    [
        (UNSAMPLED, SAMPLED, NotApplicable(reason="not_sampled")),
        (SAMPLED, UNSAMPLED, Score(value=1.0)),
        (None, UNSAMPLED, NotApplicable(reason="not_sampled")),
        (None, SAMPLED, Score(value=1.0)),
        (None, None, Score(value=1.0)),
    ],
)
def test_the_answers_span_decides_and_else_its_parent(fakes, make_engine, span, parent, outcome):
    emitter = fakes.ListEmitter(span=span)
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter])
    scored = score_one(engine, fakes.a_record(parent=parent), emitter, fakes.PATIENCE)

    assert scored.outcomes == {"constant": outcome}
    assert engine.stats().scored == 1


def test_answers_of_unsampled_traces_are_scored_on_request(fakes, make_engine):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter], score_unsampled=True)
    scored = score_one(engine, fakes.a_record(parent=UNSAMPLED), emitter, fakes.PATIENCE)

    assert scored.outcomes == {"constant": Score(value=1.0)}


def test_what_is_not_chosen_runs_no_metric_and_is_emitted(fakes, make_engine):
    calls: list[object] = []
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.CallingMetric(calls.append), emitters=[emitter], sample_rate=0)
    scored = score_one(engine, fakes.a_record(), emitter, fakes.PATIENCE)

    assert scored.outcomes == {"calling": NotApplicable(reason="not_sampled")}
    assert (calls, engine.stats().scored) == ([], 1)


def test_single_metrics_can_be_left_out(fakes, make_engine):
    calls: list[object] = []
    emitter = fakes.ListEmitter()
    engine = make_engine(
        fakes.CallingMetric(calls.append),
        fakes.ConstantMetric(),
        fakes.ScreeningMetric(name="screening"),
        emitters=[emitter],
        metric_sample_rates={"calling": 0, "screening": 0},
    )
    scored = score_one(engine, fakes.a_record(), emitter, fakes.PATIENCE)

    assert list(scored.outcomes.items()) == [
        ("calling", NotApplicable(reason="not_sampled")),
        ("constant", Score(value=1.0)),
        ("screening", NotApplicable(reason="no_contexts")),
    ]
    assert list(scored.durations) == ["constant"]
    assert calls == []


def test_single_metrics_can_be_taken_where_the_others_are_left_out(fakes, make_engine):
    emitter = fakes.ListEmitter()
    engine = make_engine(
        fakes.ConstantMetric(),
        fakes.ConstantMetric(name="other"),
        emitters=[emitter],
        sample_rate=0,
        metric_sample_rates={"other": 1},
    )
    scored = score_one(engine, fakes.a_record(), emitter, fakes.PATIENCE)

    assert scored.outcomes == {"constant": NotApplicable(reason="not_sampled"), "other": Score(value=1.0)}


def test_a_metrics_own_reason_comes_before_that_it_was_not_sampled(fakes, make_engine):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ScreeningMetric(), emitters=[emitter], sample_rate=0)
    scored = score_one(engine, fakes.a_record(), emitter, fakes.PATIENCE)

    assert scored.outcomes == {"constant": NotApplicable(reason="no_contexts")}


def test_a_metric_that_fails_to_screen_was_not_sampled(fakes, make_engine):
    metric = fakes.ScreeningMetric()
    metric.screen = lambda _: 1 // 0
    emitter = fakes.ListEmitter()
    engine = make_engine(metric, emitters=[emitter], sample_rate=0)
    scored = score_one(engine, fakes.a_record(), emitter, fakes.PATIENCE)

    assert scored.outcomes == {"constant": NotApplicable(reason="not_sampled")}
    assert engine.stats().errors == {"screen": 1}


def test_scores_that_come_after_the_wait_are_emitted_by_themselves(fakes, make_engine):
    slow = fakes.HangingMetric()
    emitter = fakes.ListEmitter(score_wait=0.01)
    engine = make_engine(slow, fakes.ConstantMetric(), emitters=[emitter])
    engine.submit(fakes.a_record())
    first = emitter.next()
    assert (list(first.outcomes), first.late) == (["constant"], False)
    assert engine.stats().in_flight == 1

    slow.release()
    second = emitter.next()
    assert (list(second.outcomes), list(second.durations), second.late) == (["hanging"], ["hanging"], True)
    assert engine.flush(fakes.PATIENCE)
    assert emitter.journal == ["start", "emit", "late", "flush"]
    assert engine.stats().scored == 1


def test_the_most_patient_emitter_decides_how_long_all_wait(fakes, make_engine):
    slow = fakes.HangingMetric()
    emitters = [fakes.ListEmitter(score_wait=0), fakes.ListEmitter()]
    engine = make_engine(slow, emitters=emitters)
    engine.submit(fakes.a_record())
    slow.wait_until_started()
    slow.release()

    assert engine.flush(fakes.PATIENCE)
    assert [emitter.journal for emitter in emitters] == [["start", "emit", "flush"]] * 2


def test_without_a_wait_scores_that_are_there_at_once_are_not_late(fakes, make_engine):
    emitter = fakes.ListEmitter(score_wait=0)
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter])
    scored = score_one(engine, fakes.a_record(), emitter, fakes.PATIENCE)

    assert (list(scored.outcomes), scored.late) == (["constant"], False)


def test_a_timeout_within_the_wait_comes_with_the_other_scores(fakes, make_engine):
    emitter = fakes.ListEmitter(score_wait=fakes.PATIENCE)
    engine = make_engine(fakes.HangingMetric(), fakes.ConstantMetric(), emitters=[emitter], metric_timeout=0.01)
    scored = score_one(engine, fakes.a_record(), emitter, fakes.PATIENCE)

    assert scored.outcomes["hanging"] == MetricFailure(error_type="timeout", message="no outcome within 0.01 s")
    assert scored.outcomes["constant"] == Score(value=1.0)


def test_a_timeout_after_the_wait_comes_late(fakes, make_engine):
    emitter = fakes.ListEmitter(score_wait=0.01)
    engine = make_engine(fakes.HangingMetric(), fakes.ConstantMetric(), emitters=[emitter], metric_timeout=0.05)
    engine.submit(fakes.a_record())

    assert list(emitter.next().outcomes) == ["constant"]
    assert emitter.next().outcomes["hanging"].error_type == "timeout"


def test_a_slow_metric_does_not_keep_the_others_from_running(fakes, make_engine):
    hanging, others = fakes.HangingMetric(), fakes.HangingMetric("others")
    engine = make_engine(hanging, others)
    engine.submit(fakes.a_record())
    engine.submit(fakes.a_record())

    hanging.wait_until_started(2)
    others.wait_until_started(2)

    assert engine.stats().in_flight == 2


def test_records_without_metrics_are_emitted_all_the_same(fakes, make_engine):
    emitter = fakes.ListEmitter()
    engine = make_engine(emitters=[emitter])

    assert score_one(engine, fakes.a_record(), emitter, fakes.PATIENCE).outcomes == {}
