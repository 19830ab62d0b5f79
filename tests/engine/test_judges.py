from __future__ import annotations

from dataclasses import dataclass

import pytest

from ragspan.engine._judges import ClaimsJudge, make_fallback_judge, spenders_of, with_judge
from ragspan.engine.budget import Budget
from ragspan.judges import LLMJudge, OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness, FaithfulnessWithHHEM
from ragspan.testing import FakeJudge

PAID = LLMJudge(object(), name="paid")  # type: ignore[arg-type]


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


def test_another_judge_leaves_the_rest_of_the_metric_as_it_is():
    judge = OverlapJudge()

    assert with_judge(ContextAdherence(PAID, polls=5, threshold=0.7), judge) == ContextAdherence(
        judge, polls=5, threshold=0.7
    )


def test_a_classifier_keeps_its_place_beside_another_judge():
    judge, verifier = OverlapJudge(), Verifying()

    assert with_judge(FaithfulnessWithHHEM(PAID, verifier), judge) == FaithfulnessWithHHEM(judge, verifier)


def test_a_paid_judge_that_verifies_is_replaced_as_well():
    judge = OverlapJudge()

    assert with_judge(FaithfulnessWithHHEM(PAID, PAID), judge) == FaithfulnessWithHHEM(judge, judge)


@pytest.mark.parametrize("metric", [Undeclared(PAID), Panel(first=PAID, second=PAID)])
def test_a_metric_without_a_field_for_its_judge_can_have_no_other(metric):
    assert with_judge(metric, OverlapJudge()) is None


def test_a_verifier_can_stand_in_where_claims_are_verified_and_nowhere_else():
    fallback_judge = make_fallback_judge(Budget(requests_per_minute=1, fallback=Verifying()))

    assert isinstance(fallback_judge, ClaimsJudge)
    assert fallback_judge.name == "classifier"
    assert with_judge(Faithfulness(PAID), fallback_judge) == Faithfulness(fallback_judge)  # type: ignore[arg-type]
    for metric in (ContextAdherence(PAID), Completeness(PAID), ContextUtilization(PAID)):
        assert with_judge(metric, fallback_judge) is None


def test_a_judge_that_is_given_stands_in_itself():
    judge = FakeJudge()

    assert make_fallback_judge(Budget(requests_per_minute=1, fallback=judge)) is judge


def test_the_embedded_judge_stands_in_by_its_name_and_nobody_for_skip():
    assert isinstance(make_fallback_judge(Budget(requests_per_minute=1, fallback="overlap")), OverlapJudge)
    assert make_fallback_judge(Budget(requests_per_minute=1, fallback="skip")) is None
