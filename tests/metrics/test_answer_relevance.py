from __future__ import annotations

import pytest

from ragspan.judges.base import Rating
from ragspan.metrics import AnswerRelevance
from ragspan.outcomes import MetricFailure


async def test_the_value_is_the_mean_of_the_ratings_with_the_explanation_of_the_closest(fixed_judge, answered):
    ratings = [Rating(value=0.4, explanation="first"), Rating(value=0.5, explanation="second"), Rating(value=0.6)]
    judge = fixed_judge(ratings=ratings)

    score = await AnswerRelevance(judge).score(answered())

    assert (score.value, score.label, score.explanation) == (0.5, "pass", "second")
    assert score.evidence == tuple(ratings)
    assert score.details == {"ratings": 3, "valid_ratings": 3, "spread": pytest.approx(0.0816496580927726)}
    assert judge.asked == [("relevance", 3)]


async def test_half_of_the_ratings_are_not_enough(fixed_judge, answered):
    outcome = await AnswerRelevance(fixed_judge(ratings=[0.2]), polls=2).score(answered())

    assert outcome == MetricFailure(
        error_type="missing_verdicts", message="1 of 2 ratings are valid, but more than half have to be"
    )
