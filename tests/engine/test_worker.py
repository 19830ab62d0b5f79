from __future__ import annotations

import asyncio
import errno
import socket
import threading

import pytest
from waiting import until

from ragspan.engine import processor, scoring_engine


@pytest.fixture
def quick_restarts(monkeypatch):
    monkeypatch.setattr(processor, "_RESTART_PAUSE", 0.001)
    monkeypatch.setattr(scoring_engine, "_LOOK_AGAIN", 0.002)


def worker_of(name: str) -> threading.Thread:
    [worker] = [thread for thread in threading.enumerate() if thread.name == f"{name}-worker"]
    return worker


def test_a_worker_whose_loop_breaks_counts_its_records_and_goes_on_with_another_loop(
    fakes, make_engine, quick_restarts
):
    metric = fakes.CallingMetric(lambda record: fakes.break_the_loop() if record.question == "break" else None)
    engine = make_engine(metric, fakes.HangingMetric(), name="mortal", metric_timeout=0.01, concurrency=1)
    fakes.score(engine)
    worker = worker_of("mortal")
    for question in ("break", "this waits when the loop breaks"):
        engine.submit(fakes.a_record(question=question))
    assert engine.flush(fakes.PATIENCE)
    fakes.score(engine)

    stats = engine.stats()
    assert (stats.submitted, stats.finished, dict(stats.dropped)) == (4, 3, {"worker_error": 1})
    assert worker_of("mortal") is worker


NO_THREAD = (
    "no thread can be started (can't start new thread), so nothing is scored: what is submitted waits, and is tried again; "
    "see the limits of threads (ulimit -u, pids.max) and of memory"
)


@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        ((threading.Thread, "start"), RuntimeError("can't start new thread"), NO_THREAD),
        ((socket, "socketpair"), OSError(errno.EMFILE, "Too many"), "nothing is scored: Too many; see ulimit -n"),
    ],
    ids=["threads", "descriptors"],
)
def test_what_waits_for_the_system_is_scored_once_that_has_room(
    fakes, make_engine, quick_restarts, monkeypatch, caplog, place, error, said
):
    def refuse(*_):
        raise type(error)(*error.args)  # each has frames of its own, which keep nothing of the worker alive

    engine = make_engine(fakes.ConstantMetric(), judging="thread")
    with monkeypatch.context() as full:
        full.setattr(*place, refuse)
        for _ in range(2):
            engine.submit(fakes.a_record())
        assert not engine.flush(0.05)

    assert caplog.messages == [said]
    fakes.score(engine)
    assert engine.stats().finished == 3


def test_an_error_of_a_task_that_nobody_waits_for_is_counted_and_shows_no_text(fakes, make_engine, caplog):
    async def fail():
        raise ValueError("secret")

    engine = make_engine(fakes.CallingMetric(lambda _: asyncio.ensure_future(fail()) and None))
    fakes.score(engine)
    until(lambda: engine.stats().errors == {"worker": 1})

    assert caplog.messages == ["the worker failed with ValueError"]
