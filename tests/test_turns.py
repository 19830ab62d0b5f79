"""Where ragspan computes beside requests, it lets other threads go first after a short stretch."""

import time

import pytest

from ragspan.turns import enable_turns, give_turn, with_turns


@pytest.fixture
def pauses(monkeypatch):
    """The pauses that are made from now on."""
    made = []
    monkeypatch.setattr(time, "sleep", made.append)
    return made


def compute(seconds=0.002):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


def test_others_get_a_turn_after_a_stretch_of_computing_and_not_before(pauses):
    enable_turns()
    give_turn()
    pauses.clear()

    give_turn()
    assert not pauses

    compute()
    give_turn()
    assert len(pauses) == 1
    assert 0 < pauses[0] < 0.001


def test_others_get_a_turn_before_each_of_many_things(pauses):
    enable_turns()
    give_turn()
    pauses.clear()

    for _ in with_turns(range(3)):
        compute()

    assert len(pauses) == 2
