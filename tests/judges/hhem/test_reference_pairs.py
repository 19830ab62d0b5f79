from __future__ import annotations

import math

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges.hhem.pairs import Finding
from ragspan.judges.hhem.reference_pairs import REFERENCE_PAIRS, require_reference_values


class PublishedClassifier:
    """Gives the published probabilities, but for some."""

    def __init__(self, **changed):
        self._known = {(pair.premise, pair.hypothesis): pair.probability for pair in REFERENCE_PAIRS}
        self._known |= {
            (REFERENCE_PAIRS[int(place[1:])].premise, REFERENCE_PAIRS[int(place[1:])].hypothesis): value
            for place, value in changed.items()
        }

    def findings(self, pairs):
        return [Finding(probability=self._known[pair.passages[0], pair.claim]) for pair in pairs]


def test_the_published_probabilities_are_what_is_required():
    require_reference_values(PublishedClassifier())


@pytest.mark.parametrize("difference", [0.0009, -0.0009])
def test_another_processor_may_compute_a_little_differently(difference):
    require_reference_values(PublishedClassifier(_3=0.8969 + difference))


@pytest.mark.parametrize(
    ("wrong", "shown"), [(0.91, "by up to 0.013"), (0.1, "by up to 0.797"), (math.nan, "1 of the 7")]
)
def test_one_other_probability_is_enough_to_refuse(wrong, shown):
    with pytest.raises(JudgeError, match=shown) as refused:
        require_reference_values(PublishedClassifier(_3=wrong))

    assert refused.value.error_type == "hhem_reference_mismatch"


def test_the_order_of_a_pair_matters():
    """The published pairs hold one both ways round, with probabilities far apart: a loader that swaps them is found out."""
    forth, back = REFERENCE_PAIRS[1:3]

    assert abs(forth.probability - back.probability) > 0.5
