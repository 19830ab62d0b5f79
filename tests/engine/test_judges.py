from __future__ import annotations

from dataclasses import dataclass

import pytest

from ragspan.engine.metric_judges import spenders_of, with_judge
from ragspan.judges import LLMJudge, OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, FaithfulnessWithHHEM
from ragspan.testing import FakeJudge


class SilentClient:
    """Is never asked."""

    async def complete(self, request):
        raise AssertionError


PAID = LLMJudge(SilentClient(), name="paid")


class Verifying:
    """A classifier: it can verify claims and nothing else."""

    name = "classifier"

    async def verify_claims(self, record, claims):
        return []


class Undeclared:
    """A metric that keeps its judge where nobody sees it."""

    name = "undeclared"

    def __init__(self, judge):
        self._judge = judge

    async def score(self, record):
        raise AssertionError


@dataclass(frozen=True)
class Panel:
    """A metric with several judges."""

    first: object
    second: object
    name: str = "panel"

    async def score(self, record):
        raise AssertionError


@pytest.mark.parametrize(
    ("metric", "paid"),
    [
        (ContextAdherence(PAID), [PAID]),
        (ContextAdherence(OverlapJudge()), []),
        (Completeness(FakeJudge()), []),
        (FaithfulnessWithHHEM(OverlapJudge(), Verifying()), []),
        (FaithfulnessWithHHEM(PAID, Verifying()), [PAID]),
        (FaithfulnessWithHHEM(OverlapJudge(), PAID), [PAID]),
        (Panel(first=PAID, second=OverlapJudge()), [PAID]),
        (Undeclared(PAID), []),
    ],
)
def test_the_judges_that_are_paid_for_are_found_in_the_fields(metric, paid):
    assert list(spenders_of(metric)) == paid


JUDGE, VERIFIER = OverlapJudge(), Verifying()


@pytest.mark.parametrize(
    ("metric", "replaced"),
    [
        (ContextAdherence(PAID, polls=5, threshold=0.7), ContextAdherence(JUDGE, polls=5, threshold=0.7)),
        (FaithfulnessWithHHEM(PAID, VERIFIER), FaithfulnessWithHHEM(JUDGE, VERIFIER)),
        (FaithfulnessWithHHEM(PAID, PAID), FaithfulnessWithHHEM(JUDGE, JUDGE)),
        (Undeclared(PAID), None),
        (Panel(first=PAID, second=PAID), None),
    ],
    ids=["all but the judge stays", "a classifier stays", "a paid verifier goes", "no field", "two fields"],
)
def test_another_judge_takes_the_place_of_the_metrics_and_of_those_that_are_paid_for(metric, replaced):
    assert with_judge(metric, JUDGE) == replaced
