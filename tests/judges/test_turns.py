"""Turns for other threads, while a judge computes in one of the application's."""

import time

from ragspan.judges import turns


def test_a_judge_pauses_every_half_millisecond_where_it_computes_in_a_thread_and_nowhere_else(monkeypatch):
    pauses = []
    monkeypatch.setattr(turns.time, "sleep", pauses.append)

    def compute():
        until = time.perf_counter() + 0.005
        while time.perf_counter() < until:
            turns.give_turn()

    compute()
    assert pauses == []

    with turns.giving_turns():
        compute()
    assert 1 <= len(pauses) <= 10
