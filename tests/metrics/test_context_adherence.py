from __future__ import annotations

import pytest

from ragspan.judges.base import Vote
from ragspan.metrics import ContextAdherence
from ragspan.metrics.context_adherence import adherence
from ragspan.outcomes import MetricFailure


async def test_the_value_is_the_share_of_votes_for_grounded(fixed_judge, answered):
    judge = fixed_judge(votes=[True, False, True])

    score = await ContextAdherence(judge).score(answered())

    assert score.value == 2 / 3
    assert score.label == "pass"
    assert score.judge == "fixed"
    assert judge.asked == [("votes", 3)]


@pytest.mark.parametrize(
    ("votes", "explanation"),
    [
        ([(False, "no"), (True, "yes"), (True, "yes again")], "yes"),
        ([(True, "yes"), (False, "no"), (False, "no again")], "no"),
    ],
)
async def test_the_explanation_is_the_first_of_the_majority(fixed_judge, answered, votes, explanation):
    judge = fixed_judge(votes=[Vote(grounded=grounded, explanation=text) for grounded, text in votes])

    assert (await ContextAdherence(judge).score(answered())).explanation == explanation


async def test_a_tie_counts_as_not_grounded(fixed_judge, answered):
    judge = fixed_judge(votes=[Vote(grounded=True, explanation="yes"), Vote(grounded=False, explanation="no")])

    score = await ContextAdherence(judge, polls=2).score(answered())

    assert (score.value, score.threshold) == (0.5, 0.5)
    assert score.label == "fail"
    assert score.explanation == "no"


async def test_all_votes_are_kept_as_evidence(fixed_judge, answered):
    judge = fixed_judge(votes=[True, False, False])

    score = await ContextAdherence(judge).score(answered())

    assert list(score.evidence) == judge.votes
    assert score.details == {"votes": 3, "valid_votes": 3, "spread": pytest.approx(0.4714045207910317)}


async def test_the_mean_probability_is_the_value_where_every_vote_has_one(fixed_judge, answered):
    judge = fixed_judge(votes=[Vote(grounded=True, probability=0.7)] * 3)

    assert (await ContextAdherence(judge).score(answered())).value == pytest.approx(0.7)


def test_the_share_is_the_value_where_one_vote_has_no_probability():
    votes = [Vote(grounded=True, probability=0.7), Vote(grounded=True)]

    assert adherence(votes) == 1.0


async def test_a_vote_with_an_impossible_probability_is_not_valid(fixed_judge, answered):
    judge = fixed_judge(votes=[Vote(grounded=True, probability=1.5)] * 3)

    assert (await ContextAdherence(judge).score(answered())).error_type == "missing_verdicts"


async def test_a_score_can_do_with_two_of_three_votes(fixed_judge, answered):
    score = await ContextAdherence(fixed_judge(votes=[True, False])).score(answered())

    assert score.value == 0.5
    assert score.details == {"votes": 3, "valid_votes": 2, "spread": 0.5}


@pytest.mark.parametrize(("polls", "valid"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
async def test_half_of_the_votes_or_fewer_are_not_enough(fixed_judge, answered, polls, valid):
    outcome = await ContextAdherence(fixed_judge(votes=[True] * valid), polls=polls).score(answered())

    assert isinstance(outcome, MetricFailure)
    assert outcome.error_type == "missing_verdicts"
    assert f"{valid} of {polls}" in outcome.message


async def test_votes_beyond_those_asked_for_do_not_count(fixed_judge, answered):
    score = await ContextAdherence(fixed_judge(votes=[True, True, True, False, False])).score(answered())

    assert score.value == 1.0
    assert len(score.evidence) == 3
