"""Polls that end as soon as the label is certain."""

from __future__ import annotations

import itertools

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import Rating, Vote
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


SLOW_DOWN = JudgeError("RateLimitError", "Slow down.")
SURE, UNSURE = (Vote(grounded=True, probability=probability) for probability in (0.9, 0.6))


@pytest.mark.parametrize(
    ("votes", "options", "asked", "valid", "value", "label"),
    [
        ([True, True], {}, [2], 2, 1.0, "pass"),
        ([False, False], {}, [2], 2, 0.0, "fail"),
        ([True, False, True, True, False], {"polls": 5}, [3, 2], 5, 0.6, "pass"),
        ([True, False, True, False], {}, [2, 2], 3, 2 / 3, "pass"),  # a single vote would be a judge's best guess
        ([True, None, True, True], {}, [2, 2], 3, 1.0, "pass"),  # a vote that did not come leaves the poll open
        (
            [True, False, SLOW_DOWN],
            {},
            [2, 2],
            2,
            0.5,
            "fail",
        ),  # a failure in the second step costs nothing of the first
        ([True], {"polls": 1}, [1], 1, 1.0, "pass"),
        ([True, True], {"polls": 2}, [2], 2, 1.0, "pass"),
        ([True, True, True, False, True], {"polls": 5, "threshold": 0.9}, [3, 2], 5, 0.8, "fail"),
        ([True, True, False, True, False, False], {"polls": 6, "threshold": 0.4}, [4, 2], 6, 0.5, "fail"),  # a tie
        ([SURE, SURE], {}, [2], 2, pytest.approx(0.9), "pass"),
        ([UNSURE, UNSURE, UNSURE], {}, [2, 2], 3, pytest.approx(0.6), "pass"),
    ],
)
async def test_the_rest_is_asked_for_only_while_it_can_change_the_label(
    answered, votes, options, asked, valid, value, label
):
    score, requests = await adherence(answered, *votes, **options)

    assert requests == asked
    assert (score.value, score.label, score.details["valid_votes"], len(score.evidence)) == (value, label, valid, valid)


async def test_a_failure_in_the_second_step_is_the_metrics_where_the_first_has_no_quorum(answered):
    outcome, _ = await adherence(answered, True, None, SLOW_DOWN)

    assert outcome == MetricFailure(error_type="RateLimitError", message="Slow down.")


@pytest.mark.parametrize("polls", [3, 4, 5])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.7, 1.0])
async def test_the_label_is_that_of_the_whole_poll_whatever_the_votes(answered, polls, threshold):
    for votes in itertools.product([True, False], repeat=polls):
        whole = await ContextAdherence(SteppingJudge(*votes), polls=polls, threshold=threshold).score(answered())
        early, _ = await adherence(answered, *votes, polls=polls, threshold=threshold)

        assert early.label == whole.label


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
