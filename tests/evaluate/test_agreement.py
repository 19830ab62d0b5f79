"""How well scores agree with labels: the figures are right, and so is what is said of their chance."""

from __future__ import annotations

import math
import random

import pytest

from ragspan.evaluate.estimates import Bootstrap, Estimate, auroc, balanced_accuracy


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


@pytest.mark.parametrize(("labels", "expected"), [([False, True], 1.0), ([True, False], 0.0)])
def test_auroc_is_one_when_the_supported_are_ahead_and_zero_when_they_are_behind(labels, expected):
    assert auroc([0.2, 0.8], labels)([1, 1]) == expected


def test_a_figure_with_weights_is_that_of_the_answers_repeated_as_often():
    draw = random.Random(2)
    values = [draw.randrange(5) / 4 for _ in range(30)]
    labels = [draw.random() > 0.5 for _ in values]
    weights = [draw.randrange(4) for _ in values]
    repeated = [at for at, weight in enumerate(weights) for _ in range(weight)]

    def again(column):
        return [column[at] for at in repeated]

    once = [1] * len(repeated)
    assert auroc(values, labels)(weights) == pytest.approx(auroc(again(values), again(labels))(once))
    assert balanced_accuracy(values, labels, 0.5)(weights) == pytest.approx(
        balanced_accuracy(again(values), again(labels), 0.5)(once)
    )


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


def test_the_same_seed_gives_the_same_interval_and_another_seed_another():
    figure = auroc([0.1, 0.4, 0.35, 0.8, 0.7, 0.2], [False, False, True, True, False, True])

    def interval(seed):
        return Bootstrap("abcdef", seed=seed, resamples=200).estimate(figure).resampled

    assert interval("one") == interval("one")
    assert interval("one") != interval("two")


def test_an_interval_leaves_out_resamples_without_a_figure():
    estimate = Estimate(value=0.5, resampled=(math.nan, *(number / 100 for number in range(101))))

    assert estimate.interval == pytest.approx((0.02, 0.98))
