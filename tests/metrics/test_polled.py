"""Votes and ratings: which count. What they come to is in `test_whole_outcomes`."""

from __future__ import annotations

import math

import pytest

from ragspan.judges.judge_protocols import Vote
from ragspan.metrics import AnswerRelevance, Completeness, ContextAdherence
from ragspan.outcomes import MetricFailure


@pytest.mark.parametrize(
    ("probabilities", "value"),
    [([0.7, 0.7, 0.7], 0.7), ([0.7, None], 0.85), ([0.7, 1.5, 0.9], 0.8)],
)
async def test_a_vote_with_a_probability_counts_with_it(fixed_judge, answered, probabilities, value):
    judge = fixed_judge(votes=[Vote(grounded=True, probability=one) for one in probabilities])

    assert (await ContextAdherence(judge).score(answered())).value == value


@pytest.mark.parametrize(("polls", "valid"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
@pytest.mark.parametrize("metric", [ContextAdherence, Completeness, AnswerRelevance])
async def test_half_of_the_answers_or_fewer_are_not_enough(fixed_judge, answered, metric, polls, valid):
    kind = "votes" if metric is ContextAdherence else "ratings"
    outcome = await metric(fixed_judge(**{kind: [True] * valid}), polls=polls).score(answered())

    assert outcome == MetricFailure(
        error_type="missing_verdicts", message=f"{valid} of {polls} {kind} are valid, but more than half have to be"
    )


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, math.inf])
async def test_a_rating_outside_0_and_1_is_not_valid(fixed_judge, answered, wrong):
    score = await Completeness(fixed_judge(ratings=[0.2, wrong, 0.4])).score(answered())

    assert (score.value, score.details["valid_ratings"]) == (0.3, 2)
