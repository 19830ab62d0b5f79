from __future__ import annotations

import pickle

import pytest

from ragspan.exceptions import BudgetExhausted, JudgeError


@pytest.mark.parametrize(
    "error", [JudgeError("RateLimitError", "slow down", outage=True), BudgetExhausted("tokens_per_minute", True)]
)
def test_an_error_of_a_judge_survives_the_way_to_another_process(error):
    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))
    assert str(error) in {"slow down", "tokens_per_minute leaves no room for the request"}
    assert error.error_type in {"RateLimitError", "budget_exhausted"}
