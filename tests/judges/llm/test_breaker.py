from __future__ import annotations

import pytest

from ragspan.exceptions import BudgetExhausted, JudgeError
from ragspan.judges.llm.requests import CircuitBreaker

OUT = JudgeError("APIConnectionError", "nobody there", outage=True, status=503)
ABOUT_ONE_REQUEST = JudgeError("BadRequestError", "too long")


@pytest.fixture
def breaker(clock):
    return CircuitBreaker(clock=clock)


def ask(breaker, error=None):
    """What came of a request: `answered`, or the type of the error."""
    try:
        with breaker.watching():
            if error is not None:
                raise error
    except JudgeError as failure:
        return failure.error_type
    except BaseException as failure:
        return type(failure).__name__
    return "answered"


def fail(breaker, times):
    return [ask(breaker, OUT) for _ in range(times)]


def test_after_five_failures_in_a_row_requests_fail_at_once(breaker):
    assert fail(breaker, 5) == ["APIConnectionError"] * 5
    with pytest.raises(JudgeError) as failure, breaker.watching():
        pass

    assert vars(failure.value) == {
        "error_type": "judge_unavailable",
        "message": "5 requests in a row failed; the next is sent in 30 s. The last: nobody there",
        "outage": True,
        "status": 503,
        "usage": None,
    }


def test_after_the_pause_a_single_request_tries(breaker, clock):
    fail(breaker, 5)
    clock.advance(30)
    with breaker.watching():
        assert [ask(breaker) for _ in range(3)] == ["judge_unavailable"] * 3

    assert [ask(breaker) for _ in range(3)] == ["answered"] * 3


def test_a_try_that_fails_begins_another_pause(breaker, clock):
    fail(breaker, 5)
    for _ in range(3):
        clock.advance(29)
        assert ask(breaker) == "judge_unavailable"
        clock.advance(1)
        assert ask(breaker, OUT) == "APIConnectionError"


@pytest.mark.parametrize(
    "error", [ABOUT_ONE_REQUEST, BudgetExhausted("usd_per_day", False), BudgetExhausted("requests_per_minute", True)]
)
def test_what_is_about_one_request_neither_counts_nor_clears(breaker, error):
    for _ in range(20):
        ask(breaker, error)
    fail(breaker, 4)
    ask(breaker, error)

    assert fail(breaker, 2) == ["APIConnectionError", "judge_unavailable"]


def test_a_try_that_never_ends_holds_up_nobody_for_ever(breaker, clock):
    fail(breaker, 5)
    clock.advance(30)
    hanging = breaker.watching()
    hanging.__enter__()
    assert ask(breaker) == "judge_unavailable"

    clock.advance(30)
    assert ask(breaker) == "answered"
