from __future__ import annotations

from ragspan.delivery._backoff import Backoff


def test_each_pause_is_twice_the_one_before_up_to_the_limit():
    backoff = Backoff(first=1.0, limit=10.0, draw=lambda: 0.0)

    assert [backoff.after(tries) for tries in range(1, 7)] == [1, 2, 4, 8, 10, 10]


def test_the_jitter_takes_up_to_a_half_away():
    assert Backoff(draw=lambda: 1.0).after(3) == 2
    assert Backoff(draw=lambda: 0.5).after(3) == 3


def test_many_tries_do_not_overflow():
    assert Backoff(draw=lambda: 0.0).after(100_000) == 30


def test_a_shorter_limit_can_be_asked_for_but_no_longer_one():
    backoff = Backoff(draw=lambda: 0.0)

    assert backoff.after(10, limit=0.5) == 0.5
    assert backoff.after(10, limit=100.0) == 30
