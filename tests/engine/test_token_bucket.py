from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.engine.budget import TokenBucket

AMOUNTS = st.floats(min_value=0, max_value=50, allow_nan=False)
RATES = st.floats(min_value=0.01, max_value=100)


def test_it_starts_full_and_lets_through_what_time_adds(clock):
    bucket = TokenBucket(rate_per_second=2.0, capacity=3.0, clock=clock)

    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    clock.advance(0.4)
    assert not bucket.take()
    clock.advance(0.1)
    assert bucket.take()
    assert not bucket.take()


def test_it_never_holds_more_than_its_capacity(clock):
    bucket = TokenBucket(rate_per_second=1.0, capacity=2.0, clock=clock)
    clock.advance(3600)

    assert bucket.level == 2.0


def test_an_amount_is_taken_as_a_whole_or_not_at_all(clock):
    bucket = TokenBucket(rate_per_second=1.0, capacity=5.0, clock=clock)

    assert not bucket.take(6)
    assert bucket.take(5)


def test_what_is_given_back_can_be_taken_again_but_does_not_overflow(clock):
    bucket = TokenBucket(rate_per_second=1.0, capacity=5.0, clock=clock)
    bucket.take(3)
    bucket.give_back(2)
    assert bucket.level == 4.0

    bucket.give_back(100)
    assert bucket.level == 5.0


def test_a_debt_is_paid_by_time_before_anything_is_let_through(clock):
    bucket = TokenBucket(rate_per_second=1.0, capacity=5.0, clock=clock)
    bucket.take(5)
    bucket.settle(taken=5, used=15)

    assert bucket.level == -10.0
    clock.advance(10.5)
    assert not bucket.take()
    clock.advance(0.5)
    assert bucket.take()


def test_settling_for_less_gives_the_rest_back(clock):
    bucket = TokenBucket(rate_per_second=1.0, capacity=5.0, clock=clock)
    bucket.take(5)
    bucket.settle(taken=5, used=1)

    assert bucket.level == 4.0


def test_a_clock_that_goes_backwards_credits_nothing_until_it_is_back(clock):
    bucket = TokenBucket(rate_per_second=1.0, capacity=5.0, clock=clock)
    bucket.take(5)
    clock.advance(-100)
    assert bucket.level == 0.0

    clock.advance(100)
    assert bucket.level == 0.0
    clock.advance(1)
    assert bucket.level == 1.0


@given(
    rate=RATES,
    capacity=RATES,
    steps=st.lists(st.tuples(st.floats(min_value=-10, max_value=30), AMOUNTS), max_size=40),
)
def test_over_any_time_no_more_is_let_through_than_capacity_and_rate_allow(rate, capacity, steps):
    """Any time, by the furthest that the clock has been: one that jumps back and forth must not earn anything by it."""
    now, furthest, taken = [0.0], 0.0, [(0.0, 0.0)]
    bucket = TokenBucket(rate, capacity, clock=lambda: now[0])
    for passed, amount in steps:
        now[0] += passed
        furthest = max(furthest, now[0])
        if bucket.take(amount):
            taken.append((furthest, amount))

    for first, last in itertools.combinations(range(len(taken)), 2):
        amount = sum(amount for _, amount in taken[first : last + 1])
        assert amount <= capacity + rate * (taken[last][0] - taken[first][0]) + 1e-6


@given(
    rate=RATES,
    capacity=RATES,
    steps=st.lists(st.tuples(st.floats(min_value=0, max_value=30), AMOUNTS, AMOUNTS), max_size=40),
)
def test_what_is_used_beyond_the_expectation_is_paid_back_in_time(rate, capacity, steps):
    """Over the whole time, what was used never exceeds what was allowed by more than the last debt."""
    now, used_in_all = [0.0], 0.0
    bucket = TokenBucket(rate, capacity, clock=lambda: now[0])
    for passed, expected, used in steps:
        now[0] += passed
        if bucket.take(expected):
            bucket.settle(taken=expected, used=used)
            used_in_all += used
        debt = max(0.0, -bucket.level)
        assert used_in_all <= capacity + rate * now[0] + debt + 1e-6


@given(rate=RATES, capacity=RATES, pause=st.floats(min_value=0, max_value=1000))
def test_who_waits_long_enough_always_gets_the_capacity(rate, capacity, pause):
    now = [0.0]
    bucket = TokenBucket(rate, capacity, clock=lambda: now[0])
    assert bucket.take(capacity)
    now[0] += pause

    assert bucket.level == pytest.approx(min(capacity, rate * pause))
