from __future__ import annotations

import random
import statistics

import pytest

from ragspan import NotApplicable, Score
from ragspan.datasets.report.comparison import FALLS_SHOWN, RESAMPLES, compare, interval_of_mean


def rows_with(answered, values, *, ids=None, metric="faithfulness"):
    ids = ids or [None] * len(values)
    return [
        answered(row, {metric: value}, record_id=record_id)
        for row, (value, record_id) in enumerate(zip(values, ids, strict=True), start=1)
    ]


@pytest.fixture
def run_of(answered, evaluation_of):
    return lambda values, **more: evaluation_of(rows_with(answered, values, **more))


def test_a_run_beside_itself_has_no_difference(run_of):
    run = run_of([0.2, 0.9, 0.4])

    compared = compare(run, run)

    (change,) = compared.metrics
    assert (change.difference, change.interval, change.verdict) == (0.0, (0.0, 0.0), "no clear difference")
    assert not compared.falls["faithfulness"]
    assert compared.in_both == 3


def test_scores_that_all_rose_are_better(run_of):
    (change,) = compare(run_of([0.6, 0.7, 0.9]), run_of([0.5, 0.5, 0.5])).metrics

    assert change.difference == pytest.approx(0.7 / 3)
    assert change.interval[0] > 0
    assert change.verdict == "better"


def test_scores_that_all_fell_are_worse_and_the_largest_falls_are_listed_first(run_of):
    compared = compare(run_of([0.4, 0.1, 0.3]), run_of([0.5, 0.9, 0.8]))

    assert compared.metrics[0].verdict == "worse"
    assert [(fall.row, fall.before, fall.after) for fall in compared.falls["faithfulness"]] == [
        (2, 0.9, 0.1),
        (3, 0.8, 0.3),
        (1, 0.5, 0.4),
    ]


def test_of_many_falls_the_largest_are_kept(run_of):
    values = [place / 100 for place in range(100)]

    compared = compare(run_of([0.0] * 100), run_of(values))

    assert len(compared.falls["faithfulness"]) == FALLS_SHOWN
    assert compared.falls["faithfulness"][0].before == 0.99


def test_answers_that_passed_before_and_fail_now_come_before_larger_falls(run_of):
    compared = compare(run_of([0.5, 0.0, 0.4]), run_of([1.0, 0.4, 0.5]))

    assert [fall.row for fall in compared.falls["faithfulness"]] == [3, 1, 2]


def test_labels_that_changed_are_counted_both_ways(run_of):
    (change,) = compare(run_of([0.9, 0.1, 0.1, 0.9]), run_of([0.1, 0.9, 0.8, 0.7])).metrics

    assert (change.newly_passing, change.newly_failing) == (1, 2)


def test_answers_are_paired_by_record_id_wherever_they_stand(run_of):
    run = run_of([0.9, 0.2], ids=["a", "b"])
    baseline = run_of([0.2, 0.9], ids=["b", "a"])

    compared = compare(run, baseline)

    assert compared.paired_by == "record id"
    assert compared.metrics[0].difference == 0.0


def test_answers_with_the_same_id_are_paired_in_their_order(run_of):
    run = run_of([0.9, 0.2, 0.5], ids=["a", "a", "b"])
    baseline = run_of([0.9, 0.2, 0.4], ids=["a", "a", "b"])

    assert compare(run, baseline).metrics[0].difference == pytest.approx(0.1 / 3)


@pytest.mark.parametrize("ids", [["x", "y"], ["row-1", "row-2"]])
def test_without_ids_in_common_rows_are_paired_by_number(run_of, ids):
    compared = compare(run_of([0.9, 0.2]), run_of([0.8, 0.2], ids=ids))

    assert compared.paired_by == "row number"
    assert compared.in_both == 2


def test_answers_of_one_run_only_are_counted_and_left_out(run_of):
    run = run_of([0.5, 1.0, 1.0], ids=["a", "b", "c"])
    baseline = run_of([0.5, 0.0], ids=["a", "z"])

    compared = compare(run, baseline)

    (change,) = compared.metrics
    assert (compared.in_both, compared.only_here, compared.only_in_baseline) == (1, 2, 1)
    assert (change.pairs, change.mean, change.baseline_mean) == (1, 0.5, 0.5)
    assert (change.only_here, change.only_in_baseline) == (2, 1)


def test_an_answer_that_only_one_run_could_score_is_in_no_mean(run_of):
    gone = NotApplicable(reason="no_claims")

    (change,) = compare(run_of([0.5, gone, 0.7]), run_of([0.5, 0.9, gone])).metrics

    assert (change.pairs, change.only_here, change.only_in_baseline) == (1, 1, 1)
    assert change.difference == 0.0
    assert change.interval is None


def test_a_metric_of_one_run_only_has_nothing_to_compare(run_of):
    changes = compare(run_of([0.5], metric="new"), run_of([0.5], metric="old")).metrics

    assert [(change.metric, change.verdict) for change in changes] == [
        ("new", "nothing to compare"),
        ("old", "nothing to compare"),
    ]
    assert changes[0].difference is None


def test_different_judges_are_a_caution(run_of):
    run = run_of([Score(value=0.5, judge="gpt", prompt_version="2")])
    baseline = run_of([Score(value=0.5, judge="gpt", prompt_version="1")])

    (caution,) = compare(run, baseline).cautions

    assert caution.startswith("faithfulness was judged by gpt (prompts 2) here and by gpt (prompts 1) in the baseline")
    assert compare(run, run).cautions == ()


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
