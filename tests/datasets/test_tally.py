"""Counting outcomes, and summing them up."""

from __future__ import annotations

import statistics

import pytest

from ragspan.datasets.results import MetricSummary, ResultRow
from ragspan.datasets.tally import Tally


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
