"""How long a metric waits for a judge that is away."""

from __future__ import annotations

import pytest

from ragspan.evaluate.outages import BEFORE_FIRST, DEFAULT, Attempts, OutageRetry
from ragspan.outcomes import MetricFailure, NotApplicable, Score

OUT = MetricFailure(error_type="InternalServerError", message="overloaded", outage=True, status=503)
TOO_MANY = MetricFailure(error_type="RateLimitError", message="slow down", outage=True, status=429)
WRONG_KEY = MetricFailure(error_type="AuthenticationError", message="no such key", outage=True, status=401)
TIMEOUT = MetricFailure(error_type="timeout", message="no outcome within 60 s")
INVALID = MetricFailure(error_type="InvalidVerdict", message="no verdict")
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


@pytest.mark.parametrize("outcome", [SCORE, INVALID, NotApplicable(reason="no_contexts"), WRONG_KEY])
def test_what_time_does_not_change_is_the_outcome_at_once(clock, outcome):
    assert Trials(OutageRetry(clock=clock)).begin().ends_with(outcome) is None


def test_a_judge_that_is_away_is_asked_after_pauses_that_grow_until_patience_ends(clock):
    found = pauses(clock, OutageRetry(100, clock=clock), OUT)

    assert found[:6] == [1, 2, 4, 8, 10, 10]
    assert 100 < sum(found) <= 110


def test_by_default_a_judge_that_has_never_answered_is_waited_for_less_long(clock):
    patience = OutageRetry(clock=clock)
    assert BEFORE_FIRST < sum(pauses(clock, patience, OUT)) < BEFORE_FIRST + 20

    Trials(patience).begin().ends_with(SCORE)
    assert DEFAULT < sum(pauses(clock, patience, OUT)) < DEFAULT + 20


def test_patience_of_zero_waits_for_nothing(clock):
    patience = OutageRetry(0, clock=clock)
    Trials(patience).begin().ends_with(SCORE)
    clock.now += 1

    assert Trials(patience).begin().ends_with(OUT) is None


def test_once_patience_has_ended_other_records_are_not_waited_for(clock):
    patience = OutageRetry(100, clock=clock)
    pauses(clock, patience, OUT)

    assert Trials(patience).begin().ends_with(OUT) is None
    Trials(patience).begin().ends_with(SCORE)
    assert Trials(patience).begin().ends_with(OUT) == 1


@pytest.mark.parametrize(("failure", "tries"), [(OUT, 3), (TIMEOUT, 1)])
def test_a_record_that_fails_while_others_are_answered_is_given_up(clock, failure, tries):
    patience = OutageRetry(clock=clock)
    trials, found = Trials(patience), []
    for _ in range(tries + 1):
        found.append(trials.begin().ends_with(failure))
        Trials(patience).begin().ends_with(SCORE)

    assert found[-1] is None
    assert all(found[:-1])


def test_a_record_that_failed_so_is_not_waited_for_long_when_there_are_no_others_left(clock):
    patience = OutageRetry(clock=clock)
    trials = Trials(patience).begin()
    trials.ends_with(OUT)
    Trials(patience).begin().ends_with(SCORE)
    waited = 0
    while (pause := trials.begin().ends_with(OUT)) is not None:
        clock.now += pause
        waited += pause

    assert 50 < waited < 80


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


def test_a_metric_that_computes_is_not_waited_for(clock):
    assert Trials(OutageRetry(clock=clock)).begin().ends_with(TIMEOUT, is_paid=False) is None
    assert Trials(OutageRetry(clock=clock)).begin().ends_with(TIMEOUT) == 1


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


def test_of_several_judges_that_are_away_the_one_that_has_been_for_the_longest_is_told(clock):
    patience = OutageRetry(clock=clock)
    for second, metric in enumerate(["first", "second", "third"]):
        clock.now = float(second)
        patience.begin(metric)
    clock.now = 10.0
    for metric in ("third", "first", "second"):
        patience.pause(metric, Attempts(), OUT, is_paid=True)

    assert (patience.outage.metric, patience.outage.seconds) == ("first", 10.0)
