from __future__ import annotations

import statistics

import pytest

from ragspan.datasets.report.distribution import distribution


def test_without_scores_there_is_no_distribution():
    assert distribution([]) is None


def test_a_tenth_belongs_to_the_bin_that_it_begins_and_one_to_the_last():
    scores = distribution([place / 10 for place in range(11)])

    assert scores.counts == (1, 1, 1, 1, 1, 1, 1, 1, 1, 2)


def test_scores_just_below_a_tenth_belong_to_the_bin_before():
    assert distribution([0.7999999]).counts[7] == 1


def test_quartiles_and_whiskers_are_those_of_a_box_plot():
    scores = distribution([0.0, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8])

    lower, median, upper = statistics.quantiles([0.0, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8], n=4, method="inclusive")
    assert (scores.lower_quartile, scores.median, scores.upper_quartile) == (lower, median, upper)
    assert (scores.lower_whisker, scores.upper_whisker) == (0.5, 0.8)
    assert scores.outliers == 1


@pytest.mark.parametrize("values", [[0.4], [0.4, 0.4], [0.0, 1.0]])
def test_few_scores_have_a_distribution_as_well(values):
    scores = distribution(values)

    assert sum(scores.counts) == len(values)
    assert (
        scores.lower_whisker <= scores.lower_quartile <= scores.median <= scores.upper_quartile <= scores.upper_whisker
    )


def roles(threshold):
    return [bar.role for bar in distribution([0.5]).bars(threshold)]


def test_bars_below_the_threshold_fail_and_those_from_it_on_pass():
    assert roles(0.8) == ["fail"] * 8 + ["pass"] * 2


def test_a_bar_with_the_threshold_inside_is_neither():
    assert roles(0.25) == ["fail"] * 2 + ["bar"] + ["pass"] * 7


def test_without_a_threshold_bars_have_no_side():
    assert roles(None) == ["bar"] * 10
