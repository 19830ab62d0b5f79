"""Judges that compute in a real helper process, in a thread, or where they are called."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from ragspan.engine import Budget
from ragspan.engine import worker as engine_worker
from ragspan.engine.helper import client
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.outcomes import MetricFailure, NotApplicable

NILE = {
    "question": "How long is the Nile?",
    "contexts": ["The Nile is 6650 km long.", "The Nile ends in Egypt.", "Bread is baked of flour."],
    "response": "The Nile is 6650 km long. It begins in France.",
}


def all_metrics():
    judge = OverlapJudge()
    return [
        ContextAdherence(judge, polls=3),
        Completeness(judge, polls=3),
        ContextUtilization(judge),
        Faithfulness(judge),
    ]


def outcome_of(fakes, engine, emitter, question):
    fakes.score(engine, fakes.a_record(question=question))
    return emitter.scored[-1].outcomes["obeying"]


@pytest.fixture
def engine_of(fakes, obedient, make_engine):
    """An engine with an obedient judge, and its emitter."""

    def make(judge=None, **options):
        emitter = fakes.ListEmitter()
        return make_engine(obedient.Obeying(judge or obedient.ObedientJudge()), emitters=[emitter], **options), emitter

    return make


@pytest.mark.parametrize("judging", ["helper", "thread"])
async def test_scores_are_the_same_wherever_they_are_computed(fakes, score_one, judging):
    record = fakes.a_record(**NILE)

    assert score_one(*all_metrics(), record=record, judging=judging).outcomes == {
        metric.name: await metric.score(record) for metric in all_metrics()
    }


def test_a_judge_computes_in_a_thread_of_this_process_if_asked_to(engine_of, explanations):
    engine, emitter = engine_of(judging="thread")

    assert explanations(engine, emitter, "tell_process", "tell_thread") == {
        "tell_process": str(os.getpid()),
        "tell_thread": "ragspan-judge",
    }


@pytest.mark.parametrize("judging", ["helper", "thread"])
def test_a_judge_with_a_thread_of_its_own_is_asked_about_several_records_at_once(
    engine_of, explanations, obedient, judging
):
    engine, emitter = engine_of(obedient.WaitingJudge(), judging=judging)

    explained = explanations(engine, emitter, "meet 1", "meet 2")

    assert set(explained.values()) == {"MainThread" if judging == "helper" else "ragspan-worker"}


def test_an_engine_whose_judges_do_not_compute_starts_no_helper(fakes, make_engine, helper_of):
    engine = make_engine(fakes.ConstantMetric())
    fakes.score(engine)

    assert helper_of(engine) is None


def test_a_copy_of_a_judge_serves_all_records(engine_of, explanations):
    engine, emitter = engine_of()

    explanations(engine, emitter, "remember 1")
    assert explanations(engine, emitter, "remember 2") == {"remember 1": "1", "remember 2": "2"}


def test_a_metric_whose_judge_spends_money_is_scored_in_the_application_where_the_budget_is(
    fakes, engine_of, obedient, helper_of
):
    engine, emitter = engine_of(obedient.PaidJudge(), budget=Budget(tokens_per_minute=30))

    outcomes = [outcome_of(fakes, engine, emitter, f"pay {used}") for used in (45, 0)]

    assert (outcomes[0].explanation, outcomes[0].usage.input_tokens) == (str(os.getpid()), 45)
    assert outcomes[1] == NotApplicable(reason="budget_exhausted", detail="tokens_per_minute")
    assert helper_of(engine) is None


@pytest.mark.parametrize("judging", ["helper", "thread"])
@pytest.mark.parametrize(
    ("command", "error_type", "message"),
    [
        ("fail", "too_hard", "nobody knows"),
        ("raise_anything", "LookupError", "not there"),
        ("raise_what_has_no_text", "UnspeakableError", ""),
        ("exit", "SystemExit", "1"),
    ],
)
def test_what_a_judge_raises_is_the_failure_wherever_it_computes(
    fakes, engine_of, judging, command, error_type, message
):
    engine, emitter = engine_of(judging=judging)

    assert outcome_of(fakes, engine, emitter, command) == MetricFailure(error_type=error_type, message=message)


@pytest.mark.parametrize("judging", ["helper", "thread"])
def test_an_outage_of_a_judges_service_is_one_wherever_the_judge_computes(fakes, engine_of, judging):
    """A fleet's worker gives the record back then, rather than acknowledge it."""
    engine, emitter = engine_of(judging=judging)

    outcome = outcome_of(fakes, engine, emitter, "fail_by_an_outage")

    assert (outcome.error_type, outcome.outage) == ("model_unavailable", True)
    fleet = pytest.importorskip("ragspan_nats.scoring")
    verdict = fleet.disposition_of(emitter.scored[-1], 1, fleet.WorkerOptions())
    assert (verdict.ending, verdict.reason) == ("nacked", "judge_outage")


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("make", "command", "explanation"),
    [
        (lambda there: there.Obeying(there.ObedientJudge(baggage=LOCK)), "tell_process", str(os.getpid())),
        (lambda there: there.Obeying(args=(LOCK,)), "return_arguments", str((LOCK,))),
    ],
    ids=["judge that does not pickle", "metric that does not pickle"],
)
def test_what_the_helper_cannot_score_is_scored_in_a_thread_and_that_is_logged_once(
    fakes, obedient, make_engine, explanations, caplog, make, command, explanation
):
    emitter = fakes.ListEmitter()
    engine = make_engine(make(obedient), emitters=[emitter])

    explained = explanations(engine, emitter, f"{command} 1", f"{command} 2")
    assert [*explained.values()] == [explanation] * 2
    [line] = caplog.messages
    assert line.startswith("metric obeying is scored in a thread of the application, not in the helper: ")


def test_an_outcome_that_does_not_pickle_is_a_failure(fakes, engine_of):
    engine, emitter = engine_of()

    assert outcome_of(fakes, engine, emitter, "return_what_does_not_pickle").error_type == "helper_refused"


def test_a_helper_that_is_killed_in_mid_work_costs_no_score(fakes, engine_of, blockade, helper_of):
    engine, emitter = engine_of(concurrency=8)
    questions = [blockade.question, *(f"tell_process {number}" for number in range(20))]
    for question in questions:
        engine.submit(fakes.a_record(question=question))
    killed = blockade.wait_until_started()
    blockade.let_go()
    os.kill(killed, signal.SIGKILL)

    assert engine.flush(fakes.PATIENCE)
    stats = engine.stats()
    assert (stats.submitted, stats.finished, stats.dropped, stats.errors) == (21, 21, {}, {})
    assert {scored.record.question for scored in emitter.scored} == set(questions)
    assert helper_of(engine) != killed


@pytest.mark.slow
@pytest.mark.parametrize("command", ["kill_process", "crash"])
def test_a_record_that_kills_its_helper_fails_and_those_around_it_are_scored(engine_of, explanations, command):
    engine, emitter = engine_of(concurrency=8)
    before, after = ([f"tell_process {part}{number}" for number in range(8)] for part in ("before", "after"))

    explained = explanations(engine, emitter, *before, command, *after)

    assert explained.pop(command) == "helper_died"
    assert str(os.getpid()) not in explained.values()
    assert all(explanation.isdigit() for explanation in explained.values())
    assert len(explained) == 16
    assert engine.stats().errors == {"metric": 1}
    assert engine._work.helper.client.deaths == 2


@pytest.mark.slow
def test_what_keeps_killing_helpers_never_runs_in_the_application(engine_of, explanations, monkeypatch, caplog):
    """It would end the tests, too. What else is asked meanwhile waits for the next helper."""
    monkeypatch.setattr(client, "_MAX_DEATHS", 2)
    monkeypatch.setattr(client, "_FIRST_PAUSE", 0.01)
    engine, emitter = engine_of(concurrency=1)

    explained = explanations(engine, emitter, *(f"crash {number}" for number in range(4)), "tell_process")

    assert explained.pop("tell_process") not in {"helper_died", str(os.getpid())}
    assert set(explained.values()) == {"helper_died"}
    assert len([line for line in caplog.messages if "its work waits: it died 2 times" in line]) == 1


@pytest.mark.slow
def test_after_too_many_deaths_a_thread_takes_over_for_a_while(
    fakes, engine_of, explanations, helper_of, caplog, monkeypatch
):
    monkeypatch.setattr(client, "_FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(client, "_LONGEST_PAUSE", 3600.0)
    engine, emitter = engine_of()
    for number in range(5):
        explanations(engine, emitter, f"tell_process {number}")
        os.kill(helper_of(engine), signal.SIGKILL)
    gives_up_at = time.monotonic() + fakes.PATIENCE
    while helper_of(engine) is not None:  # until the end of the fifth is seen
        assert time.monotonic() < gives_up_at

    assert explanations(engine, emitter, "tell_process 6")["tell_process 6"] == str(os.getpid())
    paused = [line for line in caplog.messages if line.startswith("there is no helper process")]
    assert len(paused) == 1
    assert "its work is done in the application: it died 5 times in a row" in paused[0]

    engine._work.helper.client._pause.succeeded()  # the pause is over
    assert explanations(engine, emitter, "tell_process 7")["tell_process 7"] == str(helper_of(engine))


def test_what_a_stopped_helper_is_sent_has_a_bound(fakes, engine_of, explanations, helper_of, stopped, monkeypatch):
    engine, emitter = engine_of(metric_timeout=0.5, concurrency=100)
    while explanations(engine, emitter, "tell_process")["tell_process"] == "timeout":
        emitter.scored.clear()
    stopped(helper_of(engine))
    helper = engine._work.helper.client._current
    for number in range(300):
        engine.submit(fakes.a_record(question=f"tell_process {number}"))

    assert engine.flush(fakes.PATIENCE)
    assert engine.stats().dropped == {}
    assert {scored.outcomes["obeying"].error_type for scored in emitter.scored[-300:]} == {"timeout"}
    assert len(helper.open_questions) == 256


def test_the_helper_forgets_all_but_the_last_records(engine_of, explanations):
    engine, emitter = engine_of()
    explanations(engine, emitter, *(f"tell_process {number}" for number in range(50)))

    assert int(explanations(engine, emitter, "count_records")["count_records"]) < 20


def test_a_judge_in_the_helper_stops_when_nobody_waits_for_it_any_more(engine_of, explanations, obedient):
    """What it is still at would keep those waiting that ask now, until nobody gets an answer in time."""
    engine, emitter = engine_of(obedient.WaitingJudge(), metric_timeout=2.0)
    while explanations(engine, emitter, "count_waiting 0")["count_waiting 0"] == "timeout":
        emitter.scored.clear()  # the helper is being started

    explained = explanations(engine, emitter, *(f"wait_for_ever {number}" for number in range(3)))
    assert [*explained.values()] == ["0", "timeout", "timeout", "timeout"]
    while (waiting := explanations(engine, emitter, "count_waiting 1")["count_waiting 1"]) == "timeout":
        emitter.scored.clear()  # the machine is busy

    assert waiting == "0"


def test_a_worker_that_dies_has_a_successor_with_a_helper(fakes, make_engine, obedient, helper_of, monkeypatch):
    monkeypatch.setattr(engine_worker, "_RESTART_PAUSE", 0.0)

    emitter = fakes.ListEmitter()
    breaking = fakes.CallingMetric(lambda record: fakes.break_the_loop() if record.question == "break" else None)
    engine = make_engine(breaking, obedient.Obeying(), emitters=[emitter])
    fakes.score(engine, fakes.a_record(question="tell_process"))
    first = helper_of(engine)
    for question in ("break", "tell_process"):
        fakes.score(engine, fakes.a_record(question=question))

    assert emitter.scored[-1].outcomes["obeying"].explanation == str(helper_of(engine))
    assert helper_of(engine) not in {None, first}
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
