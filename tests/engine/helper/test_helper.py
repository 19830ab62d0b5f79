"""The helper process: what it scores, what a death costs, and when it ends. All helpers here are real."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
import time

import msgspec
import pytest

from ragspan.engine import Budget
from ragspan.engine.helper import client
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.outcomes import NotApplicable
from ragspan.records import RagRecord, RetrievedContext

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system does not tell when a process ends")
LOCK = threading.Lock()


@pytest.fixture
def engine_of(fakes, obedient, make_engine):
    """An engine with an obedient judge, and its emitter."""

    def make(judge=None, **options):
        emitter = fakes.ListEmitter()
        metric = obedient.Obeying(judge or obedient.ObedientJudge(), options.pop("args", ()))
        return make_engine(metric, emitters=[emitter], **options), emitter

    return make


# What it scores


@pytest.mark.parametrize("judging", ["helper", "thread"])
async def test_scores_are_the_same_wherever_they_are_computed(fakes, score_one, caplog, judging):
    judge = OverlapJudge()
    metrics = [
        *(ContextAdherence(judge, polls=3), Completeness(judge, polls=3)),
        *(ContextUtilization(judge), Faithfulness(judge)),
    ]
    record = fakes.a_record(
        question="How long is the Nile?",
        contexts=["The Nile is 6650 km long.", "The Nile ends in Egypt.", "Bread is baked of flour."],
        response="The Nile is 6650 km long. It begins in France.",
    )

    assert score_one(*metrics, record=record, judging=judging).outcomes == {
        metric.name: await metric.score(record) for metric in metrics
    }
    assert caplog.messages == []  # it would say that there is no helper


def test_a_record_reaches_it_with_all_that_can_be_read_there(fakes):
    """Metadata may hold anything that a framework puts there, and texts lone surrogates."""
    metadata = {"client": LOCK, "part": 3, "much": 2**70, "nothing": float("nan")}
    context = RetrievedContext(text="caf\ud800", metadata=metadata, score=0.5)
    record = fakes.a_record(contexts=[context], metadata={"tenant": "a"})
    expected = {"part": 3, "much": 2**70, "nothing": None}

    assert msgspec.json.decode(record.to_json().encode(), type=RagRecord) == dataclasses.replace(
        record, contexts=(dataclasses.replace(context, text="caf?", metadata=expected),)
    )


def test_a_metric_whose_judge_spends_money_is_scored_in_the_application_where_the_budget_is(
    fakes, engine_of, obedient, helper_of
):
    engine, emitter = engine_of(obedient.PaidJudge(), budget=Budget(tokens_per_minute=30))
    fakes.score(engine, fakes.a_record(question="pay 45"))
    fakes.score(engine, fakes.a_record(question="pay 0"))
    paid, denied = (scored.outcomes["obeying"] for scored in emitter.scored)

    assert (paid.explanation, paid.usage.input_tokens) == (str(os.getpid()), 45)
    assert denied == NotApplicable(reason="budget_exhausted", detail="tokens_per_minute")
    assert helper_of(engine) is None


def test_what_does_not_pickle_is_scored_in_a_thread_and_that_is_logged_once(engine_of, explanations, caplog):
    engine, emitter = engine_of(args=(LOCK,))

    explained = explanations(engine, emitter, "return_arguments 1", "return_arguments 2")

    assert set(explained.values()) == {str((LOCK,))}
    [line] = caplog.messages
    assert line.startswith("metric obeying is scored in a thread of the application, not in the helper: ")


# Deaths


@pytest.mark.slow
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
    assert (stats.submitted, stats.finished, stats.dropped, stats.errors) == (21, 21, {}, {"helper": 1})
    assert {scored.record.question for scored in emitter.scored} == set(questions)
    assert helper_of(engine) != killed


@pytest.mark.slow
def test_a_record_that_kills_its_helper_fails_and_those_around_it_are_scored_by_the_next(engine_of, explanations):
    """None of it runs in the application, which it would end."""
    engine, emitter = engine_of(concurrency=8)
    around = [f"tell_process {number}" for number in range(8)]

    explained = explanations(engine, emitter, *around[:4], "crash", *around[4:])

    assert explained.pop("crash") == "helper_died"
    assert str(os.getpid()) not in explained.values()
    assert all(explanation.isdigit() for explanation in explained.values())
    assert engine.stats().errors == {"metric": 1, "helper": 2}


@pytest.mark.slow
def test_a_helper_that_answers_nothing_is_killed_and_replaced(
    fakes, engine_of, explanations, helper_of, stopped, monkeypatch
):
    monkeypatch.setattr(client, "_MAX_SILENCE", 1.0)
    engine, emitter = engine_of(metric_timeout=2.0)
    explanations(engine, emitter, "tell_process 1")
    hung = helper_of(engine)
    stopped(hung)
    explanations(engine, emitter, "tell_process 2", "tell_process 3")

    explained = explanations(engine, emitter, "tell_process 4")
    assert explained["tell_process 4"] == str(helper_of(engine))
    assert helper_of(engine) != hung


@pytest.mark.slow
def test_a_helper_that_was_idle_for_long_is_not_killed_over_one_slow_record(
    engine_of, explanations, blockade, helper_of, monkeypatch
):
    engine, emitter = engine_of(metric_timeout=2.0)
    explanations(engine, emitter, "tell_process 1")
    used, now = helper_of(engine), time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + 2 * client._MAX_SILENCE)

    assert explanations(engine, emitter, blockade.question)[blockade.question] == "timeout"
    blockade.let_go()

    assert explanations(engine, emitter, "tell_process 2")["tell_process 2"] == str(used)


@pytest.mark.parametrize(
    ("executable", "reason"),
    [("/not/there/python", "No such file or directory"), ("says nothing", "it ended at once")],
)
def test_where_no_helper_can_be_started_a_thread_computes_and_the_log_says_what_that_costs(
    engine_of, explanations, monkeypatch, caplog, tmp_path, executable, reason
):
    if executable == "says nothing":
        (tmp_path / "python").write_text(f"#!/bin/sh\necho started >> {tmp_path}/starts\nexit 7")
        (tmp_path / "python").chmod(0o755)
        executable = str(tmp_path / "python")
    monkeypatch.setattr("sys.executable", executable)
    monkeypatch.setattr("sys.exec_prefix", "/not/there")
    engine, emitter = engine_of()

    for question in ("tell_process 1", "tell_process 2"):
        assert explanations(engine, emitter, question)[question] == str(os.getpid())
    [line] = [line for line in caplog.messages if line.startswith("there is no helper process: ")]
    assert reason in line
    assert line.endswith("the slowest responses (p99) may take twice as long")
    assert executable == "/not/there/python" or (tmp_path / "starts").read_text() == "started\n"


# Its life beside an application's


ASKING = """
    engine = make_engine()
    ask(engine, "{}")
    engine.flush(60)
    {}
"""


@pytest.mark.slow
def test_nothing_of_the_applications_is_run_or_imported_there(start, tmp_path):
    """Neither its main module, nor its `sitecustomize`, nor what lies about in the working folder."""
    instrumenting, working = tmp_path / "instrumenting", tmp_path / "working"
    instrumenting.mkdir()
    working.mkdir()
    (instrumenting / "sitecustomize.py").write_text("print('instrumented')")
    (working / "socket.py").write_text("raise SystemExit(9)")
    program = "print('run')\n" + ASKING.format("tell_modules", "").replace("\n    ", "\n")
    lines = start(program, "-X", "dev", folder=working, PYTHONPATH=str(instrumenting)).rest()

    assert lines[:2] == ["instrumented", "run"]
    assert "'ragspan.engine.helper.serving'" in lines[2]
    assert "program" not in lines[2]
    assert len(lines) == 3


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["threading.Event().wait()", "os._exit(0)", "engine.shutdown(20)"])
def test_the_helper_ends_with_the_application(start, watch, ending):
    application = start(ASKING.format("tell_process", ending))
    helper = watch(application.line().split()[-1])
    if "wait" in ending:
        application.process.kill()

    assert helper.ends()


@pytest.mark.slow
def test_it_has_no_descriptor_of_the_applications_and_leaves_none_and_no_zombie(start):
    """A server's listening socket would stay bound for as long as the helper lives."""
    application = start("""
        import socket
        listening = socket.create_server(("127.0.0.1", 0))
        listening.set_inheritable(True)
        engine = make_engine()
        before = os.listdir("/proc/self/fd")
        ask(engine, "tell_process")
        engine.flush(60)
        pid = engine._work.helper.process.pid
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
        print(os.readlink(f"/proc/self/fd/{listening.fileno()}") in links)
        engine.shutdown(20)
        print(os.listdir("/proc/self/fd") == before)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            print("no child")
    """)

    assert application.rest()[1:] == ["False", "True", "no child"]


@pytest.mark.slow
def test_a_fork_in_mid_work_has_a_helper_of_its_own(fakes, make_engine, obedient, in_child, blockade, helper_of):
    emitter = fakes.ListEmitter()
    engine = make_engine(obedient.Obeying(), emitters=[emitter])
    engine.submit(fakes.a_record(question=blockade.question))
    helper = blockade.wait_until_started()

    def use():
        engine.submit(fakes.a_record(question="tell_process"))
        flushed = engine.flush(fakes.PATIENCE)
        return [flushed, emitter.scored[-1].outcomes["obeying"].explanation, helper_of(engine), os.getpid()]

    flushed, explanation, own_helper, child = in_child(use)
    assert flushed
    assert explanation == str(own_helper)
    assert own_helper not in {helper, child}

    blockade.let_go()
    assert engine.flush(fakes.PATIENCE)
    assert helper_of(engine) == helper
