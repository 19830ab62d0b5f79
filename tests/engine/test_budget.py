"""Budgets and what they count with, by themselves; with metrics and judges: `test_budget_in_work.py`."""

from __future__ import annotations

import pytest

from ragspan import Budget
from ragspan.engine.budget import BudgetTracker, Limit
from ragspan.exceptions import BudgetExhausted, ConfigurationError, JudgeError
from ragspan.usage import Usage

DAY = 24 * 60 * 60
FALLBACKS = "one of skip, overlap"


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


def take(limit, amount=1.0):
    """All of the amount, or nothing."""
    if is_allowed := limit.allows(amount):
        limit.settle(0.0, amount)
    return is_allowed


def test_a_limit_starts_full_and_lets_through_what_time_adds_and_what_was_owed_is_paid(clock):
    limit = Limit(3.0, rate=2.0, clock=clock)

    assert [take(limit) for _ in range(4)] == [True, True, True, False]
    clock.advance(0.5)
    assert take(limit)
    limit.settle(taken=1, used=3)
    clock.advance(1.0)
    assert not take(limit), "two were owed"
    clock.advance(3600)
    assert not take(limit, 4), "all of an amount, or nothing of it"
    assert limit.level == 3.0
    assert (limit.will_allow(3), limit.will_allow(4)) == (True, False)


def test_what_rounding_takes_from_a_limit_denies_no_request(clock):
    dollars = Limit(1.0, rate=None, clock=clock)
    for part in (0.9, 0.1):
        dollars.settle(0.0, part)
    assert (dollars.allows(1e-10), dollars.allows(1e-8)) == (True, False)
    dollars.settle(5.0, 0.0)
    assert dollars.level == 1.0, "what does not fit in is lost"


def test_a_minutes_amount_comes_in_a_minute(clock):
    tracker = BudgetTracker(Budget(requests_per_minute=6, tokens_per_minute=6000), clock=clock)
    assert [denied(tracker) for _ in range(7)] == [None] * 6 + ["requests_per_minute"]
    clock.advance(9.9)
    assert denied(tracker) == "requests_per_minute"
    clock.advance(0.1)
    assert denied(tracker) is None
    assert denied(tracker, Usage(requests=1, input_tokens=6001)) == "requests_per_minute"
    clock.advance(60)
    assert denied(tracker, Usage(requests=1, input_tokens=3000, output_tokens=3001)) == "tokens_per_minute"
    assert denied(tracker, Usage(requests=1, input_tokens=3000, output_tokens=3000)) is None


def test_the_first_day_begins_with_the_first_spending_and_holds_no_more_than_its_amount(clock):
    dollars = Limit(1.0, rate=None, clock=clock)
    clock.advance(DAY - 1)
    assert [take(dollars, amount) for amount in (0.75, 0.5, 0.25)] == [True, False, True]
    clock.advance(DAY - 1)
    assert dollars.level == 0
    assert not dollars.will_allow(0.5), "another day brings more, and no waiting"

    clock.advance(1)
    assert dollars.level == 1.0
    assert take(dollars)


ONE = Usage(requests=1, input_tokens=80, output_tokens=20, usd=0.25)


def denied(tracker, expected=ONE):
    """The limit that denies the request; None if it is allowed."""
    denials = []
    try:
        tracker.reserve(expected, denials=denials)
    except BudgetExhausted as denial:
        return denial.limit if denials else "not noted"
    return None


@pytest.mark.parametrize("limits", [{"tokens_per_minute": 50}, {"usd_per_day": 0.1}])
def test_a_request_that_one_limit_denies_names_it_and_takes_nothing_from_the_others(clock, limits):
    tracker = BudgetTracker(Budget(requests_per_minute=5, **limits), clock=clock)
    assert [denied(tracker) for _ in range(50)] == [*limits] * 50

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

    assert denied(tracker) == spent


def test_dollars_need_a_price_and_other_limits_do_not(clock):
    unpriced = Usage(requests=1, input_tokens=10)
    said = "^usd_per_day limits what judges spend, but the price of this one is not known: give it price=$"
    with pytest.raises(JudgeError, match=said) as refused:
        BudgetTracker(Budget(usd_per_day=5), clock=clock).reserve(unpriced)

    assert refused.value.error_type == "unknown_price"
    assert denied(BudgetTracker(Budget(requests_per_minute=1), clock=clock), unpriced) is None
