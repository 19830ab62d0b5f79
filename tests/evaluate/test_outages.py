"""How long a metric waits for a judge that is away."""

from __future__ import annotations

import pytest

from ragspan.evaluate.outages import BEFORE_FIRST, DEFAULT, Attempts, OutageRetry
from ragspan.outcomes import MetricFailure, Score

OUT = MetricFailure(error_type="InternalServerError", message="overloaded", outage=True, status=503)
TOO_MANY = MetricFailure(error_type="RateLimitError", message="slow down", outage=True, status=429)
SCORE = Score(value=1.0)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Trials:
    """Tries of one metric on a record."""

    def __init__(self, patience):
        self.patience, self.tries = patience, Attempts()

    def ends_with(self, outcome, *, is_paid=True):
        return self.patience.pause("m", self.tries, outcome, is_paid=is_paid)

    def begin(self):
        self.patience.begin("m")
        return self


def pauses(clock, patience, outcome):
    """The pauses of one record, until it is given up."""
    trials, found = Trials(patience), []
    while (pause := trials.begin().ends_with(outcome)) is not None:
        found.append(pause)
        clock.now += pause
    return found


def test_a_judge_that_is_away_is_asked_after_pauses_that_grow_until_patience_ends(clock):
    found = pauses(clock, OutageRetry(100, clock=clock), OUT)

    assert found[:6] == [1, 2, 4, 8, 10, 10]
    assert 100 < sum(found) <= 110


def test_by_default_a_judge_that_has_never_answered_is_waited_for_less_long(clock):
    patience = OutageRetry(clock=clock)
    assert BEFORE_FIRST < sum(pauses(clock, patience, OUT)) < BEFORE_FIRST + 20

    Trials(patience).begin().ends_with(SCORE)
    assert DEFAULT < sum(pauses(clock, patience, OUT)) < DEFAULT + 20


def test_once_patience_has_ended_other_records_are_not_waited_for(clock):
    patience = OutageRetry(100, clock=clock)
    pauses(clock, patience, OUT)

    assert Trials(patience).begin().ends_with(OUT) is None
    Trials(patience).begin().ends_with(SCORE)
    assert Trials(patience).begin().ends_with(OUT) == 1


def test_too_many_requests_are_no_fault_of_the_record(clock):
    patience = OutageRetry(100, clock=clock)
    trials, waited = Trials(patience), 0
    for _ in range(10):
        trials.begin()
        Trials(patience).begin().ends_with(SCORE)
        waited += trials.ends_with(TOO_MANY)
        clock.now = waited

    clock.now = 101
    Trials(patience).begin().ends_with(SCORE)
    assert trials.begin().ends_with(TOO_MANY) is None


def test_it_is_told_who_is_away_and_for_how_long(clock):
    patience = OutageRetry(100, clock=clock)
    assert patience.outage is None
    trials = Trials(patience).begin()
    clock.now = 5
    trials.ends_with(OUT)

    outage = patience.outage
    assert (outage.metric, outage.seconds, outage.patience, outage.failure) == ("m", 5, 100, OUT)
    trials.begin().ends_with(SCORE)
    assert patience.outage is None
