from __future__ import annotations

import threading
import time

import pytest
from waiting import until

from ragspan.engine import EngineStats, ShutdownReport


@pytest.mark.parametrize("way", ["shutdown", "with"])
def test_shutdown_scores_what_is_left_and_then_tells_the_emitters(fakes, make_engine, way: str):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ThreadMetric(lambda _: None), emitters=[emitter], concurrency=1)
    engine.submit(fakes.a_record())
    assert engine.flush(fakes.PATIENCE)
    for _ in range(3):
        engine.submit(fakes.a_record())
    if way == "with":
        with engine:
            pass
    report = engine.shutdown(fakes.PATIENCE)
    engine.submit(fakes.a_record())

    assert [done for done in emitter.journal if done != "flush"] == ["start", "emit"] * 4 + ["shutdown"]
    assert report == ShutdownReport(finished=3, abandoned=0, seconds=report.seconds)
    assert engine.stats() == EngineStats(submitted=5, finished=4, dropped={"shutdown": 1})
    until(lambda: not {"ragspan-ListEmitter", "ragspan-calling"} & {one.name for one in threading.enumerate()})


@pytest.mark.parametrize("kind", ["HangingMetric", "BlockingMetric"])
def test_what_is_not_scored_in_time_is_abandoned(fakes, make_engine, caplog, kind: str):
    metric, emitter = getattr(fakes, kind)(), fakes.ListEmitter()
    engine = make_engine(metric, emitters=[emitter], concurrency=1, queue_size=2)
    engine.submit(fakes.a_record())
    metric.wait_until_started()
    for _ in range(3):
        engine.submit(fakes.a_record())
    began = time.monotonic()
    report = engine.shutdown(0.2)

    assert time.monotonic() - began < 0.2 + fakes.GRACE
    assert (report.finished, report.abandoned) == (0, 3)
    assert engine.stats() == EngineStats(submitted=4, dropped={"queue_full": 1, "shutdown": 3})
    assert emitter.journal == ["start", "shutdown"]
    engine.submit(fakes.a_record())
    engine.report_losses()
    assert caplog.messages == [
        "records dropped at shutdown, because the time for them was up: 3",
        "answers that are not scored, because the process ended: 1 (exit_timeout (RAGSPAN_EXIT_TIMEOUT) is 10 s; a larger one waits longer)",
        "captures dropped in all: queue_full 1",
    ]
    assert kind == "BlockingMetric" or metric.was_cancelled.wait(fakes.PATIENCE)


def test_two_threads_that_shut_down_get_one_report_and_so_does_a_later_call(fakes, make_engine):
    metric, emitter = fakes.HangingMetric(), fakes.ListEmitter()
    engine = make_engine(metric, emitters=[emitter])
    engine.submit(fakes.a_record())
    metric.wait_until_started()
    reports: list[ShutdownReport] = []
    threads = [threading.Thread(target=lambda: reports.append(engine.shutdown(fakes.PATIENCE))) for _ in range(2)]
    for thread in threads:
        thread.start()
    metric.release()
    for thread in threads:
        thread.join(fakes.PATIENCE)

    assert reports[0] is reports[1] is engine.shutdown(0)
    assert (reports[0].finished, emitter.journal.count("shutdown")) == (1, 1)
