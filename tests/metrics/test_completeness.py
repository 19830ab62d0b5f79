from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.base import Rating
from ragspan.metrics import Completeness
from ragspan.metrics._polling import closest_to_mean, mean, spread
from ragspan.outcomes import MetricFailure


async def test_the_value_is_the_mean_and_the_explanation_that_of_the_closest_rating(fixed_judge, answered):
    ratings = [Rating(value=0.4, explanation="first"), Rating(value=0.5, explanation="second"), Rating(value=0.6)]

    score = await Completeness(fixed_judge(ratings=ratings)).score(answered())

    assert score.value == 0.5
    assert score.explanation == "second"
    assert score.evidence == tuple(ratings)
    assert score.details["spread"] == pytest.approx(0.0816496580927726)


@pytest.mark.parametrize(
    ("values", "index"), [([0.2, 0.4], 0), ([0.4, 0.2], 0), ([0.1, 0.2, 0.4, 0.5], 1), ([0.1, 0.7, 0.4], 2)]
)
def test_of_ratings_equally_close_to_the_mean_the_first_is_the_closest(values, index):
    """In binary floating point most of these are not equally close."""
    assert closest_to_mean(values) == index


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan, math.inf])
async def test_a_rating_outside_0_and_1_is_not_valid(fixed_judge, answered, wrong):
    score = await Completeness(fixed_judge(ratings=[0.2, wrong, 0.4])).score(answered())

    assert score.value == 0.3
    assert score.details["valid_ratings"] == 2


async def test_half_of_the_ratings_are_not_enough(fixed_judge, answered):
    outcome = await Completeness(fixed_judge(ratings=[0.2, 0.4]), polls=4).score(answered())

    assert isinstance(outcome, MetricFailure)
    assert outcome.error_type == "missing_verdicts"


async def test_ratings_beyond_those_asked_for_do_not_count(fixed_judge, answered):
    score = await Completeness(fixed_judge(ratings=[0.5, 0.5, 1.0]), polls=2).score(answered())

    assert score.value == 0.5


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_the_mean_lies_between_the_ratings_and_equal_ratings_have_no_spread(values):
    assert min(values) <= float(mean(values)) <= max(values)
    assert spread([values[0]] * len(values)) == 0
    assert 0 <= spread(values) <= 0.5
