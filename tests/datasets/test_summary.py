"""Counting outcomes, summing them up, and keeping the lowest."""

from __future__ import annotations

import random
import statistics

import pytest

from ragspan.datasets.results import WORST_KEPT, EvaluatedRow, Evaluation, MetricSummary, ResultRow
from ragspan.datasets.summary import LowestScores, Tally
from ragspan.outcomes import NotApplicable, Score
from ragspan.records import RagRecord


def tally_of(*values, reasons=(), label=None, threshold=None):
    tally = Tally(["m"])
    for value in values:
        tally.add(ResultRow(row=1, record_id="r", metric="m", score=value, label=label), threshold)
    for reason in reasons:
        tally.add(ResultRow(row=1, record_id="r", metric="m", reason=reason))
    return tally


def test_the_summary_is_of_the_scores_alone():
    summary = tally_of(0.0, 0.5, 0.75, reasons=["no_response", "timeout", "timeout"]).summary()["m"]

    assert (summary.mean, summary.median, summary.minimum, summary.maximum) == (pytest.approx(1.25 / 3), 0.5, 0.0, 0.75)
    assert summary.standard_deviation == pytest.approx(statistics.stdev([0.0, 0.5, 0.75]))
    assert (summary.scored, list(summary.not_scored.items())) == (3, [("timeout", 2), ("no_response", 1)])


def test_where_nothing_was_scored_there_are_no_figures():
    assert tally_of(reasons=["timeout"]).summary()["m"] == MetricSummary(metric="m", not_scored={"timeout": 1})
    assert Tally(["m"]).summary()["m"] == MetricSummary(metric="m")


def test_a_single_score_has_no_deviation():
    summary = tally_of(0.3).summary()["m"]

    assert (summary.mean, summary.median, summary.standard_deviation) == (0.3, 0.3, None)


def test_the_median_of_an_even_number_lies_in_the_middle():
    assert tally_of(0.0, 1.0, 0.5, 0.25).summary()["m"].median == 0.375


def test_rounding_puts_no_mean_outside_of_its_values():
    summary = tally_of(*[0.1] * 3).summary()["m"]

    assert summary.mean == 0.1
    assert summary.standard_deviation == 0.0


def test_passes_are_counted_by_label_and_the_threshold_is_kept():
    summary = tally_of(0.9, 0.2, label="pass", threshold=0.8).summary()["m"]

    assert (summary.passed, summary.threshold) == (2, 0.8)


def test_means_are_there_while_rows_still_come():
    assert tally_of(0.5, 1.0).means() == {"m": 0.75}
    assert Tally(["m"]).means() == {"m": None}


RECORD = RagRecord(question="q", contexts=None, response="r")


def row(number, **values):
    outcomes = {
        metric: NotApplicable(reason="no_response") if value is None else Score(value=value)
        for metric, value in values.items()
    }
    return EvaluatedRow(row=number, record=RECORD, outcomes=outcomes)


def kept_of(rows, *metrics):
    worst = LowestScores(metrics)
    for evaluated in rows:
        worst.offer(evaluated)
    return worst.rows()


def test_the_lowest_are_kept_whatever_the_order():
    values = [number / 1000 for number in range(500)]
    random.Random(3).shuffle(values)
    kept = kept_of([row(number, m=value) for number, value in enumerate(values)], "m")

    assert sorted(evaluated.outcomes["m"].value for evaluated in kept) == [place / 1000 for place in range(WORST_KEPT)]
    assert [evaluated.row for evaluated in kept] == sorted(evaluated.row for evaluated in kept)


def test_of_equal_scores_the_earlier_rows_are_kept():
    kept = kept_of([row(number, m=0.5) for number in range(WORST_KEPT + 5)], "m")

    assert [evaluated.row for evaluated in kept] == list(range(WORST_KEPT))


def test_rows_without_a_score_are_not_among_them():
    assert kept_of([row(1, m=None), row(2, m=0.5)], "m") == (row(2, m=0.5),)


def test_a_row_that_is_low_by_two_metrics_is_there_once_and_each_metric_has_its_order():
    kept = kept_of([row(1, m=0.9, n=0.1), row(2, m=0.2, n=0.3), row(3, m=0.2, n=None)], "m", "n")
    evaluation = Evaluation(metrics=("m", "n"), rows=3, summary={}, worst=kept)

    assert [evaluated.row for evaluated in kept] == [1, 2, 3]
    assert [evaluated.row for evaluated in evaluation.worst_by("m")] == [2, 3, 1]
    assert [evaluated.row for evaluated in evaluation.worst_by("n")] == [1, 2]
