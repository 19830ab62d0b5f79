"""How long a metric waits for a judge that is away."""

from __future__ import annotations

import asyncio

import pytest

from ragspan.evaluate import outages
from ragspan.evaluate.outages import OutageRetry
from ragspan.outcomes import MetricFailure, Score

OUT = MetricFailure(error_type="InternalServerError", message="overloaded", outage=True, status=503)
TOO_MANY = MetricFailure(error_type="RateLimitError", message="slow down", outage=True, status=429)
SCORE = Score(value=1.0)


class Clock:
    """Time goes on while somebody sleeps."""

    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock, pauses = Clock(), []

    async def sleep(seconds):
        pauses.append(seconds)
        clock.now += seconds

    monkeypatch.setattr(outages.asyncio, "sleep", sleep)
    clock.pauses = pauses
    return clock


def end(retry, *outcomes):
    """What becomes of a row whose metric has these outcomes, the last one again and again."""
    left = list(outcomes)

    async def ask(_):
        return {"m": left.pop(0) if len(left) > 1 else left[0]}

    return asyncio.run(retry.outcomes(["m"], ask, ()))["m"]


def test_a_judge_that_is_away_is_asked_after_pauses_that_grow_until_patience_ends(clock):
    assert end(OutageRetry(100, clock=clock), OUT) == OUT
    assert clock.pauses[:6] == [1, 2, 4, 8, 10, 10]
    assert 100 < clock.now <= 110


def test_by_default_a_judge_that_has_never_answered_is_waited_for_less_long(clock):
    retry = OutageRetry(clock=clock)
    end(retry, OUT)
    assert 90 < clock.now < 110

    end(retry, SCORE)
    before = clock.now
    end(retry, OUT)
    assert 600 < clock.now - before < 620


def test_once_patience_has_ended_other_records_are_not_waited_for(clock):
    retry = OutageRetry(100, clock=clock)
    end(retry, OUT)
    waited = clock.now
    end(retry, OUT)
    assert clock.now == waited

    assert end(retry, SCORE) == SCORE
    assert end(retry, TOO_MANY, TOO_MANY, SCORE) == SCORE


def test_it_is_told_who_is_away_and_for_how_long(clock):
    retry = OutageRetry(100, clock=clock)
    told = []

    async def ask(_):
        told.append(retry.outage)
        return {"m": OUT if len(told) < 4 else SCORE}

    asyncio.run(retry.outcomes(["m"], ask, ()))
    words = "waiting for the judge of m since 3 s, for 97 s more (InternalServerError: overloaded)"
    assert (told[:3], told[2:3], retry.outage) == ([None, None, words], [words], None)
