from __future__ import annotations

import pytest

from ragspan import MetricFailure, NotApplicable, Score
from ragspan.datasets.report.signs import signs_of

GOOD = [0.7, 0.75, 0.8, 0.85, 0.9] * 10


def signs(evaluation, metric):
    return signs_of(evaluation.summary[metric])


@pytest.fixture
def signs_for(scored):
    return lambda values, metric="faithfulness": signs(scored(metric, values), metric)


def titles(found):
    return [sign.title for sign in found]


def test_good_scores_give_no_sign(signs_for):
    assert signs_for(GOOD) == []


def test_where_few_answers_pass_the_risk_is_high_with_figures_and_what_to_look_at(signs_for):
    (sign,) = signs_for([0.4, 0.45, 0.55, 0.45] * 10)

    assert (sign.level, sign.title) == ("high", "Most answers fail")
    assert sign.figures == (
        "The mean is 0.46 and the median is 0.45; a pass begins at 0.50, and 25% of the answers pass."
    )
    assert sign.advice.startswith("the explanation lists what to look for")


def test_a_median_just_below_the_threshold_deserves_a_look_only(signs_for):
    (sign,) = signs_for([0.45] * 22 + [0.5] * 18)

    assert (sign.level, sign.title) == ("notice", "Low mean and median")


def test_a_mean_far_below_the_threshold_is_called_very_low(signs_for):
    (sign,) = signs_for([0.1] * 20 + [0.55] * 20)

    assert (sign.level, sign.title) == ("high", "Very low mean and median")


def test_a_mean_that_few_answers_pull_down_deserves_a_look_only(signs_for):
    (sign,) = signs_for([0.3] * 20 + [0.55] * 21)

    assert (sign.level, sign.title) == ("notice", "Low mean")


def test_a_figure_that_is_shown_as_the_threshold_is_no_sign(signs_for):
    assert signs_for([0.499] * 40 + [0.7]) == []


def test_a_maximum_below_the_threshold_says_that_no_answer_passes(signs_for):
    (sign,) = signs_for([0.3, 0.4, 0.45] * 20)

    assert (sign.level, sign.title) == ("high", "Low maximum: no answer passes")
    assert sign.figures == "The best of 60 scores is 0.45, the mean 0.38; a pass begins at 0.50."


def test_zeros_and_ones_deserve_a_look_where_many_answers_fail(signs_for):
    (sign,) = signs_for([0.0, 1.0, 1.0] * 20)

    assert (sign.level, sign.title) == ("notice", "High deviation")
    assert sign.figures.startswith("Standard deviation 0.48 around a mean of 0.67;")


def test_few_failures_among_good_answers_are_no_sign(signs_for):
    """Their deviation is as high: faithfulness is near 0 or 1 by its nature."""
    assert signs_for([0.0] * 6 + [1.0] * 34) == []


def test_many_answers_without_a_score_are_told_with_the_reasons(answered, evaluation_of):
    rows = [answered(row, {"m": 0.9}) for row in range(1, 41)]
    rows += [answered(row, {"m": NotApplicable(reason="no_contexts")}) for row in range(41, 61)]

    (sign,) = signs(evaluation_of(rows), "m")

    assert (sign.level, sign.title) == ("high", "Many answers have no score")
    assert sign.figures == "20 of 60 answers have no score (33%): no_contexts 20."
    assert sign.advice.endswith("Most often nothing was retrieved, or nothing retrieved reached the prompt.")


def test_a_few_answers_to_which_a_metric_does_not_apply_are_no_sign(answered, evaluation_of):
    rows = [answered(row, {"m": 0.9}) for row in range(1, 41)]
    rows.append(answered(41, {"m": NotApplicable(reason="no_contexts")}))

    assert signs(evaluation_of(rows), "m") == []


def test_a_metric_that_fails_is_a_sign_sooner(answered, evaluation_of):
    rows = [answered(row, {"m": 0.9}) for row in range(1, 41)]
    rows.append(answered(41, {"m": MetricFailure(error_type="timeout", message="")}))

    (sign,) = signs(evaluation_of(rows), "m")

    assert sign.title == "The metric failed on many answers"
    assert "A failure is a fault in the judging" in sign.advice


def test_a_metric_that_scored_nothing_is_high_risk(answered, evaluation_of):
    (sign,) = signs(evaluation_of([answered(1, {"m": NotApplicable(reason="no_claims")})]), "m")

    assert (sign.level, sign.figures) == ("high", "1 of 1 answers have no score (100%): no_claims 1.")


def test_few_scores_are_told_after_the_signs_of_high_risk(signs_for):
    found = signs_for([0.1, 0.2, 0.2])

    assert [sign.level for sign in found] == ["high", "notice"]
    assert found[1].figures.startswith("Only 3 answers have a score")


def test_a_metric_without_a_threshold_is_measured_by_the_middle_of_the_scale(answered, evaluation_of):
    rows = [answered(row, {"own": Score(value=0.2)}) for row in range(1, 41)]
    rows.append(answered(41, {"own": Score(value=0.9)}))

    (sign,) = signs(evaluation_of(rows), "own")

    assert "the metric has no threshold, 0.50 is the middle of the scale" in sign.figures
    assert sign.advice is None


def test_a_reason_of_a_metric_of_ones_own_is_no_failure(answered, evaluation_of):
    rows = [answered(row, {"own": Score(value=0.9)}) for row in range(1, 41)]
    rows += [answered(row, {"own": NotApplicable(reason="too_short")}) for row in range(41, 44)]
    assert signs(evaluation_of(rows), "own") == []

    rows += [answered(row, {"own": NotApplicable(reason="too_short")}) for row in range(44, 61)]
    (sign,) = signs(evaluation_of(rows), "own")

    assert (sign.title, sign.advice.endswith("Most often too_short.")) == ("Many answers have no score", True)


def test_a_failure_that_is_called_as_a_reason_is_a_failure(answered, evaluation_of):
    rows = [answered(row, {"own": Score(value=0.9)}) for row in range(1, 41)]
    rows.append(answered(41, {"own": MetricFailure(error_type="no_claims", message="")}))

    assert titles(signs(evaluation_of(rows), "own")) == ["The metric failed on many answers"]
