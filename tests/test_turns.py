"""Where ragspan computes beside requests, it lets other threads go first after a short stretch."""

import threading
import time

import pytest

from ragspan.turns import enable_turns, give_turn


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that are made from now on, in a thread that has just had a turn."""
    made = []

    def sleep(seconds):
        made.append(seconds)

    sleep.__module__ = "time"
    monkeypatch.setattr(time, "sleep", sleep)
    enable_turns()
    give_turn()
    made.clear()
    return made


def compute(seconds=0.002):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


def test_another_thread_gets_a_turn_after_a_stretch_of_computing_and_not_before(pauses):
    give_turn()
    assert not pauses

    another = threading.Thread(target=compute)
    another.start()
    another.join()
    compute()
    give_turn()
    assert len(pauses) == 1
    assert 0 < pauses[0] < 0.001


def test_where_no_other_thread_has_run_none_waits_for_a_turn(pauses):
    compute()
    give_turn()
    pauses.clear()

    compute()
    give_turn()
    assert not pauses


def test_greenlets_get_their_turn_though_the_system_sees_one_thread(pauses, monkeypatch):
    monkeypatch.setattr(time.sleep, "__module__", "gevent.hub")
    compute()
    give_turn()
    assert len(pauses) == 1
