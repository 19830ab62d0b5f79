from __future__ import annotations

from ragspan.engine.budget import DailySum

DAY = 24 * 60 * 60


def test_no_more_than_the_sum_is_taken_in_a_window(clock):
    dollars = DailySum(1.0, clock)

    assert dollars.take(0.75) is not None
    assert dollars.take(0.5) is None
    assert dollars.take(0.25) is not None
    assert dollars.is_spent


def test_the_first_window_begins_with_the_first_spending(clock):
    dollars = DailySum(1.0, clock)
    clock.advance(DAY - 1)
    dollars.take(1.0)
    clock.advance(DAY - 1)
    assert dollars.take(0.5) is None

    clock.advance(1)
    assert not dollars.is_spent
    assert dollars.take(1.0) is not None


def test_a_day_lets_the_sum_through_once_however_it_is_spread(clock):
    """A bucket that starts full would let nearly twice as much through."""
    dollars = DailySum(1.0, clock)
    taken = 0
    for _ in range(24):
        taken += sum(dollars.take(0.125) is not None for _ in range(8))
        clock.advance(3599)

    assert taken == 8


def test_what_is_not_used_can_be_taken_again(clock):
    dollars = DailySum(1.0, clock)
    window = dollars.take(1.0)
    dollars.settle(window, taken=1.0, used=0.25)

    assert dollars.take(0.75) is not None


def test_what_is_used_beyond_counts(clock):
    dollars = DailySum(1.0, clock)
    window = dollars.take(0.5)
    dollars.settle(window, taken=0.5, used=1.5)

    assert dollars.is_spent


def test_what_an_earlier_window_did_not_use_enriches_no_later_one(clock):
    dollars = DailySum(1.0, clock)
    window = dollars.take(1.0)
    clock.advance(DAY)
    dollars.take(1.0)
    dollars.settle(window, taken=1.0, used=0.0)

    assert dollars.is_spent


def test_what_an_earlier_window_used_beyond_is_counted_where_it_is_known(clock):
    dollars = DailySum(1.0, clock)
    window = dollars.take(0.5)
    clock.advance(DAY)
    dollars.settle(window, taken=0.5, used=1.25)

    assert dollars.take(0.5) is None
    assert dollars.take(0.25) is not None


def test_an_excess_that_is_known_only_in_a_new_window_does_not_last_for_ever(clock):
    dollars = DailySum(1.0, clock)
    window = dollars.take(0.5)
    clock.advance(DAY)
    dollars.settle(window, taken=0.5, used=2.0)
    assert dollars.is_spent

    clock.advance(DAY)
    assert not dollars.is_spent


def test_a_clock_that_goes_backwards_begins_no_window(clock):
    dollars = DailySum(1.0, clock)
    dollars.take(1.0)
    clock.advance(-2 * DAY)

    assert dollars.is_spent
