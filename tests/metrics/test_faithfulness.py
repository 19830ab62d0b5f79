from __future__ import annotations

import pytest

from ragspan.judges.base import ClaimVerdict
from ragspan.metrics import Faithfulness, FaithfulnessWithHHEM
from ragspan.outcomes import MetricFailure, NotApplicable


async def test_the_value_is_the_share_of_claims_that_the_passages_support(fixed_judge, answered):
    judge = fixed_judge(claims=["a", "b", "c", "d"], supported=[True, True, False, True])

    score = await Faithfulness(judge).score(answered())

    assert score.value == 0.75
    assert judge.asked == [("claims",), ("verdicts", ["a", "b", "c", "d"])]


async def test_the_evidence_holds_each_verdict_with_its_claim_in_the_claims_order(fixed_judge, answered):
    verdicts = [ClaimVerdict(index=1, supported=False, explanation="why"), ClaimVerdict(index=0, supported=True)]

    score = await Faithfulness(fixed_judge(claims=["a", "b"], supported=verdicts)).score(answered())

    assert score.evidence == (
        ClaimVerdict(index=0, supported=True, claim="a"),
        ClaimVerdict(index=1, supported=False, claim="b", explanation="why"),
    )


async def test_a_response_without_claims_is_not_applicable(fixed_judge, answered):
    judge = fixed_judge(claims=[])

    assert await Faithfulness(judge).score(answered()) == NotApplicable(reason="no_claims")
    assert judge.asked == [("claims",)]


async def test_a_claim_without_a_verdict_is_a_failure(fixed_judge, answered):
    outcome = await Faithfulness(fixed_judge(claims=["a", "b", "c"], supported=[True, True])).score(answered())

    assert isinstance(outcome, MetricFailure)
    assert (outcome.error_type, outcome.message) == ("missing_verdicts", "1 of 3 claims have no verdict")


async def test_the_first_verdict_on_a_claim_counts_and_those_on_no_claim_do_not(fixed_judge, answered):
    indices = [(0, False), (0, True), (2, True), (1, True)]
    verdicts = [ClaimVerdict(index=index, supported=supported) for index, supported in indices]

    score = await Faithfulness(fixed_judge(claims=["a", "b"], supported=verdicts)).score(answered())

    assert score.value == 0.5


async def test_the_explanation_lists_the_claims_that_are_not_supported(fixed_judge, answered):
    score = await Faithfulness(fixed_judge(claims=["a", "b", "c"], supported=[False, True, False])).score(answered())

    assert score.explanation == "2 of 3 claims unsupported: a; c"


async def test_the_explanation_of_very_many_long_claims_stays_short(fixed_judge, answered):
    judge = fixed_judge(claims=["word " * 1000] * 50, supported=[False] * 50)

    score = await Faithfulness(judge).score(answered())

    assert len(score.explanation) < 1200
    assert score.explanation.endswith("...; and 45 more")


async def test_by_default_one_claim_in_five_may_be_unsupported_and_none_of_four(fixed_judge, answered):
    of_five = fixed_judge(claims=list("abcde"), supported=[True, True, True, True, False])
    of_four = fixed_judge(claims=list("abcd"), supported=[True, True, True, False])

    assert (await Faithfulness(of_five).score(answered())).label == "pass"
    assert (await Faithfulness(of_four).score(answered())).label == "fail"


async def test_with_a_classifier_the_claims_are_the_judges_and_the_verdicts_the_classifiers(fixed_judge, answered):
    judge = fixed_judge(claims=["a", "b"])
    classifier = fixed_judge(supported=[True, False])
    classifier.name = "classifier"

    score = await FaithfulnessWithHHEM(judge, classifier).score(answered())

    assert (score.value, score.judge) == (0.5, "classifier")
    assert judge.asked == [("claims",)]
    assert classifier.asked == [("verdicts", ["a", "b"])]


@pytest.mark.parametrize("verdicts", [[], [True]])
async def test_with_a_classifier_too_a_missing_verdict_is_a_failure(fixed_judge, answered, verdicts):
    metric = FaithfulnessWithHHEM(fixed_judge(claims=["a", "b"]), fixed_judge(supported=verdicts))

    assert (await metric.score(answered())).error_type == "missing_verdicts"
