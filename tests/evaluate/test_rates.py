"""The true share of failing answers, where only some answers have a label."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragspan.evaluate.summaries import LEAST_LABELS, RateEstimate, Stratum, estimate_rate, rate_by_labels

DOUBTFUL = Stratum(answers=160, labels=160, failing=60)
REST = Stratum(answers=840, labels=42, failing=2)


def estimated(*strata: Stratum) -> RateEstimate:
    found = estimate_rate(strata)
    assert found is not None
    return found


def test_what_is_known_counts_as_it_is_and_the_rest_by_its_random_part() -> None:
    found = estimated(DOUBTFUL, REST)

    assert found.value == pytest.approx((60 + 840 * 2 / 42) / 1000)
    assert found.lower > 60 / 1000, "so many are known to fail"
    assert (found.labels, found.answers) == (202, 1000)


def test_few_labels_give_no_estimate() -> None:
    few = replace(REST, labels=LEAST_LABELS - 1)

    assert estimate_rate([DOUBTFUL, few]) is None, "those of the doubtful answers do not help"
    assert estimate_rate([DOUBTFUL, replace(few, labels=LEAST_LABELS)]) is not None
    assert estimate_rate([replace(DOUBTFUL, labels=0, failing=0), REST]) is None
    assert estimate_rate([]) is None


def test_labels_say_how_a_metric_errs_on_those_that_it_fails_and_on_those_that_it_passes() -> None:
    failing, passing = Stratum(answers=1400, labels=70, failing=42), Stratum(answers=2600, labels=130, failing=18)
    found, alone = rate_by_labels(failing, passing), estimated(failing + passing)

    assert found is not None
    assert found.by_metric == 0.35
    assert found.value == pytest.approx((1400 * 0.6 + 2600 * 18 / 130) / 4000)
    assert found.upper - found.lower < 0.95 * (alone.upper - alone.lower)
