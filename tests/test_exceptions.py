from __future__ import annotations

import pickle

import pytest

from ragspan.exceptions import BudgetExhausted, JudgeError


@pytest.mark.parametrize(
    "error", [JudgeError("RateLimitError", "slow down", outage=True), BudgetExhausted("tokens_per_minute")]
)
def test_an_error_of_a_judge_survives_the_way_to_another_process(error):
    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))


def test_a_spent_budget_says_which_limit_it_was_and_is_no_outage():
    error = BudgetExhausted("usd_per_day")

    assert str(error) == "usd_per_day leaves no room for the request"
    assert (error.error_type, error.limit, error.outage) == ("budget_exhausted", "usd_per_day", False)
