"""Votes and ratings: what counts, what is their mean, and which explanation is the score's."""

from __future__ import annotations

import math

import pytest

from ragspan.judges.judge_protocols import Rating, Vote
from ragspan.metrics import AnswerRelevance, Completeness, ContextAdherence
from ragspan.outcomes import MetricFailure

RATED = pytest.mark.parametrize(("metric", "question"), [(Completeness, "ratings"), (AnswerRelevance, "relevance")])


@pytest.mark.parametrize(
    ("votes", "value", "label", "explanation", "deviation"),
    [
        ([(False, "no"), (True, "yes"), (True, "yes again")], 2 / 3, "pass", "yes", 0.4714045207910317),
        ([(True, "yes"), (False, "no"), (False, "no again")], 1 / 3, "fail", "no", 0.4714045207910317),
        ([(True, "yes"), (False, "no")], 0.5, "fail", "no", 0.5),  # a tie is not grounded
    ],
)
async def test_the_value_is_the_share_of_votes_and_the_explanation_the_first_of_the_majority(
    fixed_judge, answered, votes, value, label, explanation, deviation
):
    judge = fixed_judge(votes=[Vote(grounded=grounded, explanation=text) for grounded, text in votes])

    score = await ContextAdherence(judge).score(answered())

    assert (score.value, score.label, score.explanation) == (value, label, explanation)
    assert list(score.evidence) == judge.votes
    assert score.details == {"votes": 3, "valid_votes": len(votes), "spread": pytest.approx(deviation)}
    assert judge.asked == [("votes", 3)]


@pytest.mark.parametrize(
    ("probabilities", "value"),
    [([0.7, 0.7, 0.7], 0.7), ([0.7, None], 0.85), ([0.7, 1.5, 0.9], 0.8)],
)
async def test_a_vote_with_a_probability_counts_with_it(fixed_judge, answered, probabilities, value):
    judge = fixed_judge(votes=[Vote(grounded=True, probability=one) for one in probabilities])

    assert (await ContextAdherence(judge).score(answered())).value == value


@pytest.mark.parametrize(("polls", "valid"), [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2)])
@pytest.mark.parametrize(
    ("metric", "answers", "kind"),
    [
        (ContextAdherence, "votes", "votes"),
        (Completeness, "ratings", "ratings"),
        (AnswerRelevance, "ratings", "ratings"),
    ],
)
async def test_half_of_the_answers_or_fewer_are_not_enough(fixed_judge, answered, metric, answers, kind, polls, valid):
    outcome = await metric(fixed_judge(**{answers: [True] * valid}), polls=polls).score(answered())

    assert outcome == MetricFailure(
        error_type="missing_verdicts", message=f"{valid} of {polls} {kind} are valid, but more than half have to be"
    )


@RATED
async def test_the_value_is_the_mean_and_the_explanation_that_of_the_closest_rating(
    fixed_judge, answered, metric, question
):
    ratings = [Rating(value=0.4, explanation="first"), Rating(value=0.5, explanation="second"), Rating(value=0.6)]
    judge = fixed_judge(ratings=ratings)

    score = await metric(judge).score(answered())

    assert (score.value, score.label, score.explanation) == (0.5, "pass", "second")
    assert score.evidence == tuple(ratings)
    assert score.details == {"ratings": 3, "valid_ratings": 3, "spread": pytest.approx(0.0816496580927726)}
    assert judge.asked == [(question, 3)]


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, math.inf])
async def test_a_rating_outside_0_and_1_is_not_valid(fixed_judge, answered, wrong):
    score = await Completeness(fixed_judge(ratings=[0.2, wrong, 0.4])).score(answered())

    assert (score.value, score.details["valid_ratings"]) == (0.3, 2)
