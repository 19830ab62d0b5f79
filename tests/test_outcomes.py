import math

import pytest

from ragspan import MetricFailure, NotApplicable, RagRecord, Score, ScoredRecord
from ragspan.usage import Usage


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.1])
def test_a_score_outside_of_zero_to_one_is_refused(value):
    with pytest.raises(ValueError, match=f"^a score is a number from 0 to 1, not {value!r}$"):
        Score(value=value)


def test_details_that_are_not_numbers_are_refused():
    with pytest.raises(TypeError, match=r"^details of a score are numbers, not {'words': 12, 'why': 'too long'}$"):
        Score(value=0.5, details={"words": 12, "why": "too long"})


@pytest.mark.parametrize(
    ("value", "threshold", "label"), [(0.5, 0.5, "pass"), (0.49, 0.5, "fail"), (1.0, 1.0, "pass"), (0.5, None, None)]
)
def test_the_label_follows_from_the_threshold(value, threshold, label):
    assert Score(value=value, threshold=threshold).label == label


def test_outcomes_and_a_scored_record_are_lines():
    outcomes = {
        "faithfulness": Score(value=0.25, threshold=0.5, explanation="Three are not."),
        "own": Score(value=1),
        "relevance": NotApplicable(reason="no_contexts", detail="none was found"),
        "completeness": MetricFailure(error_type="timeout", message="no outcome within 60 s"),
        "adherence": Score(value=0.5, threshold=0.5),
    }
    scored = ScoredRecord(record=RagRecord(question="q", contexts=[], response="r"), outcomes=outcomes)

    assert "|".join(map(str, outcomes.values())) == (
        "0.25 ✗ fail|1.00|not applicable: no_contexts|failed: timeout|0.50 ✓ pass"
    )
    assert str(scored).splitlines() == [
        "faithfulness  0.25  fail  Three are not.",
        "own           1.00",
        "relevance     -     no_contexts  none was found",
        "completeness  -     timeout  no outcome within 60 s",
        "adherence     0.50  pass",
    ]


def test_usage_adds_up_and_an_unknown_price_stays_unknown():
    once = Usage(requests=1, input_tokens=10, cached_tokens=3, output_tokens=5)

    assert once + once == Usage(requests=2, input_tokens=20, cached_tokens=6, output_tokens=10)
    half = Usage(usd=0.5)
    assert [one.usd for one in (once + half, half + once, half + Usage(usd=0.25))] == [0.5, 0.5, 0.75]
