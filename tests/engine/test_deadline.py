from __future__ import annotations

import math
import threading

import pytest

from ragspan.engine._threads import Deadline


def test_what_is_left_shrinks_to_nothing(clock):
    deadline = Deadline(2.0, clock=clock)
    left = []
    for _ in range(4):
        left.append(deadline.remaining)
        clock.advance(0.75)

    assert left == [2.0, 1.25, 0.5, 0.0]
    assert deadline.elapsed == 3.0


@pytest.mark.parametrize(("timeout", "left"), [(-1.0, 0.0), (math.inf, threading.TIMEOUT_MAX)])
def test_what_is_left_is_always_a_time_that_locks_can_wait(clock, timeout: float, left: float):
    assert Deadline(timeout, clock=clock).remaining == left


@pytest.mark.parametrize(("timeout", "reserve"), [(0.0, 0.0), (2.0, 0.2), (10.0, 1.0), (60.0, 1.0)])
def test_the_reserve_is_a_tenth_and_a_second_at_most(clock, timeout: float, reserve: float):
    deadline = Deadline(timeout, clock=clock)

    assert deadline.remaining - deadline.less_reserve().remaining == pytest.approx(reserve)


def test_an_earlier_end_keeps_the_clock(clock):
    earlier = Deadline(2.0, clock=clock).less_reserve()
    clock.now += 1.0

    assert earlier.remaining == pytest.approx(0.8)
