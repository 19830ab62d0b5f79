from __future__ import annotations

import math

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges.detectors.base import require_reference_values
from ragspan_hhem.model import REFERENCE_PAIRS


def published(**changed):
    """The published probabilities, but for some, by their places."""
    return [changed.get(f"_{place}", pair.probability) for place, pair in enumerate(REFERENCE_PAIRS)]


def test_the_published_probabilities_are_what_is_required():
    require_reference_values(published(), REFERENCE_PAIRS, name="hhem")


@pytest.mark.parametrize("difference", [0.0009, -0.0009])
def test_another_processor_may_compute_a_little_differently(difference):
    require_reference_values(published(_3=0.8969 + difference), REFERENCE_PAIRS, name="hhem")


@pytest.mark.parametrize(
    ("wrong", "shown"), [(0.91, "by up to 0.013"), (0.1, "by up to 0.797"), (math.nan, "1 of the 7")]
)
def test_one_other_probability_is_enough_to_refuse(wrong, shown):
    with pytest.raises(JudgeError, match=shown) as refused:
        require_reference_values(published(_3=wrong), REFERENCE_PAIRS, name="hhem")

    assert refused.value.error_type == "hhem_reference_mismatch"


def test_the_order_of_a_pair_matters():
    """The published pairs hold one both ways round, with probabilities far apart: a loader that swaps them is found out."""
    forth, back = REFERENCE_PAIRS[1:3]

    assert abs(forth.probability - back.probability) > 0.5
