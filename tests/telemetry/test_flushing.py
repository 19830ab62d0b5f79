from __future__ import annotations

import threading
import time

import pytest

from ragspan.telemetry.flushing import Flushing


class Flushes:
    """A provider that flushes at once, and counts."""

    def __init__(self, result=True):
        self.result = result
        self.times = 0

    def force_flush(self, timeout_millis):
        self.times += 1
        return self.result


class HangsUntilReleased:
    """A provider whose exporter hangs, whatever timeout it is given."""

    def __init__(self):
        self.entered = threading.Semaphore(0)
        self.release = threading.Event()
        self.threads = []

    def force_flush(self, timeout_millis):
        self.threads.append(threading.current_thread())
        self.entered.release()
        self.release.wait()
        return True


class Fails:
    def force_flush(self, timeout_millis):
        raise ConnectionError("SECRET")


@pytest.fixture
def hanging():
    provider = HangsUntilReleased()
    yield provider
    provider.release.set()
    for thread in provider.threads:
        thread.join()


def test_all_providers_are_flushed():
    providers = [Flushes(), Flushes(), Flushes()]

    assert Flushing().flush(providers, timeout=10)
    assert [provider.times for provider in providers] == [1, 1, 1]


def test_nothing_to_flush_is_done():
    assert Flushing().flush([], timeout=0)


def test_a_provider_that_returns_nothing_has_done_its_work():
    assert Flushing().flush([Flushes(result=None)], timeout=10)


def test_a_provider_that_could_not_send_is_told():
    assert not Flushing().flush([Flushes(result=False), Flushes()], timeout=10)


def test_an_exception_is_a_flush_that_failed_and_logs_no_text(caplog):
    assert not Flushing().flush([Fails()], timeout=10)

    assert [entry.getMessage() for entry in caplog.records] == ["flushing Fails failed: ConnectionError"]


def test_a_failure_does_not_keep_the_others_from_being_awaited(hanging):
    flushed = []
    flushing = Flushing()
    asker = threading.Thread(target=lambda: flushed.append(flushing.flush([Fails(), hanging], timeout=60)))
    asker.start()
    hanging.entered.acquire()
    assert flushed == []  # still waiting for the second, although the first has failed

    hanging.release.set()
    asker.join()
    assert flushed == [False]


def test_a_hanging_exporter_does_not_hold_the_caller(hanging):
    started = time.monotonic()

    assert not Flushing().flush([hanging], timeout=0.05)
    assert time.monotonic() - started < 5


def test_a_hanging_exporter_does_not_keep_others_from_flushing(hanging):
    other = Flushes()

    assert not Flushing().flush([hanging, other], timeout=0.5)
    assert other.times == 1


def test_a_hanging_exporter_costs_one_thread_however_often_it_is_asked(hanging):
    flushing = Flushing()
    for _ in range(5):
        assert not flushing.flush([hanging], timeout=0)
    hanging.entered.acquire()

    assert len(hanging.threads) == 1


def test_what_came_after_a_flush_began_is_covered_by_the_next_one(hanging):
    flushing = Flushing()
    flushing.flush([hanging], timeout=0)
    hanging.entered.acquire()  # the first flush has begun: it may have missed what is asked for now

    assert not flushing.flush([hanging], timeout=0)
    hanging.release.set()
    assert hanging.entered.acquire(timeout=10)  # so there is a second one


def test_flushing_works_again_once_the_exporter_is_back(hanging):
    flushing = Flushing()
    flushing.flush([hanging], timeout=0)
    hanging.release.set()

    assert flushing.flush([hanging], timeout=10)


def test_an_endless_timeout_is_allowed():
    assert Flushing().flush([Flushes()], timeout=float("inf"))


def test_at_the_end_of_the_interpreter_the_answer_is_an_honest_no(monkeypatch):
    provider = Flushes()

    def refuse(self):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    with monkeypatch.context() as closing:
        closing.setattr(threading.Thread, "start", refuse)
        flushing = Flushing()
        assert not flushing.flush([provider], timeout=10)
    assert provider.times == 0
    assert flushing.flush([provider], timeout=10)


def test_flushes_from_many_threads_all_succeed():
    provider, flushing = Flushes(), Flushing()
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(flushing.flush([provider], timeout=30))) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [True] * 16
    assert 1 <= provider.times <= 16
