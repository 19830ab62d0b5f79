"""Outcomes as JSON and back."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest

from ragspan.datasets.outcome_json import outcome_from, plain_outcome
from ragspan.judges.base import ClaimVerdict, ContextRating, ContextVerdict, Rating, Vote
from ragspan.metrics._contexts import JudgedContext
from ragspan.outcomes import MetricFailure, NotApplicable, Score, Usage

EVIDENCE = (
    Vote(grounded=True, probability=0.5),
    Rating(value=0.25, explanation="e"),
    ClaimVerdict(index=0, supported=False, claim="c"),
    ContextVerdict(index=1, useful=True),
    ContextRating(index=2, value=0.0),
    JudgedContext(index=0, id=None, rank=None, value=1.0),
    "text",
)


def through_json(outcome):
    return outcome_from(json.loads(json.dumps(plain_outcome(outcome), allow_nan=False)))


@pytest.mark.parametrize(
    "outcome",
    [
        Score(value=1 / 3),
        Score(value=1, threshold=0.8, label="fail", explanation="e", judge="j", prompt_version="1", fallback="f"),
        Score(value=0.5, evidence=EVIDENCE, details={"claims": 3, "spread": 0.1}),
        Score(value=0.5, usage=Usage(requests=2, input_tokens=3, cached_tokens=1, output_tokens=4, usd=0.25)),
        Score(value=0.5, usage=Usage()),
        NotApplicable(reason="no_contexts", detail="d"),
        NotApplicable(reason="no_contexts"),
        MetricFailure(error_type="timeout", message="m"),
    ],
)
def test_an_outcome_comes_back_as_it_was(outcome):
    back = through_json(outcome)

    assert back == outcome
    assert type(getattr(back, "evidence", ())) is tuple


@dataclass
class OwnEvidence:
    name: str
    weight: float = math.nan
    source: object = None


def test_evidence_of_a_metric_of_ones_own_becomes_plain():
    score = Score(value=0.5, evidence=(OwnEvidence("a"), {"b": 1, "c": []}, object()))

    assert through_json(score).evidence == ({"is": "OwnEvidence", "name": "a"}, {"b": 1}, "object")


def test_no_nan_gets_through():
    score = Score(value=0.5, details={"spread": math.nan, "votes": 3}, evidence=(math.inf,))

    assert through_json(score) == Score(value=0.5, details={"votes": 3}, evidence=("float",))
