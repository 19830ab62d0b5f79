"""How doubtful an answer is by what the embedded judge says."""

from __future__ import annotations

import pytest

from ragspan.metrics.doubt import doubt_of
from ragspan.outcomes import MetricFailure, NotApplicable, Score


def doubt(adherence=None, faithful=None):
    given = {"context_adherence": adherence, "faithfulness": faithful}
    return doubt_of({name: outcome for name, outcome in given.items() if outcome is not None})


def test_low_scores_are_doubtful():
    good, middle, bad = (doubt(Score(value=value), Score(value=value)) for value in (1.0, 0.6, 0.0))

    assert good == 0.0
    assert good < middle < bad


@pytest.mark.parametrize("one", ["adherence", "faithful"])
def test_what_fails_is_more_doubtful_than_what_only_scores_low(one):
    assert doubt(**{one: Score(value=0.4, label="fail")}) > doubt(Score(value=0.0), Score(value=0.0))


@pytest.mark.parametrize(
    "outcome",
    [NotApplicable(reason="cannot_tell"), NotApplicable(reason="language"), MetricFailure(error_type="e", message="")],
)
def test_what_the_judge_cannot_tell_is_between_good_and_bad(outcome):
    assert doubt(Score(value=0.9)) < doubt(Score(value=0.9), outcome) < doubt(outcome) < doubt(Score(value=0.0))


def test_what_does_not_apply_says_nothing():
    nothing = NotApplicable(reason="no_contexts")

    assert doubt(nothing, nothing) is None
    assert doubt() is None
    assert doubt(Score(value=0.7), NotApplicable(reason="no_claims")) == doubt(Score(value=0.7))
    assert doubt_of({"completeness": Score(value=0.0)}) is None
