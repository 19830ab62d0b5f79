"""How well scores agree with labels: the figures are right, and so is what is said of their chance."""

from __future__ import annotations

import random

import pytest

from ragspan.evaluate.label_agreement import auroc, balanced_accuracy


def test_auroc_is_the_share_of_pairs_in_the_right_order_with_ties_counted_half():
    draw = random.Random(1)
    good, bad = ([draw.randrange(6) / 5 for _ in range(count)] for count in (24, 36))
    won = [1.0 if high > low else 0.5 if high == low else 0.0 for high in good for low in bad]

    assert auroc(good, bad).value == pytest.approx(sum(won) / len(won))


def test_the_true_auroc_is_in_nineteen_of_twenty_intervals():
    draw = random.Random(2)
    inside = 0
    for _ in range(400):  # two normal distributions that are one deviation apart
        found = auroc([draw.gauss(1, 1) for _ in range(40)], [draw.gauss(0, 1) for _ in range(25)])
        inside += found.lower <= 0.7602 <= found.upper

    assert 0.91 < inside / 400 < 0.98


def test_without_one_of_the_labels_there_is_no_auroc_and_no_balanced_accuracy():
    assert auroc([0.1, 0.9], []) is None
    assert balanced_accuracy([], [True]) is None


@pytest.mark.parametrize(
    ("good", "bad", "figures"),
    [
        ([0.9, 0.8], [0.1], [(1.0, 0.2065, 1.0), (1.0, 0.4847, 1.0)]),
        ([0.9, 0.4, 0.6], [0.5, 0.6], [(0.5833, 0.125, 0.9321), (0.3333, 0.1038, 0.6891)]),
        (
            [at / 20 for at in range(8, 20)],
            [at / 20 for at in range(10)],
            [(0.9833, 0.9006, 0.9974), (0.9167, 0.7191, 0.9765)],
        ),
        ([0.5] * 12, [0.5] * 12, [(0.5, 0.2538, 0.7462), (0.5, 0.3788, 0.6212)]),
        ([0.9] * 10, [0.1] * 10, [(1.0, 0.7225, 1.0), (1.0, 0.8038, 1.0)]),
    ],
)
def test_the_figures_with_their_intervals(good, bad, figures):
    ranked = auroc(good, bad)
    right = balanced_accuracy([value >= 0.5 for value in good], [value < 0.5 for value in bad])

    assert [*map(shown, (ranked, right))] == figures


def shown(figure):
    return (round(figure.value, 4), round(figure.lower, 4), round(figure.upper, 4))
