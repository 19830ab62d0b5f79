from __future__ import annotations

import signal
import threading
import time

import pytest

from ragspan.engine import ShutdownReport


@pytest.mark.parametrize("way", ["shutdown", "with"])
def test_shutdown_scores_what_is_left_and_then_tells_the_emitters(fakes, make_engine, way: str):
    emitter = fakes.ListEmitter()
    engine = make_engine(fakes.ThreadMetric(lambda _: None), emitters=[emitter], concurrency=1)
    for _ in range(3):
        engine.submit(fakes.a_record())
    if way == "with":
        with engine:
            pass
    report = engine.shutdown(fakes.PATIENCE)
    engine.submit(fakes.a_record())

    assert emitter.journal == ["start", "emit"] * 3 + ["shutdown"]
    assert report.abandoned == 0
    assert (engine.stats().finished, engine.stats().dropped) == (3, {"shutdown": 1})


@pytest.mark.parametrize("kind", ["HangingMetric", "BlockingMetric"])
@pytest.mark.parametrize("timeout", [0.2])
def test_what_is_not_scored_in_time_is_abandoned(fakes, make_engine, caplog, kind: str, timeout: float):
    metric, emitter = getattr(fakes, kind)(), fakes.ListEmitter()
    engine = make_engine(metric, emitters=[emitter], concurrency=1)
    for _ in range(3):
        engine.submit(fakes.a_record())
    metric.wait_until_started()
    began = time.monotonic()
    report = engine.shutdown(timeout)

    assert time.monotonic() - began < timeout + fakes.GRACE
    assert (report.finished, report.abandoned) == (0, 3)
    stats = engine.stats()
    assert (stats.submitted, stats.queued, stats.in_flight, dict(stats.dropped)) == (3, 0, 0, {"shutdown": 3})
    assert stats.errors == {}
    assert emitter.journal == ["start", "shutdown"]
    assert "records dropped at shutdown, because the time for them was up: 3" in caplog.messages
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


def test_shutdown_in_the_worker_waits_for_nobody(fakes, make_engine):
    """It abandons the record that it is called for."""
    reports: list[ShutdownReport] = []
    called = threading.Event()

    def shut_down(_: object) -> None:
        reports.append(engine.shutdown(fakes.PATIENCE))
        called.set()

    engine = make_engine(fakes.CallingMetric(shut_down))
    engine.submit(fakes.a_record())

    assert called.wait(fakes.PATIENCE)
    assert reports[0].abandoned == 1
    assert engine.stats().dropped == {"shutdown": 1}


needs_signals = pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system has no signals for threads")


@pytest.fixture
def emitter_that_signals(fakes):
    """An emitter whose `shutdown` sends the main thread a signal, until that was handled."""

    class Signalling(fakes.ListEmitter):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.handled = threading.Event()
            self._number = number

        def shutdown(self, timeout: float) -> None:
            super().shutdown(timeout)
            while not self.handled.wait(0.05):  # again: a signal does not wake a thread that is just about to wait
                signal.pthread_kill(threading.main_thread().ident, self._number)

    return Signalling


@pytest.fixture
def on_signal():
    """Sets what the main thread does when it gets SIGUSR1."""
    before = signal.getsignal(signal.SIGUSR1)
    yield lambda handle: signal.signal(signal.SIGUSR1, lambda *_: handle())
    signal.signal(signal.SIGUSR1, before)


@needs_signals
def test_a_signal_handler_may_shut_down_during_a_shutdown(fakes, make_engine, emitter_that_signals, on_signal):
    """As the second SIGTERM may. It cannot wait for the call that it interrupts."""
    nested: list[ShutdownReport] = []
    emitter = emitter_that_signals(signal.SIGUSR1)
    engine = make_engine(fakes.ConstantMetric(), emitters=[emitter])

    def shut_down_again() -> None:
        nested.append(engine.shutdown(fakes.PATIENCE))
        emitter.handled.set()

    on_signal(shut_down_again)
    report = engine.shutdown(fakes.PATIENCE)

    assert report.seconds < fakes.PATIENCE
    assert (nested[0].finished, nested[0].abandoned) == (0, 0)
