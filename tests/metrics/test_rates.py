"""The true share of failing answers, from a metric for all of them and labels for some."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.metrics.rates import LEAST_LABELS, LabelCounts, RateEstimate, estimate_rate

FAIR = LabelCounts(both=45, metric_only=28, label_only=15, neither=112, failing=1330, passing=2470)
"""30 % of the labelled answers fail, and the metric calls 36.5 % of them failing; of the others it calls 35 % failing."""


def estimated(counts: LabelCounts) -> RateEstimate:
    found = estimate_rate(counts)
    assert found is not None
    return found


def test_the_metrics_share_is_corrected_by_the_labels() -> None:
    found = estimated(FAIR)

    assert found.by_metric == pytest.approx((45 + 28 + 1330) / 4000)
    assert 0.28 < found.value < 0.3, "the metric calls fewer of the others failing than of the labelled ones"
    assert found.lower < found.value < found.upper
    assert found.labels == 200


def test_the_metric_makes_labels_worth_more() -> None:
    alone = estimated(replace(FAIR, failing=0, passing=0))
    with_metric = estimated(FAIR)

    assert alone.worth == 200
    assert with_metric.worth > 250
    assert with_metric.upper - with_metric.lower < alone.upper - alone.lower


def test_a_metric_that_knows_nothing_changes_nothing() -> None:
    coin = LabelCounts(both=30, metric_only=70, label_only=30, neither=70, failing=1300, passing=700)
    found = estimated(coin)

    assert found.value == pytest.approx(0.3, abs=0.01), "though it calls 65 % of the others failing"
    assert found.worth == pytest.approx(200, rel=0.02)


def test_a_metric_that_is_always_wrong_is_not_turned_round() -> None:
    wrong = LabelCounts(both=0, metric_only=70, label_only=30, neither=0, failing=700, passing=300)

    assert estimated(wrong).value == pytest.approx(0.3)


def test_without_other_answers_it_is_the_labels_share_with_wilsons_interval() -> None:
    found = estimated(LabelCounts(both=5, metric_only=0, label_only=5, neither=90, failing=0, passing=0))

    assert found.value == 0.1
    assert (found.lower, found.upper) == pytest.approx((0.0552, 0.1744), abs=1e-4)  # as textbooks have it for 10 of 100


def test_no_failure_among_the_labels_does_not_mean_none() -> None:
    found = estimated(LabelCounts(both=0, metric_only=3, label_only=0, neither=97, failing=60, passing=1940))

    assert found.lower == pytest.approx(0, abs=0.002)
    assert found.upper > 0.02


def test_few_labels_give_no_estimate() -> None:
    few = LabelCounts(both=0, metric_only=0, label_only=0, neither=LEAST_LABELS - 1, failing=10, passing=90)

    assert estimate_rate(few) is None
    assert estimate_rate(replace(few, neither=LEAST_LABELS)) is not None


def test_counts_of_two_processes_add_up() -> None:
    assert LabelCounts(both=90, metric_only=56, label_only=30, neither=224, failing=2660, passing=4940) == FAIR + FAIR
    assert estimated(FAIR + FAIR).value == pytest.approx(estimated(FAIR).value, abs=0.002)


@given(st.tuples(*[st.integers(0, 2000)] * 6))
def test_any_counts_give_a_share_within_its_interval(numbers: tuple[int, ...]) -> None:
    both, metric_only, label_only, neither, failing, passing = numbers
    found = estimate_rate(
        LabelCounts(
            both=both,
            metric_only=metric_only,
            label_only=label_only,
            neither=neither,
            failing=failing,
            passing=passing,
        )
    )

    if found is not None:
        assert 0 <= found.lower <= found.value + 1e-12
        assert found.value - 1e-12 <= found.upper <= 1
        assert all(map(math.isfinite, (found.lower, found.upper, found.worth)))
        assert found.worth >= found.labels
