from __future__ import annotations

import random
import statistics

import pytest

from ragspan.datasets.report.bootstrap import RESAMPLES, interval_of_mean


def one_by_one(differences):
    """The textbook's bootstrap."""
    chance = random.Random(7)
    means = sorted(statistics.fmean(chance.choices(differences, k=len(differences))) for _ in range(RESAMPLES))
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]


@pytest.mark.parametrize("differences", [[], [0.3]])
def test_too_few_differences_have_no_interval(differences):
    assert interval_of_mean(differences) is None


def test_the_same_differences_in_any_order_have_the_same_interval():
    differences = [0.1, -0.2, 0.4, 0.0, 0.3]

    assert interval_of_mean(differences) == interval_of_mean(sorted(differences))


def test_equal_differences_have_no_width():
    low, high = interval_of_mean([0.25] * 40)

    assert low == pytest.approx(0.25)
    assert high == pytest.approx(0.25)


@pytest.mark.parametrize("count", [60, 1_500])
def test_the_interval_is_that_of_drawing_one_by_one(count):
    chance = random.Random(3)
    differences = [chance.choice([-1.0, 0.0, 0.0, 0.5, chance.random()]) for _ in range(count)]

    low, high = one_by_one(differences)

    width = high - low
    assert interval_of_mean(differences) == (pytest.approx(low, abs=width / 10), pytest.approx(high, abs=width / 10))
