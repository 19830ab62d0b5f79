"""Polls that end as soon as the label is certain."""

from __future__ import annotations

import itertools

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges.base import Rating, Vote
from ragspan.metrics import AnswerRelevance, Completeness, ContextAdherence
from ragspan.outcomes import MetricFailure


class SteppingJudge:
    """Gives the next ones of its votes or ratings, as many as it is asked for, or raises an error in their place."""

    name = "stepping"

    def __init__(self, *answers):
        self._answers = list(answers)
        self.asked = []

    async def vote_adherence(self, record, votes):
        return self._next(votes, lambda answer: answer if isinstance(answer, Vote) else Vote(grounded=answer))

    async def rate_completeness(self, record, ratings):
        return self._next(ratings, lambda answer: Rating(value=answer))

    rate_answer_relevance = rate_completeness

    def _next(self, count, made_of):
        self.asked.append(count)
        taken, self._answers = self._answers[:count], self._answers[count:]
        if any(isinstance(answer, Exception) for answer in taken):
            raise next(answer for answer in taken if isinstance(answer, Exception))
        return [made_of(answer) for answer in taken if answer is not None]


async def adherence(answered, *votes, **options):
    judge = SteppingJudge(*votes)
    return await ContextAdherence(judge, early_stop=True, **options).score(answered()), judge.asked


@pytest.mark.parametrize(("votes", "value", "label"), [([True, True], 1.0, "pass"), ([False, False], 0.0, "fail")])
async def test_two_votes_that_agree_make_the_third_needless(answered, votes, value, label):
    score, asked = await adherence(answered, *votes)

    assert (score.value, score.label) == (value, label)
    assert asked == [2]
    assert score.details == {"votes": 2, "valid_votes": 2, "spread": 0.0}


async def test_the_rest_is_asked_for_while_the_label_is_open(answered):
    score, asked = await adherence(answered, True, False, True, True, False, polls=5)

    assert (score.value, score.label) == (0.6, "pass")
    assert asked == [3, 2]
    assert score.details["votes"] == 5


async def test_a_single_vote_that_is_left_is_asked_for_as_one_of_two(answered):
    """A judge gives its best guess for a single vote, and only from two on independent samples."""
    score, asked = await adherence(answered, True, False, True, False)

    assert asked == [2, 2]
    assert len(score.evidence) == 3
    assert score.value == 2 / 3


async def test_votes_that_did_not_come_leave_the_poll_open(answered):
    score, asked = await adherence(answered, True, None, True, True)

    assert asked == [2, 2]
    assert (score.value, score.details["valid_votes"]) == (1.0, 3)


async def test_a_failure_in_the_second_step_costs_nothing_of_the_first(answered):
    score, asked = await adherence(answered, True, False, JudgeError("RateLimitError", "Slow down."))

    assert asked == [2, 2]
    assert (score.value, score.label) == (0.5, "fail")


async def test_a_failure_in_the_second_step_is_the_metrics_where_the_first_has_no_quorum(answered):
    outcome, _ = await adherence(answered, True, None, JudgeError("RateLimitError", "Slow down."))

    assert outcome == MetricFailure(error_type="RateLimitError", message="Slow down.")


@pytest.mark.parametrize("polls", [1, 2])
async def test_one_and_two_votes_are_asked_for_at_once(answered, polls):
    _, asked = await adherence(answered, *[True] * polls, polls=polls)

    assert asked == [polls]


async def test_a_threshold_near_1_is_not_settled_by_a_majority(answered):
    score, asked = await adherence(answered, True, True, True, False, True, polls=5, threshold=0.9)

    assert asked == [3, 2]
    assert score.label == "fail"


async def test_a_tie_that_can_still_come_keeps_the_poll_open(answered):
    score, asked = await adherence(answered, True, True, False, True, False, False, polls=6, threshold=0.4)

    assert asked == [4, 2]
    assert (score.value, score.label) == (0.5, "fail")


@pytest.mark.parametrize("polls", [3, 4, 5])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7, 1.0])
async def test_the_label_is_that_of_the_whole_poll_whatever_the_votes(answered, polls, threshold):
    for votes in itertools.product([True, False], repeat=polls):
        whole = await ContextAdherence(SteppingJudge(*votes), polls=polls, threshold=threshold).score(answered())
        early, _ = await adherence(answered, *votes, polls=polls, threshold=threshold)

        assert early.label == whole.label


async def test_probabilities_settle_a_poll_too(answered):
    sure, unsure = Vote(grounded=True, probability=0.9), Vote(grounded=True, probability=0.6)

    assert (await adherence(answered, sure, sure))[1] == [2]
    assert (await adherence(answered, unsure, unsure, unsure))[1] == [2, 2]


@pytest.mark.parametrize("metric", [Completeness, AnswerRelevance])
@pytest.mark.parametrize(
    ("ratings", "asked"),
    [
        ([0.9, 0.8], [2]),  # at least 1.7 / 3
        ([0.1, 0.2], [2]),  # at most 1.3 / 3
        ([0.75, 0.75], [2]),  # at least 0.5 exactly
        ([0.25, 0.25, 0.1], [2, 2]),  # perhaps 0.5 exactly
        ([0.9, 0.5, 0.4], [2, 2]),
    ],
)
async def test_ratings_are_enough_when_the_mean_cannot_cross_the_threshold(answered, metric, ratings, asked):
    judge = SteppingJudge(*ratings)

    score = await metric(judge, early_stop=True).score(answered())

    assert judge.asked == asked
    assert score.value == pytest.approx(sum(ratings) / len(ratings))
    assert score.details["ratings"] == len(ratings)
