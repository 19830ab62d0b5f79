"""The simulation of alarms: its evidence is what statistics say it is, and the program finds the rises that it makes."""

from __future__ import annotations

import math

import numpy as np
import pytest


@pytest.fixture(scope="module")
def alarms(part):
    return part("alarms")


def stream(alarms, *parts):
    """Parts of (steps, scores a step, share of failures)."""
    scores = np.concatenate([np.full(steps, float(each)) for steps, each, _ in parts])
    failures = np.concatenate([np.full(steps, each * share) for steps, each, share in parts])
    return alarms.Stream(scores=scores, failures=failures)


def test_with_many_scores_the_evidence_is_the_difference_in_standard_errors(alarms):
    made = stream(alarms, (alarms.LEARNING, 100, 0.5), (alarms.HALF_HOUR, 100, 0.55))

    found = alarms.evidence(made, alarms.HALF_HOUR)[-1]

    assert found == pytest.approx(0.05 / math.sqrt(0.25 / 600), rel=0.01)


def test_a_share_that_stays_gives_no_evidence(alarms):
    made = stream(alarms, (alarms.LEARNING + 50, 10, 0.2))

    assert alarms.evidence(made, alarms.SIX_HOURS)[-1] == pytest.approx(0, abs=0.05)
    assert not alarms.pages(made).any()


@pytest.mark.parametrize("parts", [[(100, 10, 0.9)], [(3000, 0.01, 0.1), (50, 0.01, 0.9)]])
def test_without_a_past_or_without_enough_scores_nothing_is_said(alarms, parts):
    assert not alarms.pages(stream(alarms, *parts)).any()


def test_a_page_that_comes_back_within_an_hour_is_the_same_page(alarms):
    on = np.zeros(100, dtype=bool)
    on[[10, 11, 20, 60]] = True

    assert alarms.beginnings(on).tolist() == [10, 60]


@pytest.mark.slow
def test_false_pages_are_rare_and_rises_are_found(figures_of):
    figures = figures_of("alarms.py")

    assert sum(one["pages"] for one in figures["false_pages"]) / len(figures["false_pages"]) < 1
    assert all(one["hours"][1] <= 12 for one in figures["delays"] if one["rate"] == 200)
