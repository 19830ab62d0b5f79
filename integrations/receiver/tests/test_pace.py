"""How long an answer takes is told with care."""

from __future__ import annotations

import pytest

from ragspan_receiver.pace import _FIRST, _FRESH, _SOME, Pace


@pytest.fixture
def pace(clock):
    return Pace(clock)


@pytest.fixture
def works(pace, clock):
    """Goes on for so many measurements at so many seconds an answer; there is more to do afterwards."""
    done = 0

    def work(measurements, seconds):
        nonlocal done
        for _ in range(measurements + 1):
            pace.note(done, is_busy=True)
            done += _SOME
            clock.now += _SOME * seconds

    return work


def test_what_is_fast_counts_little_by_little(pace, works):
    works(1, 0.001)
    assert 0.001 < pace.seconds < _FIRST

    works(30, 0.001)
    assert pace.seconds == pytest.approx(0.001, rel=0.01)


def test_what_is_slow_counts_at_once(pace, works):
    works(30, 0.001)
    works(1, 0.02)

    assert pace.seconds == pytest.approx(0.02)


@pytest.mark.parametrize("seconds", [0.0001, 0.05])
def test_what_was_measured_some_time_ago_does_not_count(pace, works, clock, seconds):
    works(30, seconds)
    assert pace.seconds == pytest.approx(seconds, rel=0.1)
    clock.now += _FRESH + 1

    assert pace.seconds == _FIRST


def test_time_without_work_does_not_count(pace, clock):
    for second in range(1000):
        pace.note(second, is_busy=True)
        clock.now += 0.001
        pace.note(second + 1, is_busy=False)
        clock.now += 1

    assert pace.seconds == _FIRST


def test_a_few_answers_say_nothing(pace, clock):
    pace.note(0, is_busy=True)
    clock.now += 1
    pace.note(_SOME - 1, is_busy=True)
    assert pace.seconds == _FIRST

    pace.note(_SOME, is_busy=True)
    assert pace.seconds == 1 / _SOME
