"""How well scores agree with labels: the figures are right, and so is what is said of their chance."""

from __future__ import annotations

import math
import random

import pytest

from ragspan.evaluate.estimates import Bootstrap, auroc, balanced_accuracy


def pairs_won(values, labels):
    """The definition of AUROC, pair by pair."""
    won = [
        1.0 if high > low else 0.5 if high == low else 0.0
        for high, good in zip(values, labels, strict=True)
        for low, bad in zip(values, labels, strict=True)
        if good and not bad
    ]
    return sum(won) / len(won)


def test_auroc_is_the_share_of_pairs_in_the_right_order_with_ties_counted_half():
    draw = random.Random(1)
    values = [draw.randrange(6) / 5 for _ in range(60)]
    labels = [draw.random() < 0.4 for _ in values]

    assert auroc(values, labels)([1] * 60) == pytest.approx(pairs_won(values, labels))


def test_without_one_of_the_labels_there_is_no_auroc_and_no_balanced_accuracy():
    assert math.isnan(auroc([0.1, 0.9], [True, True])([1, 1]))
    assert math.isnan(auroc([0.1, 0.9], [True, False])([1, 0]))
    assert math.isnan(balanced_accuracy([0.1, 0.9], [True, True], 0.5)([1, 1]))


def test_balanced_accuracy_weighs_both_labels_alike_and_the_threshold_itself_passes():
    figure = balanced_accuracy([0.5, 0.9, 0.4, 0.1, 0.2, 0.8], [True] * 3 + [False] * 3, 0.5)

    assert figure([1, 1, 1, 1, 1, 1]) == pytest.approx((2 / 3 + 2 / 3) / 2)
    assert figure([1, 1, 0, 9, 9, 0]) == 1.0


def test_all_answers_of_a_source_are_drawn_together_and_as_many_sources_as_there_are():
    sources = ["a", "a", "b", "c", "c", "c"]
    seen = []
    Bootstrap(sources, seed="s", resamples=50).estimate(lambda weights: seen.append(weights) or 0.0)

    assert seen[0] == [1] * 6
    assert all(weights[0] == weights[1] and len(set(weights[3:])) == 1 for weights in seen)
    assert all(weights[0] + weights[2] + weights[3] == 3 for weights in seen)
    assert any(0 in weights for weights in seen)
