from __future__ import annotations

import threading

import pytest

from ragspan.engine.budget import Budget, BudgetTracker, RunAllowance
from ragspan.exceptions import BudgetExhausted, JudgeError
from ragspan.outcomes import Usage

ONE = Usage(requests=1, input_tokens=80, output_tokens=20, usd=0.25)


def denied(spending, expected=ONE):
    """The limit that denies the request; None if it is allowed."""
    try:
        spending.reserve(expected)
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
    spending = BudgetTracker(budget, clock=clock)

    assert [denied(spending) for _ in range(3)] == [None, None, limit]


@pytest.mark.parametrize(
    "limits",
    [
        {"requests_per_minute": 5, "tokens_per_minute": 50},
        {"requests_per_minute": 5, "usd_per_day": 0.1},
        {"tokens_per_minute": 500, "usd_per_day": 0.1},
    ],
)
def test_a_request_that_one_limit_denies_takes_nothing_from_the_others(clock, limits):
    spending = BudgetTracker(Budget(**limits), clock=clock)
    for _ in range(50):
        assert denied(spending) is not None

    small = Usage(requests=1, input_tokens=10, usd=0.02)
    assert [denied(spending, small) for _ in range(5)] == [None] * 5


@pytest.mark.parametrize(
    ("budget", "used"),
    [
        (Budget(tokens_per_minute=100), Usage(requests=1, input_tokens=0, usd=0.0)),
        (Budget(usd_per_day=0.25), Usage(requests=1, input_tokens=0, usd=0.0)),
    ],
)
def test_a_request_that_took_nothing_leaves_room_for_another(clock, budget, used):
    spending = BudgetTracker(budget, clock=clock)
    held = spending.reserve(ONE)
    assert denied(spending) is not None

    held.settle(used)
    assert denied(spending) is None


def test_a_request_that_failed_still_counts_as_one(clock):
    spending = BudgetTracker(Budget(requests_per_minute=1), clock=clock)
    spending.reserve(ONE).settle(Usage(requests=1, usd=0.0))

    assert denied(spending) == "requests_per_minute"


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(tokens_per_minute=1000), "tokens_per_minute"),
        (Budget(usd_per_day=3), "usd_per_day"),
        (Budget(requests_per_minute=10), "requests_per_minute"),
    ],
)
def test_what_a_request_took_beyond_the_expectation_counts(clock, budget, limit):
    spending = BudgetTracker(budget, clock=clock)
    spending.reserve(ONE).settle(Usage(requests=10, input_tokens=5000, usd=4.0))

    assert spending.spent_limit() == limit
    assert denied(spending) == limit


def test_a_reservation_is_settled_once(clock):
    spending = BudgetTracker(Budget(tokens_per_minute=100), clock=clock)
    held = spending.reserve(ONE)
    for _ in range(2):
        held.settle(Usage(requests=1, input_tokens=60))

    assert denied(spending, Usage(requests=1, input_tokens=41)) == "tokens_per_minute"
    assert denied(spending, Usage(requests=1, input_tokens=40)) is None


def test_dollars_that_nobody_told_stay_as_they_were_expected(clock):
    spending = BudgetTracker(Budget(usd_per_day=0.25), clock=clock)
    spending.reserve(ONE).settle(Usage(requests=1))

    assert spending.spent_limit() == "usd_per_day"


def test_time_makes_room_again(clock):
    spending = BudgetTracker(Budget(requests_per_minute=6, usd_per_day=10), clock=clock)
    assert [denied(spending) for _ in range(7)] == [None] * 6 + ["requests_per_minute"]
    assert spending.spent_limit() == "requests_per_minute"

    clock.advance(10)
    assert spending.spent_limit() is None
    assert [denied(spending) for _ in range(2)] == [None, "requests_per_minute"]


def test_dollars_need_a_price(clock):
    spending = BudgetTracker(Budget(usd_per_day=5), clock=clock)

    with pytest.raises(JudgeError, match="give it price=") as refused:
        spending.reserve(Usage(requests=1, input_tokens=10))

    assert refused.value.error_type == "unknown_price"


def test_a_budget_without_dollars_needs_no_price(clock):
    assert denied(BudgetTracker(Budget(requests_per_minute=1), clock=clock), Usage(requests=1)) is None


def test_a_run_remembers_that_it_was_denied_something(clock):
    spending = BudgetTracker(Budget(requests_per_minute=1), clock=clock)
    first, second = RunAllowance(spending), RunAllowance(spending)
    first.reserve(ONE)
    with pytest.raises(BudgetExhausted):
        second.reserve(ONE)

    assert (first.denied_by, second.denied_by) == (None, "requests_per_minute")


def test_many_threads_take_no_more_than_there_is(clock):
    spending = BudgetTracker(Budget(requests_per_minute=500), clock=clock)
    allowed = []

    def ask():
        for _ in range(100):
            if denied(spending) is None:
                allowed.append(1)

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(allowed) == 500
