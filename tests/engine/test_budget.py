from __future__ import annotations

import math
import pickle

import pytest

from ragspan import Budget
from ragspan.exceptions import ConfigurationError
from ragspan.judges import OverlapJudge


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"usd_per_day": 0}, "usd_per_day is 0, but should be a number above 0"),
        ({"usd_per_day": math.inf}, "usd_per_day is inf, but should be a number above 0"),
        ({"usd_per_day": "5"}, "usd_per_day is '5', but should be a number above 0"),
        ({"tokens_per_minute": -1}, "tokens_per_minute is -1, but should be a number above 0"),
        ({"tokens_per_minute": True}, "tokens_per_minute is True, but should be a number above 0"),
        ({"requests_per_minute": 0.5}, "requests_per_minute is 0.5, but should be a whole number, at least 1"),
        ({"requests_per_minute": "9"}, "requests_per_minute is '9', but should be a whole number, at least 1"),
        ({}, "a budget needs a limit: usd_per_day, tokens_per_minute or requests_per_minute"),
        (
            {"usd_per_day": 1, "fallback": "guess"},
            "fallback is 'guess', but should be one of 'skip', 'overlap', 'hhem', a judge or a verifier",
        ),
        (
            {"usd_per_day": 1, "fallback": OverlapJudge},
            "fallback is the class OverlapJudge, but should be one of 'skip', 'overlap', 'hhem', a judge or a verifier",
        ),
        (
            {"usd_per_day": 1, "fallback": 7},
            "fallback is 7, but should be one of 'skip', 'overlap', 'hhem', a judge or a verifier",
        ),
    ],
)
def test_a_wrong_argument_is_refused_by_name(arguments, message):
    with pytest.raises(ConfigurationError) as refused:
        Budget(**arguments)

    assert str(refused.value) == message


@pytest.mark.parametrize("fallback", ["skip", "overlap", "hhem", OverlapJudge()])
def test_a_budget_can_be_sent_to_another_process(fallback):
    budget = Budget(usd_per_day=5, tokens_per_minute=60_000, requests_per_minute=30, fallback=fallback)

    assert pickle.loads(pickle.dumps(budget)) == budget
