"""Budgets and what they count with, by themselves; with metrics and judges: `test_budget_in_work.py`."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan import Budget
from ragspan.engine.budget import BudgetTracker, DailySum, TokenBucket
from ragspan.exceptions import BudgetExhausted, ConfigurationError, JudgeError
from ragspan.usage import Usage

DAY = 24 * 60 * 60
FALLBACKS = "one of 'skip', 'overlap', 'hhem', a judge or a verifier"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"usd_per_day": 0}, "usd_per_day is 0, but should be a number above 0"),
        ({"requests_per_minute": 0.5}, "requests_per_minute is 0.5, but should be a whole number, at least 1"),
        ({}, "a budget needs a limit: usd_per_day, tokens_per_minute or requests_per_minute"),
        ({"usd_per_day": 1, "fallback": "guess"}, f"fallback is 'guess', but should be {FALLBACKS}"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(arguments, message):
    with pytest.raises(ConfigurationError) as refused:
        Budget(**arguments)

    assert str(refused.value) == message


# The bucket: a rate on average, and a capacity at once.

AMOUNTS = st.floats(min_value=0, max_value=50, allow_nan=False)
RATES = st.floats(min_value=0.01, max_value=100)


def test_a_bucket_starts_full_lets_through_what_time_adds_and_holds_no_more_than_its_capacity(clock):
    bucket = TokenBucket(rate_per_second=2.0, capacity=3.0, clock=clock)

    assert [bucket.take() for _ in range(4)] == [True, True, True, False]
    clock.advance(0.4)
    assert not bucket.take()
    clock.advance(0.1)
    assert bucket.take()
    clock.advance(3600)
    assert bucket.level == 3.0
    assert not bucket.take(4), "all of an amount, or nothing of it"
    assert bucket.level == 3.0


@pytest.mark.parametrize(("used", "level"), [(1, 4.0), (15, -10.0)])
def test_what_was_taken_is_corrected_to_what_was_used_down_into_debt(clock, used, level):
    bucket = TokenBucket(rate_per_second=1.0, capacity=5.0, clock=clock)
    bucket.take(5)
    bucket.settle(taken=5, used=used)

    assert bucket.level == level
    clock.advance(10.5 if level < 0 else 0)
    assert bucket.take() == (level > 0)


@given(
    rate=RATES,
    capacity=RATES,
    steps=st.lists(st.tuples(st.floats(min_value=0, max_value=30), AMOUNTS), max_size=40),
)
def test_over_any_time_no_more_is_let_through_than_capacity_and_rate_allow(rate, capacity, steps):
    now, taken = [0.0], [(0.0, 0.0)]
    bucket = TokenBucket(rate, capacity, clock=lambda: now[0])
    for passed, amount in steps:
        now[0] += passed
        if bucket.take(amount):
            taken.append((now[0], amount))

    for first, last in itertools.combinations(range(len(taken)), 2):
        amount = sum(amount for _, amount in taken[first : last + 1])
        assert amount <= capacity + rate * (taken[last][0] - taken[first][0]) + 1e-6


# The daily sum: an amount in each window of 24 hours.


@pytest.fixture
def dollars(clock):
    return DailySum(1.0, clock)


def test_the_first_window_begins_with_the_first_spending_and_holds_no_more_than_the_sum(clock, dollars):
    clock.advance(DAY - 1)
    assert [dollars.take(amount) for amount in (0.75, 0.5, 0.25)] == [True, False, True]
    clock.advance(DAY - 1)
    assert dollars.level == 0

    clock.advance(1)
    assert dollars.level == 1.0
    assert dollars.take(1.0)


@pytest.mark.parametrize(("taken", "used", "left"), [(1.0, 0.25, 0.75), (0.5, 1.5, 0.0)])
def test_what_was_taken_in_this_window_is_corrected_to_what_was_used(dollars, taken, used, left):
    dollars.take(taken)
    dollars.settle(taken=taken, used=used)

    assert max(0.0, dollars.level) == left
    assert not dollars.take(left + 0.01)
    assert left == 0 or dollars.take(left)


# The tracker: all limits together.

ONE = Usage(requests=1, input_tokens=80, output_tokens=20, usd=0.25)


def denied(tracker, expected=ONE):
    """The limit that denies the request; None if it is allowed."""
    try:
        tracker.reserve(expected)
    except BudgetExhausted as denial:
        return denial.limit
    return None


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(requests_per_minute=2), "requests_per_minute"),
        (Budget(tokens_per_minute=250), "tokens_per_minute"),
        (Budget(usd_per_day=0.6), "usd_per_day"),
    ],
)
def test_the_limit_that_denies_a_request_is_named(clock, budget, limit):
    tracker = BudgetTracker(budget, clock=clock)

    assert [denied(tracker) for _ in range(3)] == [None, None, limit]


@pytest.mark.parametrize(
    "limits",
    [{"requests_per_minute": 5, "tokens_per_minute": 50}, {"requests_per_minute": 5, "usd_per_day": 0.1}],
)
def test_a_request_that_one_limit_denies_takes_nothing_from_the_others(clock, limits):
    tracker = BudgetTracker(Budget(**limits), clock=clock)
    for _ in range(50):
        assert denied(tracker) is not None

    small = Usage(requests=1, input_tokens=10, usd=0.02)
    assert [denied(tracker, small) for _ in range(5)] == [None] * 5


@pytest.mark.parametrize(
    ("limits", "used", "spent"),
    [
        ({"usd_per_day": 0.25}, Usage(requests=1, usd=0.0), None),
        ({"requests_per_minute": 1}, Usage(requests=1, usd=0.0), "requests_per_minute"),
        ({"tokens_per_minute": 1000}, Usage(requests=10, input_tokens=5000, usd=4.0), "tokens_per_minute"),
    ],
    ids=["no dollars", "a failure is a request", "tokens"],
)
def test_what_a_request_took_counts_in_place_of_what_was_expected(clock, limits, used, spent):
    tracker = BudgetTracker(Budget(**limits), clock=clock)
    tracker.reserve(ONE)(used)

    assert tracker.spent_limit() == denied(tracker) == spent


def test_a_reservation_is_settled_once(clock):
    tracker = BudgetTracker(Budget(tokens_per_minute=100), clock=clock)
    settle = tracker.reserve(ONE)
    for _ in range(2):
        settle(Usage(requests=1, input_tokens=60))

    assert denied(tracker, Usage(requests=1, input_tokens=41)) == "tokens_per_minute"
    assert denied(tracker, Usage(requests=1, input_tokens=40)) is None


def test_dollars_need_a_price_and_other_limits_do_not(clock):
    unpriced = Usage(requests=1, input_tokens=10)
    with pytest.raises(JudgeError, match="give it price=") as refused:
        BudgetTracker(Budget(usd_per_day=5), clock=clock).reserve(unpriced)

    assert refused.value.error_type == "unknown_price"
    assert denied(BudgetTracker(Budget(requests_per_minute=1), clock=clock), unpriced) is None


def test_what_yesterdays_request_took_less_gives_the_new_day_no_more_than_its_limit(clock):
    tracker = BudgetTracker(Budget(usd_per_day=10), clock=clock)
    settle = tracker.reserve(Usage(requests=1, usd=8.0))
    clock.advance(DAY)
    settle(Usage(requests=1, usd=1.0))

    assert denied(tracker, Usage(requests=1, usd=10.5)) == "usd_per_day"
    assert denied(tracker, Usage(requests=1, usd=10.0)) is None
