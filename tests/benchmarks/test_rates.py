"""The simulation of intervals runs, and what it draws is what it says."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="module")
def rates(part):
    return part("rates")


def test_with_fewer_unsupported_answers_the_metric_errs_as_often_on_each_kind(rates):
    fair = rates.made_up()[0]
    rare = fair.with_rate(0.03)

    assert sum(rare.shares) == pytest.approx(1)
    assert rare.rate == pytest.approx(0.03)
    assert rare.shares[0] / rare.rate == pytest.approx(fair.shares[0] / fair.rate)
    assert rare.shares[1] / (1 - rare.rate) == pytest.approx(fair.shares[1] / (1 - fair.rate))


@pytest.mark.parametrize("labels", [50, 1000])
def test_intervals_hold_the_rate_as_often_as_they_say(rates, labels):
    row = rates.row_of(rates.made_up()[0], labels, 2000, np.random.default_rng(3))

    assert 0.93 <= row.coverage <= 0.97
    assert row.width < row.width_of_labels


@pytest.mark.slow
def test_the_program_writes_a_row_for_each_number_of_labels(figures_of):
    rows = figures_of("rates.py")

    assert {row["labels"] for row in rows} == {50, 100, 300, 1000}
    assert all(0.8 <= row["coverage"] <= 1 for row in rows)
