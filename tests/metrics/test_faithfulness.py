"""Faithfulness beside what `test_whole_outcomes` has: which verdicts count, and whose they are."""

from __future__ import annotations

import pytest

from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.metrics import Faithfulness, FaithfulnessWithHHEM
from ragspan.outcomes import MetricFailure, NotApplicable


async def test_the_evidence_holds_the_first_verdict_on_each_claim_in_the_claims_order(fixed_judge, answered):
    given = [(1, "unsupported"), (0, "supported"), (0, "unsupported"), (2, "supported")]
    verdicts = [ClaimVerdict(index=index, verdict=verdict, explanation="why") for index, verdict in given]

    score = await Faithfulness(fixed_judge(claims=["a", "b"], supported=verdicts)).score(answered())

    assert score.evidence == (
        ClaimVerdict(index=0, verdict="supported", claim="a", explanation="why"),
        ClaimVerdict(index=1, verdict="unsupported", claim="b", explanation="why"),
    )


async def test_a_response_without_claims_is_not_applicable(fixed_judge, answered):
    judge = fixed_judge(claims=[])

    assert await Faithfulness(judge).score(answered()) == NotApplicable(reason="no_claims")
    assert judge.asked == [("claims",)]


async def test_with_a_classifier_the_claims_are_the_judges_and_the_verdicts_the_classifiers(fixed_judge, answered):
    judge = fixed_judge(claims=["a", "b"])
    classifier = fixed_judge(supported=[True, False])
    classifier.name = "classifier"

    score = await FaithfulnessWithHHEM(judge, classifier).score(answered())

    assert (score.value, score.judge) == (0.5, "classifier")
    assert judge.asked == [("claims",)]
    assert classifier.asked == [("verdicts", ["a", "b"])]


@pytest.mark.parametrize("verdicts", [[], [True]])
@pytest.mark.parametrize("has_classifier", [False, True])
async def test_a_claim_without_a_verdict_is_a_failure(fixed_judge, answered, verdicts, has_classifier):
    judge = fixed_judge(claims=["a", "b"], supported=verdicts)
    metric = FaithfulnessWithHHEM(judge, judge) if has_classifier else Faithfulness(judge)

    assert await metric.score(answered()) == MetricFailure(
        error_type="missing_verdicts", message=f"{2 - len(verdicts)} of 2 claims have no verdict"
    )
