"""The true share of failing answers, where only some answers have a label."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragspan.evaluate.estimates import (
    LEAST_LABELS,
    RateEstimate,
    Stratum,
    estimate_rate,
    rate_by_labels,
)
from ragspan.metrics.doubt import judged
from ragspan.outcomes import Asked, Label, NotApplicable, Outcome, Score

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


def test_a_metric_of_whose_failures_few_have_a_label_does_not_count() -> None:
    failing, passing = Stratum(answers=90, labels=3, failing=0), Stratum(answers=910, labels=47, failing=5)
    found = rate_by_labels(failing, passing)

    assert found is not None
    assert found.value == 0.1
    assert found.by_metric == 0.09


FAILING = Score(value=0.1, threshold=0.5, judge="openai:m")


@pytest.mark.parametrize(
    ("outcome", "asked", "found"),
    [
        (FAILING, "doubtful", ("doubtful", "fail")),
        (FAILING, "random", ("rest", "fail")),
        (replace(FAILING, fallback="timeout"), "doubtful", ("doubtful", None)),
        (NotApplicable(reason="refusal"), "random", None),
    ],
)
def test_an_outcome_has_a_part_and_a_label_where_the_judge_gave_one(
    outcome: Outcome, asked: Asked | None, found: tuple[str, Label | None] | None
) -> None:
    assert judged(outcome, asked) == found
