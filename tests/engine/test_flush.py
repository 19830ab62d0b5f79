from __future__ import annotations

import math
import threading
import time

import pytest


def test_flush_of_an_engine_without_work_is_done_at_once(fakes, make_engine):
    assert make_engine(fakes.ConstantMetric(), emitters=[fakes.ListEmitter()]).flush(0)


@pytest.mark.parametrize("timeout", [20.0, math.inf])
def test_flush_waits_for_scores(fakes, make_engine, timeout: float):
    metric = fakes.HangingMetric()
    engine = make_engine(metric)
    engine.submit(fakes.a_record())
    metric.wait_until_started()
    assert not engine.flush(0)

    metric.release()
    assert engine.flush(timeout)
    assert engine.stats().scored == 1


@pytest.mark.parametrize("kind", ["HangingMetric", "StubbornMetric", "BlockingMetric"])
@pytest.mark.parametrize("timeout", [0, 0.2, -1])
def test_flush_keeps_its_time_when_a_metric_hangs(fakes, make_engine, kind: str, timeout: float):
    metric = getattr(fakes, kind)()
    engine = make_engine(metric)
    engine.submit(fakes.a_record())
    metric.wait_until_started()
    began = time.monotonic()

    assert not engine.flush(timeout)
    assert time.monotonic() - began < max(timeout, 0) + fakes.GRACE


def test_flush_keeps_its_time_when_the_whole_worker_is_blocked(fakes, make_engine):
    started, gate = threading.Event(), threading.Event()

    def block(_: object) -> None:
        started.set()
        gate.wait()

    engine = make_engine(fakes.CallingMetric(block))
    engine.submit(fakes.a_record())
    assert started.wait(fakes.PATIENCE)
    began = time.monotonic()
    in_time = not engine.flush(0.2)
    took = time.monotonic() - began
    gate.set()

    assert in_time
    assert took < 0.2 + fakes.GRACE


def test_flush_leaves_emitters_the_last_of_its_time(fakes, make_engine):
    metric, emitter = fakes.HangingMetric(), fakes.ListEmitter()
    told: list[float] = []
    emitter.flush = lambda timeout: told.append(timeout) is None
    engine = make_engine(metric, emitters=[emitter])
    engine.submit(fakes.a_record())
    metric.wait_until_started()

    assert not engine.flush(1.0)
    assert 0 < told[0] <= 0.1


@pytest.mark.parametrize("place", ["metric", "emitter"])
def test_flush_in_the_worker_itself_does_not_wait(fakes, make_engine, place: str):
    flushed: list[bool] = []
    emitter = fakes.ListEmitter()
    metric = fakes.ConstantMetric()
    if place == "metric":
        metric = fakes.CallingMetric(lambda _: flushed.append(engine.flush(fakes.PATIENCE)))
    else:
        emitter.emit = lambda _: flushed.append(engine.flush(fakes.PATIENCE))
    engine = make_engine(metric, emitters=[emitter])
    engine.submit(fakes.a_record())

    assert engine.flush(fakes.PATIENCE)
    assert flushed == [False]


def test_flush_in_a_plain_metric_keeps_its_time(fakes, make_engine):
    flushed: list[bool] = []
    engine = make_engine(fakes.ThreadMetric(lambda _: flushed.append(engine.flush(0.01))))
    engine.submit(fakes.a_record())

    assert engine.flush(fakes.PATIENCE)
    assert flushed == [False]


def test_several_threads_may_flush(fakes, make_engine):
    metric = fakes.HangingMetric()
    engine = make_engine(metric)
    engine.submit(fakes.a_record())
    flushed: list[bool] = []
    threads = [threading.Thread(target=lambda: flushed.append(engine.flush(fakes.PATIENCE))) for _ in range(8)]
    for thread in threads:
        thread.start()
    metric.release()
    for thread in threads:
        thread.join(fakes.PATIENCE)

    assert flushed == [True] * 8


def test_after_shutdown_nothing_is_left_to_flush(fakes, make_engine):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter])
    engine.submit(fakes.a_record())
    engine.shutdown(fakes.PATIENCE)

    assert engine.flush(0)
    assert emitter.journal == ["start", "emit", "shutdown"]
