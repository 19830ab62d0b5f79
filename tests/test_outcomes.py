import math

import pytest

from ragspan import Score
from ragspan.usage import Usage


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1])
def test_a_score_outside_of_zero_to_one_is_refused(value):
    with pytest.raises(ValueError, match="from 0 to 1"):
        Score(value=value)


@pytest.mark.parametrize(
    ("value", "threshold", "label"), [(0.5, 0.5, "pass"), (0.49, 0.5, "fail"), (1.0, 1.0, "pass"), (0.5, None, None)]
)
def test_the_label_follows_from_the_threshold(value, threshold, label):
    assert Score(value=value, threshold=threshold).label == label


def test_usage_adds_up_and_an_unknown_price_stays_unknown():
    once = Usage(requests=1, input_tokens=10, output_tokens=5)

    assert once + once == Usage(requests=2, input_tokens=20, output_tokens=10)
    assert (once + Usage(usd=0.5)).usd == 0.5
