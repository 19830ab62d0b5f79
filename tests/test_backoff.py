from __future__ import annotations

from ragspan.backoff import backoff


def test_each_pause_is_twice_the_one_before_up_to_the_longest():
    pauses = [backoff(tries, first=1.0, longest=10.0, draw=lambda: 0.0) for tries in (*range(1, 7), 100_000)]

    assert pauses == [1, 2, 4, 8, 10, 10, 10]


def test_chance_takes_up_to_a_half_away():
    assert [backoff(3, draw=lambda chance=chance: chance) for chance in (0.0, 0.5, 1.0)] == [4, 3, 2]
