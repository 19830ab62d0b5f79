"""How doubtful an answer is by what the embedded judge says."""

from __future__ import annotations

import pytest

from ragspan.metrics.doubt import USUAL_DOUBTS, doubt_of
from ragspan.outcomes import MetricFailure, NotApplicable, Score

CANNOT_TELL = NotApplicable(reason="cannot_tell")


def faithfulness(value, *, claims=4, unsure=0):
    return Score(value=value, details={"claims": claims, "unsure": unsure})


def doubt(adherence=None, faithful=None):
    given = {"context_adherence": adherence, "faithfulness": faithful}
    return doubt_of({name: outcome for name, outcome in given.items() if outcome is not None})


def test_low_scores_are_doubtful():
    good, middle, bad = (doubt(Score(value=value), faithfulness(value)) for value in (1.0, 0.6, 0.0))

    assert (good, bad) == (0.0, 1.0)
    assert good < middle < bad


@pytest.mark.parametrize("one", ["adherence", "faithful"])
def test_each_of_the_two_counts(one):
    both = {"adherence": Score(value=0.8), "faithful": faithfulness(0.75)}

    assert doubt(**both | {one: faithfulness(0.5)}) > doubt(**both)


def test_unsure_claims_are_more_doubtful_than_supported_ones_and_less_than_unsupported_ones():
    supported, unsure, unsupported = faithfulness(1.0), faithfulness(1.0, unsure=2), faithfulness(0.5)

    assert doubt(Score(value=0.9), supported) < doubt(Score(value=0.9), unsure) < doubt(Score(value=0.9), unsupported)


@pytest.mark.parametrize(
    "outcome", [CANNOT_TELL, NotApplicable(reason="language"), MetricFailure(error_type="e", message="")]
)
def test_what_the_judge_cannot_tell_is_in_the_middle(outcome):
    assert doubt(outcome, outcome) == 0.5
    assert doubt(Score(value=0.9)) < doubt(Score(value=0.9), outcome) < doubt(outcome)


def test_what_does_not_apply_says_nothing():
    nothing = NotApplicable(reason="no_contexts")

    assert doubt(nothing, nothing) is None
    assert doubt() is None
    assert doubt(Score(value=0.7), NotApplicable(reason="no_claims")) == doubt(Score(value=0.7))
    assert doubt_of({"completeness": Score(value=0.0)}) is None


def test_the_usual_doubts_are_in_order():
    assert list(USUAL_DOUBTS) == sorted(USUAL_DOUBTS)
    assert len(USUAL_DOUBTS) == 20
